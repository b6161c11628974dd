// From a caller's program and options to an artifact: the configuration, the parts of sizes, the code.
#pragma once

#include <chrono>

#include "capi/compile_options.h"

namespace tilegen::capi {

using Clock = std::chrono::steady_clock;

// " in 12.345 ms"
std::string time_since(Clock::time_point start);

// `gate` is that of `options`. What the option `tune` chooses is compiled; for the sizes of ranges in parts.
Expected<std::shared_ptr<const driver::Artifact>> compile_program(
    const tl_context& context, const tl_program& program, const tl_target& target, const OptionValues& values,
    driver::CompileOptions options, const CallLimits& call, CallbackGate& gate);

}  // namespace tilegen::capi
