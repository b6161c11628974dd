// How one gemm is multiplied: the instruction, its split over warps, and the layouts of the operands that
// follow. Chosen by schedule/gemm_plan.h; layout inference takes it as given.
#pragma once

#include <optional>
#include <string>

#include "plan/schedule.h"

namespace tilegen::plan {

struct GemmPlan {
  Engine engine = Engine::mma;
  std::string atom;
  int64_t warps_m = 1, warps_n = 1;
  layout::Fragment c;
  std::optional<layout::Fragment> a_fragment, b_fragment;  // operands in fragment scope
  std::optional<layout::Layout> a_memory, b_memory;        // operands in shared scope
  // Warpgroup instructions: copies of operands in shared memory, in the form that the instructions read,
  // where `a_memory` or `b_memory` is not in it. Two of each, used in turn.
  std::optional<layout::Layout> a_copy, b_copy;
  int64_t steps_ahead = 0;    // as OpPlan's
  bool loop_over_k = false;   // GPUs: of multiply-adds, which no operand in registers can have
  int64_t registers = 0;      // GPUs: 32-bit registers a thread needs for it, accumulators included
  double cycles = 0;          // GPUs: of a multiprocessor, by the cost model
  int64_t own_registers = 0;  // of them: beside what holds C, A and B, while it runs
  std::string reason;
  std::string no_warpgroups;  // why warpgroup instructions of the target do not do it, or empty
  std::string note;           // what is said of it: why a better engine does not do it, or empty
};

}  // namespace tilegen::plan
