// Copies from global to shared memory in two halves: into registers of the threads, one for each point that
// a thread walks, and from there to the tile.
//
// The registers are of the source's type: a cast in the first half would wait for the load.
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"

namespace tilegen::lower {

FragmentView OpLowering::loaded() const { return {k_.names.loaded.at(op_.stmt), &*plan_.iteration}; }

// operand[point] = value(point), or what value() loads, kept.
void OpLowering::load_or_deposit(int operand, const PointValue& value) {
  const bool loads = k_.at.half == LoweredStatement::Half::load;
  const ir::BufferId to = tile_op_->operands[static_cast<size_t>(operand)].buffer;
  emit_nest(*plan_.iteration, plan_.vector, [&](const Nest& nest, thread::Block& body) {
    if (loads)
      store_register(k_, loaded(), nest.point, load(1 - operand, nest.point), ExprId(), body, op_.path);
    else
      store_element(nest, to, element_at(operand, nest.point), value(nest.point), ExprId(), body);
  });
}

}  // namespace tilegen::lower
