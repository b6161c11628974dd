#include "driver/decide_accesses.h"

#include <algorithm>

#include "expand/expand_kernel.h"
#include "lower/access_facts.h"
#include "schedule/accesses/access_plan.h"

namespace tilegen::driver {

namespace {

// The copy engine and instructions of warpgroups alone touch memory, and threads give what they hold a
// constant: there are no vectors, masks or copies to decide about.
bool nothing_to_decide(const ir::Program& p, const analysis::KernelOps& ops,
                       const plan::KernelSchedule& plan) {
  const auto whole = [&](const ir::Region& r) {
    return std::all_of(r.offsets.begin(), r.offsets.end(), [&](ir::ExprId offset) {
      int64_t at = 1;
      return p.exprs.is_const_int(offset, &at) && at == 0;
    });
  };
  return plan.conversions.empty() &&
         std::all_of(ops.ops.begin(), ops.ops.end(), [&](const analysis::KernelOp& op) {
           const plan::OpPlan& o = plan.ops[ops.id_of(op).index()];
           if (o.engine == plan::Engine::tensor_copy || o.engine == plan::Engine::warpgroup_mma) return true;
           const auto* tile = p.as<ir::TileOp>(op.stmt);
           return tile && tile->value.valid() && p.exprs.is_const(tile->value) && o.iteration &&
                  std::all_of(tile->operands.begin(), tile->operands.end(), whole) &&
                  std::all_of(op.accesses.begin(), op.accesses.end(), [&](const analysis::OpAccess& a) {
                    return a.value.valid() && plan.values[a.value.index()].fragment == o.iteration;
                  });
         });
}

}  // namespace

Checked decide_accesses(const ir::Program& program, const target::Target& target,
                        schedule::Assumptions allowed, const plan::KernelSchedule* given, bool must_hold,
                        plan::KernelSchedule& plan, expand::ScheduledKernel& scheduled, bool* expanded_again,
                        bool for_estimate) {
  const bool widths_given = given && std::any_of(given->ops.begin(), given->ops.end(),
                                                 [](const plan::OpPlan& op) { return op.vector > 0; });
  lower::FactsAsked asked;
  asked.all_widths = widths_given;
  asked.beside_copies = widths_given;
  asked.for_estimate = for_estimate;
  Expected<plan::AccessFacts> facts = plan::AccessFacts();
  if (!for_estimate || !nothing_to_decide(program, *scheduled.ops, plan))
    facts = lower::find_access_facts(program, scheduled, target, asked);
  if (!facts) return facts.error();
  bool expansion_changed = false;
  if (Checked ok =
          schedule::plan_accesses(*scheduled.ops, *facts, allowed, given, must_hold, plan, expansion_changed);
      !ok)
    return ok;
  expansion_changed = expansion_changed && !for_estimate;  // estimates do not see what is expanded
  if (expanded_again) *expanded_again = expansion_changed;
  if (!expansion_changed) return Unit{};
  auto again = expand::expand_kernel(program, scheduled.kernel, plan, target, scheduled.ops);
  if (!again) return again.error();
  scheduled = std::move(*again);
  return Unit{};
}

}  // namespace tilegen::driver
