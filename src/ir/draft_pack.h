// What is left of a program once its draft's names are resolved.
#pragma once

#include <map>

#include "ir/draft.h"
#include "ir/program.h"

namespace tilegen::ir {

// Leaves out variables that no kernel, loop or parameter declares, the expressions that nothing holds, and
// the views, which nothing names any more.
void pack_program(Program& p, const std::map<BufferId, TileView>& views = {});

// Statements in the order of a text: what was made stands among the others.
void order_statements(Program& p);

}  // namespace tilegen::ir
