// The configurations of a caller's program, in the order of the cost model or of measured times.
#pragma once

#include "capi/objects.h"
#include "tune/specialise.h"

namespace tilegen::capi {

// Who chooses, as the option `tune` has it.
enum class TuneChoice : uint8_t { none, model, measure };
Expected<TuneChoice> tune_choice(const OptionValues& values);

tune::MeasureOptions measure_options(const OptionValues& values);

// tune::rank of the text that `program` was made from; without compile-time parameters it is the one.
Expected<std::vector<tune::Configuration>> rank_configurations(const tl_context& context,
                                                               const tl_program& program,
                                                               const target::Target& target,
                                                               const driver::CompileOptions& options);

// tune::fastest of it, in the same way.
Expected<tune::Configuration> fastest_configuration(const tl_context& context, const tl_program& program,
                                                    const target::Target& target,
                                                    const driver::CompileOptions& options,
                                                    const tune::MeasureOptions& how);

// tune::specialise of it, in the same way.
Expected<tune::Specialising> specialise_program(const tl_context& context, const tl_program& program,
                                                const target::Target& target,
                                                const driver::CompileOptions& options,
                                                const tune::SpecialiseOptions& how);

}  // namespace tilegen::capi
