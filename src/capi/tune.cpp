// Tuning: the configurations of a program in the order of the cost model, or of measured times.
#include "capi/tune.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "capi/bound_program.h"
#include "capi/compile_options.h"
#include "capi/guard.h"
#include "support/callback_gate.h"
#include "support/diag_codes.h"
#include "tune/rank.h"

using namespace tilegen;
using namespace tilegen::capi;

struct tl_tuning : RefCounted {
  struct Row {
    tune::Configuration configuration;
    std::vector<int64_t> values;
    std::string refusal;
  };
  std::vector<Row> rows;
  std::shared_ptr<const ProgramSource> source;
};

namespace tilegen::capi {

namespace {

// What a launch of the one takes, a launch of the other does: types of arguments are no choice of a tuner.
bool takes_same_types(const ir::Program& a, const ir::Program& b) {
  const auto type = [](const ir::Program& p, const ir::Param& q) {
    return q.kind == ir::Param::Kind::tensor ? p.buffer(q.buffer).type : p.var(q.var).type;
  };
  return std::equal(
      a.params.begin(), a.params.end(), b.params.begin(), b.params.end(),
      [&](const ir::Param& x, const ir::Param& y) { return x.kind == y.kind && type(a, x) == type(b, y); });
}

// `program` and `context` must outlive it.
tune::Bind binder(const tl_context& context, const tl_program& program, const Cancellation* cancellation) {
  return [&context, &program, cancellation](
             const std::vector<ir::ParamBinding>& values) -> Expected<std::shared_ptr<const ir::Program>> {
    if (!program.source) return program.program;
    const ProgramSource& source = *program.source;
    auto bound =
        checked_program(context.limits, source.text, source.file, values, cancellation, source.again());
    if (!bound || takes_same_types(*program.program, **bound)) return bound;
    return Error(DiagCode::bad_binding, program.program->name,
                 "its arguments would have other types than those of the program as it is bound",
                 "bind the parameters whose values are types: a program is tuned for arguments of its own");
  };
}

}  // namespace

Expected<TuneChoice> tune_choice(const OptionValues& values) {
  if (values.tune == "none") return TuneChoice::none;
  if (values.tune == "model") return TuneChoice::model;
  if (values.tune == "measure") return TuneChoice::measure;
  return Error(DiagCode::unknown_option, "", "the option 'tune' cannot be '" + values.tune + "'",
               "give none, model or measure");
}

tune::MeasureOptions measure_options(const OptionValues& values) {
  tune::MeasureOptions how;
  how.count = static_cast<size_t>(values.tune_count);
  how.records = values.tune_records;
  how.library = std::to_string(TL_API_VERSION);
  how.schedule_json = values.schedule_json;
  return how;
}

Expected<std::vector<tune::Configuration>> rank_configurations(const tl_context& context,
                                                               const tl_program& program,
                                                               const target::Target& target,
                                                               const driver::CompileOptions& options) {
  if (Checked has = has_text_to_bind(program); !has) return has.error();
  return tune::rank(*program.program, binder(context, program, options.cancellation), target, options);
}

Expected<tune::Configuration> fastest_configuration(const tl_context& context, const tl_program& program,
                                                    const target::Target& target,
                                                    const driver::CompileOptions& options,
                                                    const tune::MeasureOptions& how) {
  if (Checked has = has_text_to_bind(program); !has) return has.error();
  return tune::fastest(*program.program, binder(context, program, options.cancellation), target, options,
                       how);
}

Expected<tune::Specialising> specialise_program(const tl_context& context, const tl_program& program,
                                                const target::Target& target,
                                                const driver::CompileOptions& options,
                                                const tune::SpecialiseOptions& how) {
  if (how.choose_values)
    if (Checked has = has_text_to_bind(program); !has) return has.error();
  return tune::specialise(program.program, binder(context, program, options.cancellation), target, options,
                          how);
}

}  // namespace tilegen::capi

namespace {

constexpr size_t kRoundsOfCaller = 3;  // each run of a caller's function is a measurement of its own

const tl_tuning::Row* find_row(const tl_tuning* tuning, size_t index) {
  return index < tuning->rows.size() ? &tuning->rows[index] : nullptr;
}

Error no_such_row(size_t index) {
  return Error(DiagCode::bad_enum, "", "there is no configuration " + std::to_string(index),
               "count them with tl_tuning_count");
}

// What a call works on.
struct Call {
  const tl_context* context;
  const tl_program* program;
  const tl_target* target;
  OptionValues values;
  const Cancellation* cancellation;
};

Checked check_arguments(const tl_context* context, const tl_program* program, const tl_target* target,
                        const void* out, const char* out_name) {
  if (!context || !program) return null_argument(context ? "program" : "context");
  if (!target || !out) return null_argument(target ? out_name : "target");
  return Unit{};
}

Expected<driver::CompileOptions> options_of(const Call& call, const char* name) {
  if (Checked one = refuse_ranges(call.values, *call.program->program, name); !one) return one.error();
  auto converted =
      compile_options(*call.context, *call.program->program, call.values, std::make_shared<CallbackGate>());
  if (converted) converted->cancellation = call.cancellation;
  return converted;
}

void hand_out(std::vector<tune::Configuration> configurations, const tl_program& program, tl_tuning** out) {
  auto made = std::make_unique<tl_tuning>();
  made->source = program.source;
  for (tune::Configuration& c : configurations) {
    tl_tuning::Row row;
    for (const ir::ParamBinding& v : c.values) row.values.push_back(v.value);
    if (c.refused) row.refusal = c.refused->to_text();
    row.configuration = std::move(c);
    made->rows.push_back(std::move(row));
  }
  *out = made.release();
}

Checked tune_measured(const Call& call, tune::MeasureOptions how, tl_tuning** out) {
  if (Checked has = has_text_to_bind(*call.program); !has) return has.error();
  auto options = options_of(call, "tl_tune");
  if (!options) return options.error();
  auto all =
      tune::tune_by_measuring(*call.program->program, binder(*call.context, *call.program, call.cancellation),
                              call.target->target, *options, how);
  if (!all) return all.error();
  hand_out(std::move(*all), *call.program, out);
  return Unit{};
}

// Asks a caller's function.
Expected<double> ask(const tl_program& program, tl_measure_fn measure, void* user,
                     const tune::Configuration& c, size_t step, size_t steps) {
  tl_program* bound = nullptr;
  hand_out_program(c.program, program.source, &bound);
  const std::unique_ptr<tl_program, void (*)(tl_program*)> releasing(bound, tl_program_release);
  std::vector<int64_t> values;
  for (const ir::ParamBinding& v : c.values) values.push_back(v.value);
  tl_measurement m{};
  m.struct_size = sizeof m;
  m.value_count = static_cast<uint32_t>(values.size());
  m.values = values.data();
  m.program = bound;
  m.step = step;
  m.steps = steps;
  measure(user, &m);
  if (m.refusal)
    return Error(DiagCode::launch_limit, program.program->name, m.refusal, "leave this configuration out");
  if (!std::isfinite(m.microseconds) || m.microseconds <= 0)
    return Error(DiagCode::bad_enum, program.program->name,
                 "the function that measures gave " + std::to_string(m.microseconds) + " microseconds",
                 "set a time above 0, or a refusal");
  return m.microseconds;
}

}  // namespace

extern "C" {

tl_status tl_tune(const tl_context* context, const tl_program* program, const tl_target* target,
                  const tl_options* options, tl_tuning** out_tuning, tl_error** out_error) {
  return guard("tl_tune", out_error, [&]() -> Checked {
    if (out_tuning) *out_tuning = nullptr;
    if (Checked ok = check_arguments(context, program, target, out_tuning, "out_tuning"); !ok) return ok;
    const OptionValues values = options ? options->values : OptionValues();
    const CallLimits limits(context, values.timeout_ms);
    const Call call{context, program, target, values, limits.get()};
    const auto choice = tune_choice(values);
    if (!choice) return choice.error();
    if (*choice == TuneChoice::measure) return tune_measured(call, measure_options(values), out_tuning);
    auto converted = options_of(call, "tl_tune");
    if (!converted) return converted.error();
    auto ranked = rank_configurations(*context, *program, target->target, *converted);
    if (!ranked) return ranked.error();
    hand_out(std::move(*ranked), *program, out_tuning);
    return Unit{};
  });
}

tl_status tl_tune_measured(const tl_context* context, const tl_program* program, const tl_target* target,
                           const tl_options* options, tl_measure_fn measure, void* user,
                           tl_tuning** out_tuning, tl_error** out_error) {
  return guard("tl_tune_measured", out_error, [&]() -> Checked {
    if (out_tuning) *out_tuning = nullptr;
    if (Checked ok = check_arguments(context, program, target, out_tuning, "out_tuning"); !ok) return ok;
    if (!measure) return null_argument("measure");
    const OptionValues values = options ? options->values : OptionValues();
    const CallLimits limits(context, values.timeout_ms);
    tune::MeasureOptions how = measure_options(values);
    how.rounds = kRoundsOfCaller;
    how.sample = [&](const tune::Configuration& c, size_t step, size_t steps) {
      return ask(*program, measure, user, c, step, steps);
    };
    return tune_measured({context, program, target, values, limits.get()}, std::move(how), out_tuning);
  });
}

tl_status tl_measure(const tl_context* context, const tl_program* program, const tl_target* target,
                     const tl_options* options, double* out_microseconds, tl_error** out_error) {
  return guard("tl_measure", out_error, [&]() -> Checked {
    if (out_microseconds) *out_microseconds = 0;
    if (Checked ok = check_arguments(context, program, target, out_microseconds, "out_microseconds"); !ok)
      return ok;
    const OptionValues values = options ? options->values : OptionValues();
    const CallLimits limits(context, values.timeout_ms);
    auto converted = options_of({context, program, target, values, limits.get()}, "tl_measure");
    if (!converted) return converted.error();
    auto time = tune::measure_program(program->program, target->target, *converted);
    if (!time) return time.error();
    *out_microseconds = *time;
    return Unit{};
  });
}

void tl_tuning_retain(tl_tuning* tuning) { retain(tuning); }
void tl_tuning_release(tl_tuning* tuning) { release(tuning); }

size_t tl_tuning_count(const tl_tuning* tuning) { return tuning ? tuning->rows.size() : 0; }

tl_status tl_tuning_configuration(const tl_tuning* tuning, size_t index, tl_configuration_info* out_info) {
  return guard("tl_tuning_configuration", nullptr, [&]() -> Checked {
    if (!tuning || !out_info) return null_argument(tuning ? "out_info" : "tuning");
    const tl_tuning::Row* row = find_row(tuning, index);
    if (!row) return no_such_row(index);
    tl_configuration_info info{};
    info.value_count = static_cast<uint32_t>(row->values.size());
    info.values = row->values.data();
    info.microseconds = row->configuration.microseconds;
    info.refusal = row->configuration.refused ? row->refusal.c_str() : nullptr;
    info.measured_microseconds = row->configuration.measured;
    return fill_struct(out_info, info, offsetof(tl_configuration_info, measured_microseconds));
  });
}

tl_status tl_tuning_program(const tl_tuning* tuning, size_t index, tl_program** out_program,
                            tl_error** out_error) {
  return guard("tl_tuning_program", out_error, [&]() -> Checked {
    if (out_program) *out_program = nullptr;
    if (!tuning || !out_program) return null_argument(tuning ? "out_program" : "tuning");
    const tl_tuning::Row* row = find_row(tuning, index);
    if (!row) return no_such_row(index);
    if (row->configuration.refused) return *row->configuration.refused;
    hand_out_program(row->configuration.program, tuning->source, out_program);
    return Unit{};
  });
}

}  // extern "C"
