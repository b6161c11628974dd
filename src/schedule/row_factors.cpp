#include "schedule/row_factors.h"

#include <algorithm>

#include "analysis/run_ahead.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;
using ir::ExprId;
using ir::ExprOp;

namespace {

constexpr int64_t kWorthwhile = 16;  // elements of a thread for each factor

// The only store of an element-wise op.
const ir::Store* only_store(const ir::Program& p, const KernelOp& op) {
  const auto* loop = p.as<ir::Loop>(op.stmt);
  if (!loop || loop->kind != ir::LoopKind::parallel || loop->body.size() != 1) return nullptr;
  return p.as<ir::Store>(loop->body[0]);
}

bool loads(const ir::Program& p, const KernelOps& ops, const KernelOp& op, ExprId e, int value) {
  if (!e.valid()) return false;
  const ir::ExprNode n = p.exprs[e];
  if (n.op == ExprOp::load && ops.value_of(op, n.object) == value) return true;
  return loads(p, ops, op, n.a, value) || loads(p, ops, op, n.b, value) || loads(p, ops, op, n.c, value);
}

// x[..] = x[..] * f[..]: the value of f; -1 where the op is anything else.
int factor_of(const ir::Program& p, const KernelOps& ops, const KernelOp& op) {
  const ir::Store* store = only_store(p, op);
  if (!store) return -1;
  const ir::ExprNode product = p.exprs[store->value];
  if (product.op != ExprOp::mul) return -1;
  const int to = ops.value_of(op, store->buffer);
  for (const auto& [own, other] : {std::pair(product.a, product.b), std::pair(product.b, product.a)}) {
    const ir::ExprNode x = p.exprs[own], f = p.exprs[other];
    if (x.op != ExprOp::load || f.op != ExprOp::load || ops.value_of(op, x.object) != to) continue;
    const auto from = p.exprs.indices(own);
    if (!std::equal(from.begin(), from.end(), store->indices.begin(), store->indices.end())) continue;
    const int factor = ops.value_of(op, f.object);
    if (factor >= 0 && factor != to) return factor;
  }
  return -1;
}

// In the loop the factor is an exponential of what it was, a copy of some value, and of that value, which has
// gone on to be the largest or least so far.
bool tells_how_far(const ir::Program& p, const KernelOps& ops, const std::vector<const KernelOp*>& inside,
                   int factor) {
  for (const KernelOp* copied : inside) {
    const auto* copy = p.as<ir::TileOp>(copied->stmt);
    if (!copy || !ops::is_copy(*copy) || copied->accesses.back().value != factor) continue;
    const int extreme = copied->accesses.front().value;
    const auto goes_on = [&](const KernelOp* op) {
      const auto* reduce = p.as<ir::TileOp>(op->stmt);
      if (op->form != analysis::OpForm::reduction || op->accesses[1].value != extreme) return false;
      const ops::Reduction r = *ops::layout_rule(*reduce).reduction;
      return (r.kind == ir::ReduceKind::max || r.kind == ir::ReduceKind::min) && r.accumulate;
    };
    const auto is_exponential = [&](const KernelOp* op) {
      const ir::Store* store = only_store(p, *op);
      if (!store || ops.value_of(*op, store->buffer) != factor) return false;
      const ir::ExprNode n = p.exprs[store->value];
      return (n.op == ExprOp::exp || n.op == ExprOp::exp2) && loads(p, ops, *op, n.a, factor) &&
             loads(p, ops, *op, n.a, extreme);
    };
    if (std::any_of(inside.begin(), inside.end(), goes_on) &&
        std::any_of(inside.begin(), inside.end(), is_exponential))
      return true;
  }
  return false;
}

class RowFactors {
 public:
  RowFactors(const ir::Program& p, const KernelOps& ops, const target::Target& t,
             const plan::KernelSchedule* given, infer::InferResult& layouts)
      : p_(p), ops_(ops), target_(t), given_(given), layouts_(layouts) {}

  Checked run() {
    for (size_t i = 0; i < ops_.ops.size(); ++i) {
      const KernelOp& op = ops_.ops[i];
      const int factor = factor_of(p_, ops_, op);
      const plan::OpPlan* g = given_ ? plan::find_op(*given_, op.path) : nullptr;
      const bool possible = factor >= 0 && in_registers(op, factor);
      layouts_.ops[i].unless_one.reset();
      if (g && g->unless_one) {
        if (!g->unless_one->empty() && (!possible || name(factor) != *g->unless_one))
          return Error(DiagCode::schedule_illegal, op.path,
                       "the given schedule leaves it out where '" + *g->unless_one +
                           "' is 1, which is no factor, held in registers, of all that it computes",
                       "leave `unless_one` out of the schedule", op.location);
        layouts_.ops[i].unless_one = *g->unless_one;
      } else if (possible) {
        layouts_.ops[i].unless_one = pays(op, factor) ? name(factor) : "";
      }
    }
    return Unit{};
  }

 private:
  std::string name(int value) const { return ops_.values[static_cast<size_t>(value)].name; }
  const plan::ValuePlan& plan_of(int value) const { return layouts_.values[static_cast<size_t>(value)]; }
  int target_of(const KernelOp& op) const { return ops_.value_of(op, only_store(p_, op)->buffer); }
  bool in_registers(const KernelOp& op, int factor) const {
    return !target_.is_host() && plan_of(factor).fragment && !plan_of(factor).memory &&
           plan_of(target_of(op)).fragment && !plan_of(target_of(op)).memory;
  }

  bool pays(const KernelOp& op, int factor) const {
    if (plan_of(target_of(op)).fragment->registers() < kWorthwhile * plan_of(factor).fragment->registers())
      return false;
    for (size_t s = 0; s < p_.stmts.size(); ++s) {
      const auto* loop = p_.as<ir::Loop>(ir::StmtId(s));
      if (!loop || loop->kind == ir::LoopKind::parallel) continue;
      const std::vector<const KernelOp*> inside = analysis::ops_inside(p_, ops_, *loop);
      if (std::find(inside.begin(), inside.end(), &op) == inside.end()) continue;
      if (sums_of_a_warpgroup(inside, target_of(op)) && tells_how_far(p_, ops_, inside, factor)) return true;
    }
    return false;
  }

  bool sums_of_a_warpgroup(const std::vector<const KernelOp*>& inside, int value) const {
    return std::any_of(inside.begin(), inside.end(), [&](const KernelOp* op) {
      const auto at = static_cast<size_t>(op - ops_.ops.data());
      return op->form == analysis::OpForm::contraction &&
             layouts_.ops[at].engine == plan::Engine::warpgroup_mma &&
             std::any_of(op->accesses.begin(), op->accesses.end(),
                         [&](const auto& a) { return a.write && a.value == value; });
    });
  }

  const ir::Program& p_;
  const KernelOps& ops_;
  const target::Target& target_;
  const plan::KernelSchedule* given_;
  infer::InferResult& layouts_;
};

}  // namespace

Checked plan_row_factors(const ir::Program& p, const KernelOps& ops, const target::Target& t,
                         const plan::KernelSchedule* given, infer::InferResult& layouts) {
  return RowFactors(p, ops, t, given, layouts).run();
}

}  // namespace tilegen::schedule
