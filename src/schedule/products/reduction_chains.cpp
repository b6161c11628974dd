#include "schedule/products/reduction_chains.h"

#include <algorithm>

namespace tilegen::schedule {

namespace {

constexpr int64_t kMaxChains = 2;
constexpr int64_t kManyElements = 16;  // of a result

bool in_any_order(ir::ReduceKind kind) { return kind == ir::ReduceKind::max || kind == ir::ReduceKind::min; }

}  // namespace

void plan_reduction_chains(const ir::Program& p, const analysis::KernelOps& ops,
                           const plan::KernelSchedule* given, plan::KernelSchedule& s) {
  const bool producer = s.has_producer();
  for (const analysis::KernelOp& op : ops.ops) {
    const auto* tile_op = p.as<ir::TileOp>(op.stmt);
    if (op.form != analysis::OpForm::reduction || !tile_op || !op.accesses[0].value.valid()) continue;
    plan::OpPlan& plan = s.ops[ops.id_of(op).index()];
    const plan::ValuePlan& source = s.values[op.accesses[0].value.index()];
    const bool in_memory = std::count(plan.through_memory.begin(), plan.through_memory.end(), source.value);
    if (!source.fragment || in_memory || !plan.iteration) continue;
    const ops::Reduction reduction = *ops::layout_rule(*tile_op).reduction;
    const int64_t elements =
        plan.iteration->registers() / plan.iteration->reduce(reduction.axis, true).registers();
    const plan::OpPlan* own = given ? plan::find_op(*given, op.path) : nullptr;
    plan.chains = in_any_order(reduction.kind) && producer && elements >= kManyElements ? kMaxChains : 1;
    if (own && own->chains > 0 && (in_any_order(reduction.kind) || own->chains == 1))
      plan.chains = std::min(own->chains, kMaxChains);
  }
}

}  // namespace tilegen::schedule
