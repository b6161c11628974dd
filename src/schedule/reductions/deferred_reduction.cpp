#include "schedule/reductions/deferred_reduction.h"

#include <algorithm>
#include <map>

#include "analysis/exchange.h"
#include "analysis/linear_sums.h"
#include "ir/statement_paths.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;
using analysis::OpId;
using analysis::ReductionExchange;
using analysis::ValueId;
using layout::Fragment;

namespace {

// Loops around every op, outermost first.
void find_loops(const ir::Program& p, const ir::Block& block, std::vector<ir::StmtId>& around,
                std::map<ir::StmtId, std::vector<ir::StmtId>>& loops) {
  for (ir::StmtId id : block) {
    loops[id] = around;
    if (const auto* branch = p.as<ir::Branch>(id)) {
      find_loops(p, branch->then_body, around, loops);
      find_loops(p, branch->else_body, around, loops);
    }
    const auto* loop = p.as<ir::Loop>(id);
    if (!loop || loop->kind == ir::LoopKind::parallel) continue;
    around.push_back(id);
    find_loops(p, loop->body, around, loops);
    around.pop_back();
  }
}

class PartialSums {
 public:
  PartialSums(const ir::Program& p, int kernel, const KernelOps& ops, const target::Target& t,
              const plan::KernelSchedule* given, const std::set<OpId>& whole, infer::InferResult& layouts)
      : p_(p), ops_(ops), target_(t), given_(given), whole_(whole), layouts_(layouts), paths_(p, kernel) {
    std::vector<ir::StmtId> around;
    find_loops(p, p.kernels[static_cast<size_t>(kernel)].body, around, loops_);
  }

  Checked run() {
    for (OpId i : ops_.ops.ids()) layouts_.ops[i].deferred_to.reset();
    for (bool first : {true, false})  // what is given, then the rest
      for (const KernelOp& op : ops_.ops)
        if ((given(op) && !given(op)->empty()) == first)
          if (Checked ok = decide(op); !ok) return ok;
    return Unit{};
  }

 private:
  plan::OpPlan& plan_of(const KernelOp& op) { return layouts_.ops[ops_.id_of(op)]; }
  const std::string* given(const KernelOp& op) const {
    const plan::OpPlan* g = given_ ? plan::find_op(*given_, op.path) : nullptr;
    return g && g->deferred_to ? &*g->deferred_to : nullptr;
  }
  Error illegal(const KernelOp& op, const std::string& why) const {
    return Error(
        DiagCode::schedule_illegal, op.path,
        "the schedule joins it after '" + *given(op) +
            "', expected a loop that may carry it in parts: " + why,
        "give \"\" to join it in every iteration, or leave deferred_to out to let the planner choose",
        op.location);
  }

  Checked decide(const KernelOp& op) {
    const std::string* asked = given(op);
    const bool wanted = asked && !asked->empty();
    const std::vector<ir::StmtId>& around = loops_.at(op.stmt);
    if (!target_.has_block_threads() || !analysis::is_sum(p_, op) || around.empty()) {
      if (!wanted) return Unit{};
      return illegal(op, !target_.has_block_threads() ? "rows are not spread over threads on " + target_.name
                         : !analysis::is_sum(p_, op)  ? "it is no sum"
                                                      : "no loop is around it");
    }
    if (plan_of(op).deferred_to) return Unit{};
    plan_of(op).deferred_to = "";
    if (whole_.count(ops_.id_of(op))) {
      if (wanted) return illegal(op, "one warpgroup has the row, and hands it to the other");
      return Unit{};
    }
    if (asked && !wanted) return Unit{};
    std::string why = "no loop around it has this path", note;
    for (ir::StmtId loop : around) {
      if (wanted && paths_[loop.value] != *asked) continue;
      const analysis::PartialSums parts = analysis::sum_parts(p_, ops_, loop, op);
      why = parts.refusal;
      if (why.empty()) why = note = layout_refusal(loop, op, parts);
      if (why.empty() && exchange(op).partials.empty()) why = "one thread has all of a row";
      if (why.empty()) why = choice_refusal(loop, parts);
      if (why.empty()) {
        take(loop, op, parts);
        return Unit{};
      }
    }
    if (wanted) return illegal(op, why);
    if (!note.empty()) layouts_.notes.push_back({op.path, "joined in every iteration: " + note});
    return Unit{};
  }

  void take(ir::StmtId loop, const KernelOp& op, const analysis::PartialSums& parts) {
    int64_t threads = 1;
    for (const auto& part : exchange(op).partials) threads *= part.digit.extent;
    for (const KernelOp* r : parts.reductions) {
      plan_of(*r).deferred_to = paths_[loop.value];
      plan_of(*r).reason = "the loop only adds up and scales what becomes of it: the " +
                           std::to_string(threads) + " threads of a row meet once, after the loop";
    }
  }

  // Another member is decided otherwise.
  std::string choice_refusal(ir::StmtId loop, const analysis::PartialSums& parts) {
    for (const KernelOp* r : parts.reductions) {
      const std::string* g = given(*r);
      const auto& planned = plan_of(*r).deferred_to;
      const bool other = (g && *g != paths_[loop.value]) || (planned && !planned->empty());
      if (other) return r->path + ", which is added up with it, is joined elsewhere";
    }
    return "";
  }

  ReductionExchange exchange(const KernelOp& r) const {
    const ValueId dst = r.accesses[1].value;
    return analysis::reduction_exchange(p_, r, *layouts_.ops[ops_.id_of(r)].iteration, layouts_.values[dst],
                                        target_);
  }
  static bool same_threads(const ReductionExchange& a, const ReductionExchange& b) {
    return a.butterflies == b.butterflies &&
           std::equal(a.partials.begin(), a.partials.end(), b.partials.begin(), b.partials.end(),
                      [](const auto& x, const auto& y) {
                        return x.digit.stride == y.digit.stride && x.digit.extent == y.digit.extent &&
                               x.reached == y.reached;
                      });
  }

  // Why the layouts do not let the values stay in parts; empty: they do.
  std::string layout_refusal(ir::StmtId loop, const KernelOp& op, const analysis::PartialSums& parts) const {
    const ValueId dst = op.accesses[1].value;
    if (!layouts_.ops[ops_.id_of(op)].iteration) return "no thread has a part of it";
    const std::optional<Fragment> made =
        analysis::result_fragment(p_, op, *layouts_.ops[ops_.id_of(op)].iteration);
    if (!made) return "it fills only a part of " + ops_.values[dst].name;
    const ir::DType type = p_.buffer(op.accesses[1].buffer).type;
    for (ValueId v : parts.values) {
      const plan::ValuePlan& value = layouts_.values[v];
      if (!value.fragment) return value.value + " is held in memory";
      if (!value.fragment->equivalent(*made))
        return value.value + " is not held by the threads that make the parts";
      if (p_.buffer(ops_.values[v].buffer).type != type) return value.value + " has another type";
    }
    for (const KernelOp* r : parts.reductions) {
      const auto& iteration = layouts_.ops[ops_.id_of(*r)].iteration;
      const auto other = iteration ? analysis::result_fragment(p_, *r, *iteration) : std::nullopt;
      if (!other || !other->equivalent(*made) || !same_threads(exchange(*r), exchange(op)))
        return r->path + " spreads rows over other threads";
    }
    for (const KernelOp* e : parts.others) {
      const plan::OpPlan& plan = layouts_.ops[ops_.id_of(*e)];
      if (!plan.iteration || !plan.iteration->equivalent(*made)) return e->path + " is done by other threads";
    }
    return moved(loop, parts);
  }

  // Something moves the parts between threads in the loop.
  std::string moved(ir::StmtId loop, const analysis::PartialSums& parts) const {
    auto is_part = [&](const std::string& name) {
      return std::any_of(parts.values.begin(), parts.values.end(),
                         [&](ValueId v) { return layouts_.values[v].value == name; });
    };
    for (const KernelOp& o : ops_.ops) {
      const std::vector<ir::StmtId>& around = loops_.at(o.stmt);
      if (std::find(around.begin(), around.end(), loop) == around.end()) continue;
      for (const std::string& v : layouts_.ops[ops_.id_of(o)].through_memory)
        if (is_part(v)) return o.path + " takes " + v + " through memory";
      for (const plan::ConversionPlan& c : layouts_.conversions)
        if (is_part(c.value) && (c.producer == o.path || c.consumer == o.path))
          return o.path + " holds " + c.value + " otherwise";
    }
    return "";
  }

  const ir::Program& p_;
  const KernelOps& ops_;
  const target::Target& target_;
  const plan::KernelSchedule* given_;
  const std::set<OpId>& whole_;
  infer::InferResult& layouts_;
  const ir::KernelPaths paths_;
  std::map<ir::StmtId, std::vector<ir::StmtId>> loops_;
};

}  // namespace

Checked plan_partial_sums(const ir::Program& p, int kernel, const KernelOps& ops, const target::Target& t,
                          const plan::KernelSchedule* given, const std::set<OpId>& whole,
                          infer::InferResult& layouts) {
  return PartialSums(p, kernel, ops, t, given, whole, layouts).run();
}

}  // namespace tilegen::schedule
