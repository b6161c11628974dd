// Transaction barriers of the program (ir/transaction_barriers.h).
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// Those of the kernel, where the machine has such, at their place of the memory plan.
void declare_barriers(LoweringContext& k);
// An arrival or a wait of the threads that the operation names.
void on_barrier(LoweringContext& k, ir::StmtId op, thread::Block& out);

// The machine has enough barriers for those that the program names and those of the plan.
Checked has_numbers(const thread::ThreadProgram& p, const std::string& kernel);

// A store's value is read from shared memory only where the store is made: other warps may be writing there.
// So they may where it is read from the memory that it writes, and elsewhere barriers stand in between.
void guard_loads(thread::ThreadProgram& p);

}  // namespace tilegen::lower
