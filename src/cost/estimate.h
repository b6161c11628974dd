// The time of a planned program, from a model of its machine: what each op takes of each pipe, what nothing
// hides, how many blocks run at once and in how many waves.
//
// requires: a program in the form that was planned (schedule/form/canonical_form.h), and its schedule, with
//   every decision taken; a target of threads.
// ensures: a time for every kernel, with the parts that it is made of. The same input, the same output.
// why here: tuning compares configurations by it, and users read it; nothing is lowered or run.
// refuses: nothing; `known` tells that a loop's length or the grid is not to be told from sizes.
#pragma once

#include <string>
#include <vector>

#include "cost/kernel_walk.h"
#include "cost/occupancy.h"

namespace tilegen::cost {

// Of one block.
struct OpEstimate {
  std::string op;
  OpPlace place = OpPlace::threads;
  double times = 0;  // it is done
  Work work;         // of all these times
};

// What a kernel's time follows: a pipe of a multiprocessor; what a block waits for though nobody else is
// busy; L2; device memory; zeros that the copy engine fills in outside of tensors; the launch.
enum class Bound : uint8_t { pipe, latency, l2, memory, filling, launch };

struct KernelEstimate {
  std::string kernel;
  std::vector<OpEstimate> ops;
  Occupancy occupancy;
  double blocks = 0, waves = 0;
  Span block;  // of one, in the mean of the grid
  double cycles = 0;
  double memory_bytes = 0;  // of device memory, read and written
  Bound bound = Bound::pipe;
  Pipe pipe = Pipe::issue;  // Bound::pipe
  bool known = true;
  double microseconds = 0;
  std::string bound_text() const;  // "tensor units", "device memory"
};

struct Estimate {
  std::vector<KernelEstimate> kernels;  // in launch order
  double microseconds() const;
};

Estimate estimate(const ir::Program& p, const plan::Schedule& schedule, const target::Target& t,
                  const Sizes& sizes);

// One kernel, with works of its ops other than the plan's, a loop whose tiles are asked for ahead, or all the
// registers that it wants: what would be if. `sizes` are those of `k`.
KernelEstimate estimate_kernel(int kernel, const PlannedKernel& k, SizedProgram& sizes,
                               const std::vector<OpWork>& works, const Ahead& ahead = {}, bool spills = true);
std::vector<OpWork> works_of(const PlannedKernel& k);

}  // namespace tilegen::cost
