// What the options of a call ask of the compiler.
#pragma once

#include <memory>

#include "capi/context_log.h"
#include "driver/compile.h"
#include "tune/size_points.h"

namespace tilegen::capi {

// What the option `sizes` says, "m=1..8192,n=512".
struct AskedSizes {
  cost::Sizes sizes;  // of a range the largest
  std::vector<tune::SizeRange> ranges;
};
Expected<AskedSizes> asked_sizes(const OptionValues& values, const ir::Program& program);

// Where a call takes one size of each.
Checked refuse_ranges(const OptionValues& values, const ir::Program& program, const char* call);

// Dumps pass `gate` while it is open; `context` must live until the call ends.
Expected<driver::CompileOptions> compile_options(const tl_context& context, const ir::Program& program,
                                                 const OptionValues& values,
                                                 const std::shared_ptr<CallbackGate>& gate);

}  // namespace tilegen::capi
