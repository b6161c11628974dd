// What the options of a call ask of the compiler.
#pragma once

#include <memory>

#include "capi/context_log.h"
#include "driver/compile.h"

namespace tilegen::capi {

// Dumps pass `gate` while it is open; `context` must live until the call ends.
Expected<driver::CompileOptions> compile_options(const tl_context& context, const ir::Program& program,
                                                 const OptionValues& values,
                                                 const std::shared_ptr<CallbackGate>& gate);

}  // namespace tilegen::capi
