#include "schedule/grid/launch_plan.h"

#include "support/diag_codes.h"

namespace tilegen::schedule {

Expected<std::optional<plan::LaunchPlan>> plan_launch(const ir::Kernel& kernel, const target::Target& target,
                                                      const plan::KernelSchedule* given) {
  const std::optional<bool> asked = given && given->launch ? given->launch->dependent : std::nullopt;
  if (asked) {
    if (*asked && !target.dependent_launch)
      return Error(DiagCode::schedule_illegal, kernel.name,
                   "the given launch is dependent, which target " + target.name + " does not know",
                   "leave `launch` out of the schedule, or compile for sm_90 or newer", kernel.location);
    return std::optional(plan::LaunchPlan{.dependent = asked, .reason = given->launch->reason});
  }
  if (!target.dependent_launch) return std::optional<plan::LaunchPlan>();
  return std::optional(plan::LaunchPlan{
      true, "blocks make themselves ready beside the end of the kernel before, and wait for it then"});
}

}  // namespace tilegen::schedule
