// ptxas 13.0 makes max.u16 and setp.eq.s16 with the same constant one instruction for sm_90,
// VIMNMX.U16x2 with a predicate, which says that the constant is the lesser one: max(x, 1) == 1 is x >= 1
// there. So do min, the signed forms and those of packed halves. Words are compared by instructions of their
// own.
#pragma once

#include <llvm/IR/Module.h>

namespace tilegen::codegen {

// Minima and maxima of integers of 8 and 16 bits become those of 32 bits. Comes last: others narrow what few
// bits suffice for.
void widen_extrema(llvm::Module& module);

}  // namespace tilegen::codegen
