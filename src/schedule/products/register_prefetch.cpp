#include "schedule/products/register_prefetch.h"

#include <algorithm>
#include <map>
#include <optional>
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

  // Why the loop's product does not have it, empty where it does; nothing for loops of more than one product
  // on tiles that run ahead.
  std::optional<plan::Note> refusal(const ir::Loop& loop, const plan::LoopPlan& plan) const {
    if (plan.num_stages < 2) return std::nullopt;
    std::set<int64_t> distances;
    std::set<ValueId> tiles;
    const KernelOp* rest = nullptr;
    for (ir::StmtId id : loop.body) {
      const auto op = op_of_.find(id);
      if (op == op_of_.end()) return std::nullopt;
      const int64_t distance = distance_ahead(*op->second, plan);
      if (distance == 0 && rest) return std::nullopt;
      if (distance == 0) {
        rest = op->second;
        continue;
      }
      distances.insert(distance);
      for (const analysis::OpAccess& a : op->second->accesses)
        if (a.write) tiles.insert(a.value);
    }
    if (!rest || !multiplies(*rest, tiles)) return std::nullopt;
    const std::string why =
        distances.size() == 1 ? step_refusal(*rest) : "its tiles run ahead by several distances";
    return plan::Note{rest->path, why.empty() ? "" : "no register prefetch: " + why};
  }

 private:
  // Iterations that a copy of the loop runs ahead; 0: it does not.
  int64_t distance_ahead(const KernelOp& op, const plan::LoopPlan& plan) const {
    const auto stage = std::find_if(plan.stages.begin(), plan.stages.end(),
                                    [&](const auto& s) { return s.first == op.path; });
    if (stage == plan.stages.end()) return 0;
    const int64_t distance = std::max<int64_t>(plan.num_stages - 1 - stage->second, 0);
    // The newest iteration that comes through registers has no slot; in one slot nothing is there early.
    const plan::OpPlan* how = plan::find_op(s_, op.path);
    const bool registers = how && how->engine == plan::Engine::register_copy;
    if (registers && distance < 2) return 0;
    const int64_t slots = registers ? distance : distance + 1;
    for (const analysis::OpAccess& a : op.accesses)
      if (a.write && (!a.value.valid() || s_.values[a.value.index()].slots < slots)) return 0;
    return distance;
  }

  const target::MmaAtom* atom_of(const KernelOp& op) const {
    const plan::OpPlan* plan = plan::find_op(s_, op.path);
    if (!plan || plan->engine != plan::Engine::mma) return nullptr;
    const auto atom = std::find_if(t_.mma.begin(), t_.mma.end(),
                                   [&](const target::MmaAtom& a) { return a.name == plan->atom; });
    return atom == t_.mma.end() || target::is_multiply_add(*atom) ? nullptr : &*atom;
  }

  // A product of matrix instructions on two of the tiles.
  bool multiplies(const KernelOp& op, const std::set<ValueId>& tiles) const {
    if (op.form != analysis::OpForm::contraction || !p_.as<ir::TileOp>(op.stmt) || !atom_of(op)) return false;
    constexpr size_t kSum = 2;
    for (size_t i = 0; i < op.accesses.size(); ++i) {
      const ValueId value = op.accesses[i].value;
      if (i != kSum && (!tiles.count(value) || !s_.values[value.index()].memory)) return false;
    }
    return true;
  }

  std::string step_refusal(const KernelOp& op) const {
    for (const plan::ConversionPlan& c : s_.conversions)
      if (c.producer == op.path || c.consumer == op.path) return "'" + c.value + "' is converted for it";
    const target::MmaAtom& atom = *atom_of(op);
    if (!atom.waits_around_loops && has_one_sum(op, atom))
      return "a warp has one sum of " + atom.name + ", which is not waited for around the loop's end";
    const int64_t steps = analysis::gemm_shape(p_, *p_.as<ir::TileOp>(op.stmt)).k / atom.k;
    return steps % 2 == 0 ? "" : "an odd number of steps along k (" + std::to_string(steps) + ")";
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
      if (plan.loop != paths[id.value]) continue;
      const auto refused = prefetch.refusal(*loop, plan);
      if (!refused) continue;
      if (!refused->text.empty()) {
        s.notes.push_back(*refused);
        continue;
      }
      const plan::LoopPlan* own = given ? plan::find_loop(*given, plan.loop) : nullptr;
      plan.register_prefetch = !own || own->register_prefetch.value_or(true);
    }
  });
}

}  // namespace tilegen::schedule
