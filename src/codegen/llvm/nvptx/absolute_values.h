// ptxas 13.0 takes what abs.s16, abs.s32 and abs.s64 give for no less than 0, though of the least number
// it is less: of abs(x) < 0 it makes false, and abs(x) // y has the other sign. The greater one of x and -x
// is no way out: of max(max(x, -x), y) it makes VIMNMX3 for sm_90, without the minus.
#pragma once

#include <llvm/IR/Module.h>

namespace tilegen::codegen {

// Absolute values of integers become what their sign tells to do with the bits. Comes last: others make them
// anew.
void replace_absolute_values(llvm::Module& module);

}  // namespace tilegen::codegen
