// LLVM 19.1.7 makes a move between lanes (DPP) part of the instructions that use its result, and then drops
// the move. Where the result is half of a register pair too, it follows only what reads that half alone: what
// reads the pair as a whole, as a packed addition does, is left with a register that nothing has written.
#pragma once

#include <llvm/IR/Module.h>

namespace tilegen::codegen {

// A move stays one where something uses its result that need not be an instruction of one register. Comes
// last: others put vectors together and take them apart.
void keep_lane_moves(llvm::Module& module);

}  // namespace tilegen::codegen
