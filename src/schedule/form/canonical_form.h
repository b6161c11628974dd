// The form of a program that is planned: programs that differ in how the same element-wise work is written
// have one form, so that no rule of planning asks how it is.
//
//   0. Sparse products that instructions do not do are products of operands that are expanded before them.
//   1. Loops of a constant number of trips that only fill parts of tiles are written out.
//   2. Temporaries are forwarded: what one statement stores in registers for one other to load at the same
//      point is computed there; a scalar of dims and scalars is computed where it is used.
//   3. Parallel loops over the same points that load the same element of memory, or of which one loads what
//      the other stores, are one loop with those that stand between them.
//   4. Statements of a parallel loop that share nothing in memory are loops of their own.
//   5. Variables of a parallel loop stand in the order of the dims that they walk.
//   6. Where products are asynchronous, what work on their sums reads in memory once a row is read beside
//      them.
//
//   parallel i in 64 { t[i] = old[i] - top[i] }
//   parallel i in 64 { f[i] = exp(t[i])              ->  parallel i in 64 { f[i] = exp(old[i] - top[i]) }
//                      sum[i] = sum[i] * f[i] }          parallel i in 64 { sum[i] = sum[i] * f[i] }
//
// requires: a checked program. ensures: the same meaning: iterations of a parallel loop are
// independent, and an element is rounded to its type before it is stored. Statements keep their paths; a loop
// made of a part of another has the path of its first statement ("k/i/store#1"), one that reads ahead for
// another stands below that one's ("k/i.j/preload#0"), the copy of a later trip below the first's
// ("k/h/copy#0/h#1"). The hash is the program's as written.
// why here: before all planning; nothing after sees the program as written.
// refuses: on hosts all but the sparse products: there a tile is in memory, a loop is one pass over it, and
// lower/fuse_loops.h joins passes.
#pragma once

#include <optional>

#include "ir/program.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// Nothing where the program has that form.
// `given`: what sparse products are to be done by.
std::optional<ir::Program> canonical_form(const ir::Program& p, const target::Target& t,
                                          const plan::Schedule* given = nullptr);

}  // namespace tilegen::schedule
