#include "schedule/products/register_prefetch.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/gemm_shape.h"
#include "ir/statement_paths.h"
#include "target/operand_matrices.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::ValueId;

namespace {

class RegisterPrefetch {
 public:
  RegisterPrefetch(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                   const plan::KernelSchedule& s)
      : p_(p), t_(t), s_(s) {
    for (const KernelOp& op : ops.ops) op_of_[op.stmt] = &op;
  }

  bool fits(const ir::Loop& loop, const plan::LoopPlan& plan) const {
    if (plan.num_stages < 2) return false;
    std::set<int64_t> distances;
    std::set<ValueId> tiles;
    const KernelOp* rest = nullptr;
    for (ir::StmtId id : loop.body) {
      const auto op = op_of_.find(id);
      if (op == op_of_.end()) return false;
      const int64_t distance = distance_ahead(*op->second, plan);
      if (distance == 0 && rest) return false;
      if (distance == 0) {
        rest = op->second;
        continue;
      }
      distances.insert(distance);
      for (const analysis::OpAccess& a : op->second->accesses)
        if (a.write) tiles.insert(a.value);
    }
    return rest && distances.size() == 1 && in_steps(*rest, tiles);
  }

 private:
  // Iterations that a copy of the loop runs ahead; 0: it does not.
  int64_t distance_ahead(const KernelOp& op, const plan::LoopPlan& plan) const {
    const auto stage = std::find_if(plan.stages.begin(), plan.stages.end(),
                                    [&](const auto& s) { return s.first == op.path; });
    if (stage == plan.stages.end()) return 0;
    const int64_t distance = std::max<int64_t>(plan.num_stages - 1 - stage->second, 0);
    for (const analysis::OpAccess& a : op.accesses)
      if (a.write && (!a.value.valid() || s_.values[a.value.index()].slots <= distance)) return 0;
    return distance;
  }

  bool in_steps(const KernelOp& op, const std::set<ValueId>& tiles) const {
    const auto* product = p_.as<ir::TileOp>(op.stmt);
    const plan::OpPlan* plan = plan::find_op(s_, op.path);
    if (op.form != analysis::OpForm::contraction || !product || !plan || plan->engine != plan::Engine::mma)
      return false;
    for (size_t side : {0, 1}) {
      const ValueId value = op.accesses[side].value;
      if (!tiles.count(value) || !s_.values[value.index()].memory) return false;
    }
    for (const plan::ConversionPlan& c : s_.conversions)
      if (c.producer == op.path || c.consumer == op.path) return false;
    const auto atom = std::find_if(t_.mma.begin(), t_.mma.end(),
                                   [&](const target::MmaAtom& a) { return a.name == plan->atom; });
    if (atom == t_.mma.end() || target::is_multiply_add(*atom)) return false;
    if (!atom->waits_around_loops && has_one_sum(op, *atom)) return false;
    const int64_t steps = analysis::gemm_shape(p_, *product).k / atom->k;
    return steps >= 2 && steps % 2 == 0;
  }

  // A warp has one of the atom's parts of the result.
  bool has_one_sum(const KernelOp& op, const target::MmaAtom& atom) const {
    const analysis::ValueId sum = op.accesses[2].value;
    const auto& held = sum.valid() ? s_.values[sum.index()].fragment : std::nullopt;
    return held && held->registers() <= atom.c_layout.registers();
  }

  const ir::Program& p_;
  const target::Target& t_;
  const plan::KernelSchedule& s_;
  std::map<ir::StmtId, const KernelOp*> op_of_;
};

}  // namespace

void plan_register_prefetch(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                            const target::Target& t, const plan::KernelSchedule* given,
                            plan::KernelSchedule& s) {
  if (s.has_producer()) return;
  const RegisterPrefetch prefetch(p, ops, t, s);
  const ir::KernelPaths paths(p, kernel);
  ir::for_each_statement(p, p.kernels[static_cast<size_t>(kernel)].body, [&](ir::StmtId id, int) {
    const auto* loop = p.as<ir::Loop>(id);
    if (!loop || loop->kind != ir::LoopKind::pipelined) return;
    for (plan::LoopPlan& plan : s.loops) {
      if (plan.loop != paths[id.value] || !prefetch.fits(*loop, plan)) continue;
      const plan::LoopPlan* own = given ? plan::find_loop(*given, plan.loop) : nullptr;
      plan.register_prefetch = !own || own->register_prefetch.value_or(true);
    }
  });
}

}  // namespace tilegen::schedule
