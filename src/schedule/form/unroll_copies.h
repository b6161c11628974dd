// Loops of a constant number of trips that do nothing but fill parts of tiles are written out:
//
//   unroll h in 0 .. 2 { copy K[cast(i64, page[2 * t + h]) :+ 1, 0 :+ 64, ..] -> Ks[h * 64 :+ 64, ..] }
//
// requires: a checked program. ensures: the same meaning: the copies of one trip after those of the other,
// with places in the tile that are known by number (analysis/tile_parts.h).
// why here: part of canonical_form.h, before what looks at copies one by one.
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"

namespace tilegen::schedule {

// The copy of a trip after the first, whose copy stands where the loop's did.
struct UnrolledCopy {
  ir::StmtId made, source;
  std::string trip;  // "h#1"
};
// In the order in which they were made; the source of one may have been made before. `changed`: a loop of one
// trip makes none.
std::vector<UnrolledCopy> unroll_copies(ir::Program& p, bool& changed);

}  // namespace tilegen::schedule
