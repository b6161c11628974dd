// Elements that one statement stores in registers for one other, moved into that one.
//
//   parallel i in 64 { t[i] = x[i] * 2 }
//   parallel i in 64 { y[i] = exp(t[i]) }      ->      parallel i in 64 { y[i] = exp(x[i] * 2) }
//
// requires: a checked program. ensures: the same results. A tile is forwarded that one store of a parallel
// loop writes and one store reads, each point what the same point wrote, in the same block after it; a
// scalar that is made of dims, scalars and numbers wherever it is read. Nothing is computed at more points
// than before, and nothing in between writes what is read later now. Loads of memory move past element-wise
// work only.
// why here: part of canonical_form.h.
// refuses: silently, what would make an expression large.
#pragma once

#include "ir/program.h"

namespace tilegen::schedule {

// False: nothing was changed.
bool forward_temporaries(ir::Program& p);

}  // namespace tilegen::schedule
