// LLVM 19.1.7 folds `v_or_b32 x, -1` into a move of x where the constant becomes known after selection only:
// in a half of an `or` of 64 bits, as in (a * b) | ((a & 65535) ^ -77). Halves that are instructions of the
// IR are folded before.
#pragma once

#include <llvm/IR/Module.h>

namespace tilegen::codegen {

// Every `or` of two 64-bit values becomes one of two halves. Comes last: others put the halves together.
void split_wide_or(llvm::Module& module);

}  // namespace tilegen::codegen
