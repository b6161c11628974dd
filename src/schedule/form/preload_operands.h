// What element-wise work on the sums of a product reads in memory, once a row, is read beside the product.
//
//   gemm a, b -> s                                      gemm a, b -> s
//   parallel i, j in 64, 64 {                           parallel i in 64 { x[i] = scale[i] * w[k] }
//     acc[i, j] = acc[i, j] + s[i, j]               ->  parallel i, j in 64, 64 {
//                              * (scale[i] * w[k])        acc[i, j] = acc[i, j] + s[i, j] * x[i]
//   }                                                   }
//
// requires: a checked program whose parallel loops have their variables in the order of the dims, a target
//   whose products are asynchronous. ensures: the same results. An expression is preloaded that reads memory
//   and nothing in registers, and is the same for all elements of a row of the sums: it takes few registers.
//   Nothing between reads other values than before: no statement that is passed writes what it reads. Loads
//   of a condition, and behind one, stay there.
// why here: part of canonical_form.h. A thread that waits for a product issues no load: the latency of the
//   loads, and the hand-over of the tile they read, would stand behind the wait in each iteration.
// refuses: silently, terms along the columns of the sums, which would take a register for every element of
//   a row, and loops of other than two variables.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace tilegen::schedule {

struct Preload {
  ir::StmtId loop;    // made, with one store
  ir::StmtId reader;  // the parallel loop that read memory
};
std::vector<Preload> preload_operands(ir::Program& p);

}  // namespace tilegen::schedule
