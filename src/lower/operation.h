// One statement of the program that does work: a tile operation, parallel loop or store, in the form that its
// plan gives it, once for each of its versions.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// What is lowered from here on belongs to the statement; its path.
const std::string& begin_operation(LoweringContext& k, ir::StmtId id);
void lower_operation(LoweringContext& k, const expand::Run& s, thread::Block& out);
void lower_operation(LoweringContext& k, const expand::Issue& s, thread::Block& out);
void lower_operation(LoweringContext& k, const expand::Deposit& s, thread::Block& out);
void lower_operation(LoweringContext& k, const expand::Version& s, thread::Block& out);

}  // namespace tilegen::lower
