// Sums that a loop carries in parts, one a thread of the row.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

void split_sums(LoweringContext& k, ir::StmtId loop, thread::Block& out);  // before the loop
void join_sums(LoweringContext& k, ir::StmtId loop, thread::Block& out);   // after it

}  // namespace tilegen::lower
