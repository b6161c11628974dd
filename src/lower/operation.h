// One statement of the program that does work: a tile operation, parallel loop or store, in the form that its
// plan gives it.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// What is lowered from here on belongs to the statement; its path.
const std::string& begin_operation(LoweringContext& k, ir::StmtId id);
void lower_operation(LoweringContext& k, ir::StmtId id, thread::Block& out);

}  // namespace tilegen::lower
