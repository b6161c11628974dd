// What is left of a program once its draft's names are resolved.
#pragma once

#include <vector>

#include "ir/program.h"

namespace tilegen::ir {

// Leaves out variables that no kernel, loop or parameter declares, and the expressions that nothing holds.
void pack_program(Program& p);

}  // namespace tilegen::ir
