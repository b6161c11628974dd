// The rows of schedule_fields.h, and values of theirs, as text for people.
#include "plan/schedule_fields.h"
#include "plan/compare_given.h"

namespace tilegen::plan {
namespace {

template <class E>
void add_table(std::string& out, const char* title) {
  out += std::string("**") + title + "**\n\n| field | meaning |\n|---|---|\n";
  for_each_field<E>([&](const auto& f) {
    if constexpr (requires { f.meaning; }) out += std::string("| `") + f.key + "` | " + f.meaning + " |\n";
  });
  out += "\n";
}

}  // namespace

std::string field_text(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& v : list) text += (text.empty() ? "" : ", ") + v;
  return "[" + text + "]";
}

std::string names_text(const std::vector<RolePlan>& roles) {
  std::string text;
  for (const RolePlan& r : roles) text += (text.empty() ? "'" : ", '") + r.name + "'";
  return text.empty() ? "none" : text;
}

std::string field_text(const std::vector<std::pair<std::string, int64_t>>& stages) {
  std::string text;
  for (const auto& [op, stage] : stages)
    text += (text.empty() ? "" : ", ") + op + ": " + std::to_string(stage);
  return "[" + text + "]";
}

std::string schedule_field_tables() {
  std::string out;
  add_table<RasterPlan>(out, "`raster`");
  add_table<RolePlan>(out, "`roles`");
  add_table<PersistencePlan>(out, "`persistence`");
  add_table<ClusterPlan>(out, "`cluster`");
  add_table<SplitPlan>(out, "`split`");
  add_table<OverlapPlan>(out, "`overlap`");
  add_table<LaunchPlan>(out, "`launch`");
  add_table<OpPlan>(out, "An entry of `ops`");
  add_table<ValuePlan>(out, "An entry of `values`");
  add_table<LoopPlan>(out, "An entry of `loops`");
  add_table<PipelinePlan>(out, "An entry of `pipelines`");
  add_table<ConversionPlan>(out, "An entry of `conversions`");
  add_table<Assumption>(out, "An entry of `assumptions`");
  return out;
}

}  // namespace tilegen::plan
