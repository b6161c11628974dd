// The option table: one row per compile option, from which setters and documentation follow.
#include <iterator>
#include <string_view>

#include "capi/guard.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

struct OptionRow {
  tl_option_type type;
  const char* name;
  const char* default_value;
  bool affects_code;
  const char* summary;
  bool OptionValues::*flag = nullptr;
  int64_t OptionValues::*number = nullptr;
  std::string OptionValues::*text = nullptr;
};

constexpr OptionRow flag_row(const char* name, const char* def, bool affects, bool OptionValues::*field,
                             const char* summary) {
  return {TL_OPTION_BOOL, name, def, affects, summary, field, nullptr, nullptr};
}

constexpr OptionRow kOptions[] = {
    {TL_OPTION_STR, "schedule_json", "", true,
     "decisions to take as given, in the form of TL_SECTION_SCHEDULE_JSON; the planner fills what is missing",
     nullptr, nullptr, &OptionValues::schedule_json},
    flag_row("conversions", "true", true, &OptionValues::conversions,
             "false: refuse a program that needs layout conversions instead of inserting them"),
    flag_row("keep_ir", "false", false, &OptionValues::keep_ir,
             "keep LLVM IR, before and after optimisation"),
    flag_row("keep_assembly", "false", false, &OptionValues::keep_assembly,
             "keep the assembly of the target"),
    flag_row("plan_only", "false", true, &OptionValues::plan_only,
             "make no code: the artifact has the schedule, of the plan that lowering and its checks take"),
    flag_row("native_text", "true", true, &OptionValues::native_text,
             "false: refuse a program whose functions have native text, for programs from strangers"),
    flag_row("verify", "false", false, &OptionValues::verify, "verify between stages"),
    {TL_OPTION_STR, "sizes", "", true,
     "sizes of dims, as \"m=4096,n=512\", for estimates, warnings and loops that blocks may share; "
     "\"m=1..8192\": launches have these sizes, and code is specialised for parts of them",
     nullptr, nullptr, &OptionValues::sizes},
    {TL_OPTION_I64, "specialisations", "0", true,
     "most parts of sizes that have code of their own, where sizes has a range, 1 to 32, 0 = 4", nullptr,
     &OptionValues::specialisations, nullptr},
    {TL_OPTION_STR, "tune", "none", true,
     "who chooses the values of compile-time parameters (none: the program's; model: the shortest estimate; "
     "measure: the shortest time on the device)",
     nullptr, nullptr, &OptionValues::tune},
    {TL_OPTION_I64, "tune_count", "0", true,
     "configurations that tune = measure measures, the best by the model, 0 = 8, all where there are no "
     "estimates",
     nullptr, &OptionValues::tune_count, nullptr},
    {TL_OPTION_STR, "tune_records", "", true,
     "a folder in which tune = measure remembers times, and looks before it measures", nullptr, nullptr,
     &OptionValues::tune_records},
    {TL_OPTION_STR, "simulator_order", "round_robin", false,
     "simulated targets: the order in which warps run (round_robin, reversed, random)", nullptr, nullptr,
     &OptionValues::simulator_order},
    {TL_OPTION_STR, "simulator_async", "latest", false,
     "simulated targets: when async copies move their bytes (latest: when waited for, earliest: when issued)",
     nullptr, nullptr, &OptionValues::simulator_async},
    {TL_OPTION_I64, "simulator_seed", "1", false, "simulated targets: seed of the random order", nullptr,
     &OptionValues::simulator_seed, nullptr},
    {TL_OPTION_I64, "timeout_ms", "0", false,
     "cancel a compilation that takes longer, a fallback version's too, 0 = never", nullptr,
     &OptionValues::timeout_ms, nullptr},
};

const char* type_text(tl_option_type type) {
  return type == TL_OPTION_BOOL ? "a bool" : type == TL_OPTION_I64 ? "an integer" : "a string";
}

Expected<const OptionRow*> find_option(const tl_options* options, const char* name, tl_option_type type) {
  if (!options) return null_argument("options");
  if (!name) return null_argument("name");
  std::string known;
  for (const OptionRow& row : kOptions) {
    known += (known.empty() ? "" : ", ") + std::string(row.name);
    if (std::string_view(row.name) != name) continue;
    if (row.type == type) return &row;
    return Error(
        DiagCode::unknown_option, "",
        "the option '" + std::string(name) + "' is " + type_text(row.type) + ", not " + type_text(type),
        std::string("use the setter for ") + type_text(row.type));
  }
  return Error(DiagCode::unknown_option, "", "there is no option '" + std::string(name) + "'",
               "the options are " + known);
}

}  // namespace

extern "C" {

tl_status tl_options_create(tl_options** out_options, tl_error** out_error) {
  return guard("tl_options_create", out_error, [&]() -> Checked {
    if (!out_options) return null_argument("out_options");
    *out_options = nullptr;
    *out_options = new tl_options;
    return Unit{};
  });
}

void tl_options_destroy(tl_options* options) { delete options; }

tl_status tl_options_set_i64(tl_options* options, const char* name, int64_t value, tl_error** out_error) {
  return guard("tl_options_set_i64", out_error, [&]() -> Checked {
    auto row = find_option(options, name, TL_OPTION_I64);
    if (!row) return row.error();
    if (value < 0)
      return Error(DiagCode::unknown_option, "",
                   "the option '" + std::string(name) + "' cannot be " + std::to_string(value),
                   "give 0 or more");
    options->values.*(*row)->number = value;
    return Unit{};
  });
}

tl_status tl_options_set_bool(tl_options* options, const char* name, int32_t value, tl_error** out_error) {
  return guard("tl_options_set_bool", out_error, [&]() -> Checked {
    auto row = find_option(options, name, TL_OPTION_BOOL);
    if (!row) return row.error();
    if (value != 0 && value != 1)
      return Error(DiagCode::unknown_option, "",
                   "the option '" + std::string(name) + "' cannot be " + std::to_string(value),
                   "give 0 or 1");
    options->values.*(*row)->flag = value != 0;
    return Unit{};
  });
}

tl_status tl_options_set_str(tl_options* options, const char* name, const char* value, tl_error** out_error) {
  return guard("tl_options_set_str", out_error, [&]() -> Checked {
    auto row = find_option(options, name, TL_OPTION_STR);
    if (!row) return row.error();
    if (!value) return null_argument("value");
    options->values.*(*row)->text = value;
    return Unit{};
  });
}

size_t tl_option_count(void) { return std::size(kOptions); }

tl_status tl_option_describe(size_t index, tl_option_info* out_info) {
  return guard("tl_option_describe", nullptr, [&]() -> Checked {
    if (!out_info) return null_argument("out_info");
    if (index >= std::size(kOptions))
      return Error(DiagCode::unknown_option, "", "there is no option " + std::to_string(index),
                   "see tl_option_count");
    const OptionRow& row = kOptions[index];
    tl_option_info info{};
    info.type = row.type;
    info.name = row.name;
    info.summary = row.summary;
    info.default_value = row.default_value;
    info.affects_code = row.affects_code ? 1 : 0;
    return fill_struct(out_info, info);
  });
}

}  // extern "C"
