#include "layout_listing.h"

#include <nlohmann/json.hpp>

#include "files.h"
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

std::vector<NamedLayout> all_layouts(const std::string& schedule_json) {
  const Json schedule = Json::parse(schedule_json, nullptr, false);
  if (schedule.is_discarded()) fail("the library gave a schedule that is no JSON");
  std::vector<NamedLayout> out;
  for (const Json& kernel : schedule.value("kernels", Json::array()))
    for (NamedLayout& layout : collect(kernel)) out.push_back(std::move(layout));
  return out;
}

}  // namespace

std::string list_layouts(const std::string& schedule_json, bool pictures) {
  std::string out;
  for (const NamedLayout& layout : all_layouts(schedule_json)) {
    out += layout.name + "  " + layout.role + "\n    " + layout.text + "\n";
    if (pictures) out += draw(layout.text, TL_PICTURE_TEXT) + "\n";
  }
  return out;
}

int write_pictures(const std::string& schedule_json, const std::string& folder) {
  int count = 0;
  for (const NamedLayout& layout : all_layouts(schedule_json)) {
    std::string name = layout.name + "." + layout.role;
    for (char& c : name)
      if (!isalnum(static_cast<unsigned char>(c)) && c != '.') c = '_';
    write_file(folder + "/" + std::to_string(count++) + "." + name + ".svg",
               draw(layout.text, TL_PICTURE_SVG));
  }
  return count;
}

}  // namespace tool
