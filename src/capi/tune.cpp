// Tuning: the configurations of a program in the order of the cost model.
#include "capi/tune.h"

#include "capi/bound_program.h"
#include "capi/compile_options.h"
#include "capi/guard.h"
#include "support/callback_gate.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

struct tl_tuning : RefCounted {
  struct Row {
    tune::Configuration configuration;
    std::vector<int64_t> values;
    std::string refusal;
  };
  std::vector<Row> rows;
  std::shared_ptr<const std::string> source;
  std::string file;
};

namespace tilegen::capi {

Expected<std::vector<tune::Configuration>> rank_configurations(const tl_context& context,
                                                               const tl_program& program,
                                                               const target::Target& target,
                                                               const driver::CompileOptions& options) {
  if (Checked has = has_text_to_bind(program); !has) return has.error();
  const auto bind =
      [&](const std::vector<ir::ParamBinding>& values) -> Expected<std::shared_ptr<const ir::Program>> {
    if (!program.source) return program.program;
    return checked_program(context.limits, *program.source, program.file, values, options.cancellation);
  };
  return tune::rank(*program.program, bind, target, options);
}

}  // namespace tilegen::capi

namespace {

const tl_tuning::Row* find_row(const tl_tuning* tuning, size_t index) {
  return index < tuning->rows.size() ? &tuning->rows[index] : nullptr;
}

Error no_such_row(size_t index) {
  return Error(DiagCode::bad_enum, "", "there is no configuration " + std::to_string(index),
               "count them with tl_tuning_count");
}

}  // namespace

extern "C" {

tl_status tl_tune(const tl_context* context, const tl_program* program, const tl_target* target,
                  const tl_options* options, tl_tuning** out_tuning, tl_error** out_error) {
  return guard("tl_tune", out_error, [&]() -> Checked {
    if (out_tuning) *out_tuning = nullptr;
    if (!context || !program) return null_argument(context ? "program" : "context");
    if (!target || !out_tuning) return null_argument(target ? "out_tuning" : "target");
    const OptionValues values = options ? options->values : OptionValues();
    const CallLimits call(context, values.timeout_ms);
    auto converted = compile_options(*context, *program->program, values, std::make_shared<CallbackGate>());
    if (!converted) return converted.error();
    converted->cancellation = call.get();
    auto ranked = rank_configurations(*context, *program, target->target, *converted);
    if (!ranked) return ranked.error();
    auto made = std::make_unique<tl_tuning>();
    made->source = program->source;
    made->file = program->file;
    for (tune::Configuration& c : *ranked) {
      tl_tuning::Row row;
      for (const ir::ParamBinding& v : c.values) row.values.push_back(v.value);
      if (c.refused) row.refusal = c.refused->to_text();
      row.configuration = std::move(c);
      made->rows.push_back(std::move(row));
    }
    *out_tuning = made.release();
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
    return fill_struct(out_info, info);
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
    hand_out_program(row->configuration.program, tuning->source, tuning->file, out_program);
    return Unit{};
  });
}

}  // extern "C"
