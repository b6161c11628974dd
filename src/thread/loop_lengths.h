// Launches under which the loops of a thread program run a given number of times.
#pragma once

#include <vector>

#include "thread/index_program.h"
#include "thread/thread_program.h"

namespace tilegen::thread {

class LoopLengths {
 public:
  explicit LoopLengths(const ThreadProgram& p);
  // Dims for which loops run `trips` times, as far as that can be had dim by dim. `large`: a dim that no loop
  // depends on is.
  void choose(int64_t trips, bool large, PointValues& values) const;

 private:
  int64_t dim(ir::VarId var, int64_t trips, bool large) const;

  const ThreadProgram& p_;
  std::vector<IndexProgram> extents_;
};

}  // namespace tilegen::thread
