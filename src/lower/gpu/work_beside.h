// Work of threads between the instructions of a product, in pieces: a loop over a thread's points that is
// unrolled anyway has a piece for each iteration.
//
//   unrolled i in 0..4 { tile[i * 64 + tid] = kept[i] }      mma; tile[tid] = kept[0]; kept[0] = A[.. + tid]
//   unrolled i in 0..4 { kept[i] = A[i * 64 + .. + tid] } -> mma; tile[64 + tid] = kept[1]; kept[1] = A[..]
//                                                            ..
//
// requires: lowered statements, deposits from registers and loads to them.
// ensures: the same work. Deposits keep their order, and so do loads; a load stands behind the deposits that
//   read its registers. What is no loop of such accesses keeps its place behind all in front of it.
// why here: a wave issues in order, and its matrix unit waits where many accesses to memory stand together.
#pragma once

#include <vector>

#include "lower/lowering_context.h"

namespace tilegen::lower {

class WorkBeside {
 public:
  WorkBeside(LoweringContext& k, const thread::Block& work);

  // Appends the next pieces, about as many each time, of `places` times. The last ones stay free: what was
  // loaded then has longer to arrive than until the next iteration comes to it.
  void deal(int64_t places, thread::Block& out);

 private:
  std::vector<thread::StmtId> pieces_;
  int64_t dealt_ = 0, next_ = 0;
};

}  // namespace tilegen::lower
