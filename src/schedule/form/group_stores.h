// Which stores are done in one parallel loop, whatever loops a program writes them in: those that share
// elements of memory.
//
// requires: a checked program. ensures: the same meaning. Neighbouring loops over the same points that share
// an element of memory are one, if what the one writes the other touches at the same points only; statements
// of one loop that share none are loops of their own. A branch is one statement. Loops whose threads the
// program fixes stay as they are.
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
