#include "schedule/launch_plan.h"

namespace tilegen::schedule {

Expected<std::optional<plan::LaunchPlan>> plan_launch(const ir::Kernel& kernel, const target::Target& target,
                                                      const plan::KernelSchedule* given) {
  if (given && given->launch) {
    if (given->launch->dependent && !target.dependent_launch)
      return Error(DiagCode::schedule_illegal, kernel.name,
                   "the given launch is dependent, which target " + target.name + " does not know",
                   "leave `launch` out of the schedule, or compile for sm_90 or newer", kernel.location);
    return given->launch;
  }
  if (!target.dependent_launch) return std::optional<plan::LaunchPlan>();
  return std::optional(plan::LaunchPlan{
      true, "blocks make themselves ready beside the end of the kernel before, and wait for it then"});
}

}  // namespace tilegen::schedule
