#include "result_forms.h"

#include "files.h"

namespace tool {

namespace {

constexpr ResultForm kForms[] = {
    {"text", TL_SECTION_TILE_IR, nullptr},
    {"schedule", TL_SECTION_SCHEDULE_TEXT, nullptr},
    {"schedule-json", TL_SECTION_SCHEDULE_JSON, nullptr},
    {"layouts", TL_SECTION_SCHEDULE_JSON, nullptr},
    {"pictures", TL_SECTION_SCHEDULE_JSON, nullptr},
    {"scheduled", TL_SECTION_SCHEDULE_TEXT, nullptr, "scheduled"},
    {"thread", TL_SECTION_THREAD_PROGRAM, nullptr},
    {"llvm", TL_SECTION_LLVM_IR, "keep_ir"},
    {"llvm-opt", TL_SECTION_LLVM_IR_OPTIMISED, "keep_ir"},
    {"asm", TL_SECTION_ASSEMBLY, "keep_assembly"},
    {"ptx", TL_SECTION_PTX, nullptr},
    {"hsaco", TL_SECTION_HSACO, nullptr},
    {"code", TL_SECTION_CODE, nullptr},
    {"native", TL_SECTION_NATIVE_TEXT, nullptr},
    {"cost", TL_SECTION_COST, nullptr},
    {"cost-json", TL_SECTION_COST_JSON, nullptr},
};

}  // namespace

const ResultForm& result_form(std::string_view name) {
  std::string names;
  for (const ResultForm& form : kForms) {
    if (name == form.name) return form;
    names += names.empty() ? "" : ", ";
    names += form.name;
  }
  fail_usage("there is no form '" + std::string(name) + "'; there are " + names);
}

std::string read_schedule(const Context& context, const std::string& path) {
  const std::string text = read_text(context, path);
  if (text.empty() || text.find('\0') != std::string::npos)
    fail_file(path + ": no schedule; one is JSON text");
  return text;
}

Options options_of(const Context& context, const CommandLine& line) {
  Options options = make_options();
  tl_error* error = nullptr;
  if (const auto sizes = line.get("sizes"))
    require(tl_options_set_str(options.get(), "sizes", sizes->c_str(), &error), error, "giving the sizes");
  if (const auto tune = line.get("tune"))
    require(tl_options_set_str(options.get(), "tune", tune->c_str(), &error), error, "giving who chooses");
  if (const auto folder = line.get("records"))
    require(tl_options_set_str(options.get(), "tune_records", folder->c_str(), &error), error,
            "giving the folder of records");
  if (line.has("specialisations"))
    require(tl_options_set_i64(options.get(), "specialisations", line.integer_or("specialisations", 0, 1, 32),
                               &error),
            error, "giving the specialisations");
  if (const auto schedule = line.get("schedule"))
    require(
        tl_options_set_str(options.get(), "schedule_json", read_schedule(context, *schedule).c_str(), &error),
        error, "giving the schedule");
  return options;
}

Artifact compile_file(const Context& context, const Program& program, const CommandLine& line,
                      const ResultForm* form, bool plan_only) {
  const Target target = find_target(context, line.get_or("target", ""));
  const Options options = options_of(context, line);
  tl_error* error = nullptr;
  if (form && form->option)
    require(tl_options_set_bool(options.get(), form->option, 1, &error), error, "setting an option");
  if (plan_only && has_option("plan_only"))
    require(tl_options_set_bool(options.get(), "plan_only", 1, &error), error, "setting an option");
  return compile(context, program, target, options);
}

}  // namespace tool
