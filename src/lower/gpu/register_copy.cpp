// Copies from global to shared memory in two halves: into registers of the threads, one for each point that
// a thread walks, and from there to the tile.
//
// The registers are of the source's type: a cast in the first half would wait for the load.
#include <numeric>

#include "lower/addressing.h"
#include "lower/gpu/element_nest.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"

namespace tilegen::lower {

FragmentView OpLowering::loaded() const { return {k_.names.loaded.at(op_.stmt), &*plan_.iteration}; }

namespace {

// The same points of a thread, in an order in which those that lie side by side along `dim` come first.
layout::Fragment together_along(const layout::Fragment& f, int dim) {
  std::vector<layout::Digit> digits(f.map().digits().begin(), f.map().digits().end());
  int64_t extent = 1, stride = 0;
  for (const layout::Digit& d : digits)
    if (d.output == layout::kRegister && d.dim == dim && d.weight == 1) extent = d.extent, stride = d.stride;
  for (layout::Digit& d : digits)
    if (d.output == layout::kRegister && d.stride <= stride)
      d.stride = d.stride == stride ? 1 : d.stride * extent;
  const auto map = layout::Layout::make(f.shape(), std::move(digits), f.map().outputs());
  const auto made = map ? layout::Fragment::make(*map, f.threads()) : f;
  return made ? *made : f;
}

}  // namespace

// Along the tile's neighbours, which are not the tensor's; of registers whose layouts are known.
void OpLowering::deposit_across(int operand, const PointValue& value) {
  if (k_.facts || k_.condition_search) return;
  const ir::BufferId to = tile_op_->operands[static_cast<size_t>(operand)].buffer;
  const layout::Layout& lies = *k_.plan_of_value(value_of(k_, to)).memory;
  const ops::ElementAccess& a = op_.view.accesses[static_cast<size_t>(operand)];
  int dim = -1;
  int64_t together = 1;
  for (int d = 0; d < lies.rank(); ++d)
    if (const int64_t run = lies.contiguous_run(d); run > together)
      dim = a.dim_of[static_cast<size_t>(d)], together = run;
  together = std::gcd(together, k_.in.target.vector_bytes / ir::dtype_bytes(k_.in.program.buffer(to).type));
  emit_walk(
      k_, {together_along(*plan_.iteration, dim), together, op_.path},
      [&](const Nest& nest, thread::Block& body) {
        store_element(nest, to, element_at(operand, nest.point), value(nest.point), ExprId(), body);
      },
      out_);
}

void OpLowering::load_and_deposit(int operand, const PointValue& value) {
  using Half = LoweredStatement::Half;
  for (Half half : {Half::load, Half::deposit}) {
    k_.at.half = half;
    load_or_deposit(operand, value);
  }
  k_.at.half = Half::none;
}

// operand[point] = value(point), or what value() loads, kept.
void OpLowering::load_or_deposit(int operand, const PointValue& value) {
  const bool loads = k_.at.half == LoweredStatement::Half::load;
  if (!loads && plan_.transposing.value_or(false)) return deposit_across(operand, value);
  const ir::BufferId to = tile_op_->operands[static_cast<size_t>(operand)].buffer;
  emit_nest(*plan_.iteration, plan_.vector, [&](const Nest& nest, thread::Block& body) {
    if (loads)
      store_register(k_, loaded(), nest.point, load(1 - operand, nest.point), ExprId(), body, op_.path);
    else
      store_element(nest, to, element_at(operand, nest.point), value(nest.point), ExprId(), body);
  });
}

}  // namespace tilegen::lower
