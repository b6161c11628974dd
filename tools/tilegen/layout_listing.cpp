#include "layout_listing.h"

#include <nlohmann/json.hpp>

#include "library.h"

namespace tool {

namespace {

using Json = nlohmann::json;

struct NamedLayout {
  std::string name, role, text;
};

void add(std::vector<NamedLayout>& out, const Json& row, const char* name_key, const char* layout_key,
         const char* role) {
  const auto layout = row.find(layout_key);
  if (layout == row.end() || !layout->is_string()) return;
  out.push_back({row.value(name_key, std::string("?")), role, layout->get<std::string>()});
}

std::vector<NamedLayout> collect(const Json& kernel) {
  std::vector<NamedLayout> out;
  const Json none = Json::array();
  for (const Json& row : kernel.value("values", none)) {
    add(out, row, "value", "memory", "memory");
    add(out, row, "value", "fragment", "fragment");
  }
  for (const Json& row : kernel.value("ops", none)) add(out, row, "op", "iteration", "iteration");
  for (const Json& row : kernel.value("conversions", none)) {
    add(out, row, "value", "from", "converted from");
    add(out, row, "value", "to", "converted to");
  }
  return out;
}

}  // namespace

std::string list_layouts(const std::string& schedule_json) {
  const Json schedule = Json::parse(schedule_json, nullptr, false);
  if (schedule.is_discarded()) fail("the library gave a schedule that is no JSON");
  std::string out;
  for (const Json& kernel : schedule.value("kernels", Json::array()))
    for (const NamedLayout& layout : collect(kernel))
      out += layout.name + "  " + layout.role + "\n    " + layout.text + "\n";
  return out;
}

}  // namespace tool
