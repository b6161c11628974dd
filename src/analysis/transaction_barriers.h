// Transaction barriers of the program (ir/transaction_barriers.h) on a machine.
#pragma once

#include "ir/transaction_barriers.h"
#include "target/target.h"

namespace tilegen::analysis {

// Threads of the machine arrive and wait at them. Elsewhere they meet at barriers of the block, where memory
// passes between them.
inline bool has_transaction_barriers(const target::Target& t) { return t.transaction_barrier_bytes > 0; }

}  // namespace tilegen::analysis
