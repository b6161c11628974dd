// Reference interpreter of the tile program: slow, sequential, obviously right. The oracle of every other
// executor.
//
// Values are kept per element in their dtype's exact representation; each operation follows ir/expr.h and the
// op's reference meaning. Blocks run one after another in row-major order. Reading an on-chip element nobody
// wrote, and indexing an on-chip buffer out of range, are errors with the user's location.
#pragma once

#include <cstdint>
#include <span>

#include "ir/program.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"

namespace tilegen::interp {

// Of one kernel: more would not end within anybody's lifetime.
inline constexpr int64_t kMaxBlocks = int64_t{1} << 31;

// `params`: one 8-byte slot per Program::params entry, as for run_host. Tensors are host memory. Ends early,
// with what was written until then, when `cancellation` asks for it.
Checked interpret(const ir::Program& program, std::span<const uint64_t> params,
                  const Cancellation* cancellation = nullptr);

}  // namespace tilegen::interp
