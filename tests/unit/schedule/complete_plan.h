// Plans as the driver completes them: how threads access memory follows from what lowering finds.
#pragma once

#include "driver/decide_accesses.h"
#include "expand/expand_kernel.h"
#include "lower/lower_kernel.h"
#include "schedule/accesses/access_plan.h"

namespace tilegen::schedule {

inline Checked complete_plan(const ir::Program& p, int kernel, const target::Target& target,
                             plan::KernelSchedule& plan, const plan::KernelSchedule* given = nullptr,
                             Assumptions allowed = Assumptions::all) {
  auto scheduled = expand::expand_kernel(p, kernel, plan, target);
  if (!scheduled) return scheduled.error();
  return driver::decide_accesses(p, target, allowed, given, true, plan, *scheduled);
}

inline Expected<plan::Schedule> complete_plan(const ir::Program& p, const target::Target& target,
                                              Expected<plan::Schedule> plan,
                                              const plan::Schedule* given = nullptr) {
  for (size_t k = 0; plan && k < plan->kernels.size(); ++k) {
    plan::KernelSchedule& s = plan->kernels[k];
    if (Checked ok =
            complete_plan(p, static_cast<int>(k), target, s, given ? given->find(s.kernel) : nullptr);
        !ok)
      return ok.error();
  }
  return plan;
}

// The code of one kernel by a plan that need not be complete.
inline Expected<thread::ThreadProgram> lowered_as_planned(const ir::Program& p, int kernel,
                                                          plan::KernelSchedule plan,
                                                          const target::Target& target,
                                                          Assumptions allowed = Assumptions::all) {
  if (allowed == Assumptions::none) plan = without_assumptions(std::move(plan));
  if (Checked ok = complete_plan(p, kernel, target, plan, nullptr, allowed); !ok) return ok.error();
  auto scheduled = expand::expand_kernel(p, kernel, plan, target);
  if (!scheduled) return scheduled.error();
  return lower::lower_kernel(p, *scheduled, target);
}

}  // namespace tilegen::schedule
