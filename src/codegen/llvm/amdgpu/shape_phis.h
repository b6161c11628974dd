// The sums of a matrix instruction are one value of 4 or 16 elements in LLVM, and so many registers of the
// program. A loop carries registers, each as a phi of its own; LLVM then takes every sum apart and puts it
// together again in each iteration, which its selection and its coalescer of registers undo at length.
//
// LLVM's own pass splits phis of vectors, sums too: it is switched off, and this one splits all others. Their
// elements, as of a load whose words are used in another order, need not lie side by side; where they do all
// the same LLVM copies some, and a copy waits for the load.
#pragma once

#include <llvm/IR/Module.h>

namespace tilegen::codegen {

// Phis of vectors become phis of elements; then those that take all elements of one value on one way in, none
// of a load, become a phi of such values. Vectors put together of another's elements in their places are
// that other. Comes behind other passes, which split and pair.
void shape_phis(llvm::Module& module);

}  // namespace tilegen::codegen
