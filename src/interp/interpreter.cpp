// Kernels in order, blocks in row-major order, statements one after another.
#include "interp/interpreter.h"

#include "interp/execution.h"
#include "ops/index_space.h"

namespace tilegen::interp {
namespace {

Checked run_kernel(Execution& run, const ir::Program& program, size_t index) {
  const ir::Kernel& kernel = program.kernels[index];
  const auto grid = run.grid_of(kernel);
  if (!grid) return grid.error();
  const std::vector<ir::BufferId> owned = run.place_tiles(index);
  ops::for_each_index(*grid, [&](std::span<const int64_t> block) {
    for (size_t d = 0; d < block.size(); ++d) run.evaluator().set(kernel.block_vars[d], block[d]);
    run.evaluator().count_work();
    for (ir::BufferId b : owned) run.buffers()[b.value].forget();
    run.run_block(kernel.body);
    return !run.failed();
  });
  for (ir::BufferId b : owned) run.buffers()[b.value] = Storage();
  return Unit{};
}

}  // namespace

Checked interpret(const ir::Program& program, std::span<const uint64_t> params,
                  const Cancellation* cancellation) {
  Execution run(program, cancellation);
  if (Checked bound = run.bind(params); !bound) return bound;
  for (size_t k = 0; k < program.kernels.size() && !run.failed(); ++k)
    if (Checked ran = run_kernel(run, program, k); !ran) return ran;
  return run.outcome();
}

}  // namespace tilegen::interp
