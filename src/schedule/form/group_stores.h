// Which stores are done in one parallel loop, whatever loops a program writes them in: those that share
// elements of memory.
//
// requires: a checked program. ensures: the same meaning. Loops over the same points, one behind the other,
// are one from the first to the last that share an element of memory, if what the one writes the others touch
// at the same points only; statements of one loop that share none are loops of their own. A branch is one
// statement. Loops whose threads the program fixes stay as they are.
// why here: part of canonical_form.h: what is decided of an op is decided of as few stores as can be, and no
// element of memory is loaded twice for it.
#pragma once

#include <utility>
#include <vector>

#include "ir/program.h"

namespace tilegen::schedule {

struct StoreGroups {
  bool joined = false;                                   // some loops
  std::vector<std::pair<ir::StmtId, ir::StmtId>> parts;  // loops made of others, with their first statements
};
StoreGroups group_stores(ir::Program& p);

}  // namespace tilegen::schedule
