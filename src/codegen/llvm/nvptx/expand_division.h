// ptxas makes calls of divisions of 8, 16 and 64 bits, to functions of its own that share the caller's
// registers. Where these run short the functions spill, and CUDA 12.9's ptxas then restores a register to
// the value that it had at the first call: later calls lose what stood in it.
#pragma once

#include <llvm/IR/Module.h>

namespace tilegen::codegen {

// Divisions and remainders of 8 and 16 bits become those of 32 bits, which need no call; those of 64 bits
// become one of 32 bits where both numbers allow it, else a multiplication by the reciprocal. Comes last:
// others narrow what few bits suffice for. Divisors that are constants stay: LLVM multiplies.
void expand_divisions(llvm::Module& module);

}  // namespace tilegen::codegen
