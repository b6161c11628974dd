// What is left of a program once its draft's names are resolved.
#pragma once

#include <map>

#include "ir/draft.h"
#include "ir/program.h"

namespace tilegen::ir {

// Leaves out variables that no kernel, loop or parameter declares, the expressions that nothing holds, and
// the views, which nothing names any more.
void pack_program(Program& p, const std::map<BufferId, TileView>& views = {});

}  // namespace tilegen::ir
