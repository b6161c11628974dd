#include "schedule/memory/matrix_stores.h"

#include <algorithm>

#include "analysis/alternation.h"
#include "analysis/exchange.h"
#include "target/operand_matrices.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::ValueId;
using layout::Digit;
using layout::Fragment;
using layout::Layout;

namespace {

constexpr int64_t kRun = target::kMatrixRowBytes / 2;  // elements

// No element has two holders in a warpgroup, of which `copies` have the same, and nothing is padding.
bool holds_matrices(const Fragment& f, int64_t copies, const target::Target& t) {
  const int64_t warp = t.warp;
  if (f.rank() != 2 || f.replicas() != copies) return false;
  bool pair = false, columns = false, rows = false;
  int64_t elements = 1;
  for (const Digit& d : f.map().digits()) {
    if (d.dim == layout::kReplica) {
      if (d.stride < t.warpgroup) return false;
      continue;
    }
    elements *= d.extent;
    if (d.output == layout::kRegister) {
      pair |= d.dim == 1 && d.weight == 1 && d.extent == 2 && d.stride == 1;
    } else if (d.stride < warp) {
      const bool column = d.dim == 1 && d.weight == 2 && d.extent == 4 && d.stride == 1;
      const bool row = d.dim == 0 && d.weight == 1 && d.extent == 8 && d.stride == 4;
      if (!column && !row) return false;
      columns |= column;
      rows |= row;
    }
  }
  return pair && columns && rows && elements == f.shape()[0] * f.shape()[1] &&
         elements * copies == f.registers() * f.threads();
}

// Every eighth element along a dimension begins 16 aligned bytes: along the second, or the first where the
// second is not dense.
bool has_aligned_runs(const Layout& l) {
  const size_t dim = l.contiguous_run(1) % kRun == 0 ? 1 : 0;
  if (l.contiguous_run(static_cast<int>(dim)) % kRun != 0) return false;
  std::vector<int64_t> at(2, 0);
  for (at[dim] = 0; at[dim] < l.shape()[dim]; at[dim] += kRun)
    for (at[1 - dim] = 0; at[1 - dim] < l.shape()[1 - dim]; ++at[1 - dim])
      if (l.offset(at) % kRun != 0) return false;
  return true;
}

bool is_whole(const ir::Program& p, const ir::Region& r) {
  int64_t offset = 0;
  return r.extents == p.tile_shape(r.buffer) &&
         std::all_of(r.offsets.begin(), r.offsets.end(),
                     [&](ir::ExprId at) { return p.exprs.is_const_int(at, &offset) && offset == 0; });
}

}  // namespace

bool can_store_matrices(const ir::Program& p, const analysis::KernelOps& ops, const KernelOp& op,
                        const target::Target& t, analysis::ValuePlans values,
                        const std::vector<plan::ConversionPlan>& conversions, const plan::OpPlan& plan,
                        int64_t copies) {
  if (!t.store_matrix) return false;
  const auto* copy = p.as<ir::TileOp>(op.stmt);
  if (!copy || !ops::is_copy(*copy) || plan.engine == plan::Engine::async_copy ||
      plan.engine == plan::Engine::tensor_copy)
    return false;
  const ir::Region &from = copy->operands[0], &to = copy->operands[1];
  if (ir::dtype_bytes(p.buffer(to.buffer).type) != 2 || p.buffer(to.buffer).scope != ir::MemScope::shared ||
      p.buffer(from.buffer).scope == ir::MemScope::global || !is_whole(p, from) || !is_whole(p, to))
    return false;
  const ValueId source = ops.value_of(op, from.buffer), value = ops.value_of(op, to.buffer);
  if (!source.valid() || !value.valid()) return false;
  const plan::ValuePlan& held = values[source];
  const auto& tile = values[value].memory;
  const bool in_memory = std::count(plan.through_memory.begin(), plan.through_memory.end(), held.value) > 0;
  if (!held.fragment || in_memory || !tile) return false;
  Fragment seen = *held.fragment;
  for (const analysis::OpConversion& c : analysis::conversions_of(p, ops, op, values, conversions))
    if (c.value == source && c.before) seen = c.form;
  return holds_matrices(seen, copies, t) && tile->shape() == seen.shape() && has_aligned_runs(*tile);
}

void plan_matrix_stores(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                        const plan::KernelSchedule* given, plan::KernelSchedule& s) {
  if (!t.store_matrix) return;
  for (const KernelOp& op : ops.ops) {
    plan::OpPlan& plan = s.ops[ops.id_of(op).index()];
    // One warpgroup stores where they have iterations by turns.
    const int64_t copies = analysis::has_turns(s, op.path) ? *s.threads / t.warpgroup : 1;
    if (!can_store_matrices(p, ops, op, t, s.values, s.conversions, plan, copies)) continue;
    const plan::OpPlan* own = given ? plan::find_op(*given, op.path) : nullptr;
    plan.matrix_stores = !own || own->matrix_stores.value_or(true);
  }
}

}  // namespace tilegen::schedule
