#include "driver/decide_accesses.h"

#include <algorithm>

#include "expand/expand_kernel.h"
#include "lower/access_facts.h"
#include "schedule/accesses/access_plan.h"

namespace tilegen::driver {

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
  auto facts = lower::find_access_facts(program, scheduled, target, asked);
  if (!facts) return facts.error();
  bool expansion_changed = false;
  if (Checked ok =
          schedule::plan_accesses(*scheduled.ops, *facts, allowed, given, must_hold, plan, expansion_changed);
      !ok)
    return ok;
  if (expanded_again) *expanded_again = expansion_changed;
  if (!expansion_changed) return Unit{};
  auto again = expand::expand_kernel(program, scheduled.kernel, plan, target);
  if (!again) return again.error();
  scheduled = std::move(*again);
  return Unit{};
}

}  // namespace tilegen::driver
