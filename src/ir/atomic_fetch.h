// Atomic operations of tiles that keep the old values, in statements that executors have.
//
//   atomic x -> D[i, j], old {kind = exchange}
//     ->  parallel p, q in 32, 64 { before[p, q] = atomic_exchange(D[i + p, j + q], x[p, q]) }
//         parallel p, q in 32, 64 { old[p, q] = before[p, q] }
//
// A shared tile of the program takes the old values itself, where it is not the source.
//
// requires: regions of a program being made, in a block outside of parallel loops.
// why here: parser and builder make the same statements of it.
// refuses: shapes and types that differ, operations that the type has not, old values in global memory.
#pragma once

#include <optional>

#include "ir/program.h"
#include "support/limits.h"

namespace tilegen::ir {

struct AtomicFetch {
  Region src, dst, old;
  AtomicKind kind = AtomicKind::add;
};
// Appends the statements to `block`; what is wrong otherwise, without a place.
std::optional<Diagnostic> add_atomic_fetch(Program& p, const AtomicFetch& what,
                                           const SourceLocation& location, Block& block,
                                           const Limits& limits);

}  // namespace tilegen::ir
