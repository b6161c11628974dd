// Differences that ptxas 13.0 takes to be what they are not:
//
//   neg.s16, widened by its sign     the number 32768 of the least one, -32768
//   mul.hi.u32 - y, in 64 bits       2^32 less where the lower word of y is 0: the word is negated by itself,
//                                    added by IMAD.HI, and the upper one takes the carry for a borrow
#pragma once

#include <llvm/IR/Module.h>

namespace tilegen::codegen {

// The first in 32 bits; the second as a sum with the complement. Comes last: others make them anew.
void rewrite_differences(llvm::Module& module);

}  // namespace tilegen::codegen
