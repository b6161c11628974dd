#include "schedule/plan_program.h"

#include "schedule/check_schedule.h"
#include "schedule/plan_kernel.h"

namespace tilegen::schedule {

Expected<plan::Schedule> plan_program(const ir::Program& p, const target::Target& target,
                                      const PlanOptions& options) {
  plan::Schedule s;
  s.target = target.name;
  if (options.given)
    if (Checked ok = check_schedule(*options.given, p, target); !ok) return ok.error();
  for (size_t k = 0; k < p.kernels.size(); ++k) {
    const plan::KernelSchedule* given = options.given ? options.given->find(p.kernels[k].name) : nullptr;
    auto kernel = plan_kernel(p, static_cast<int>(k), target, given, options);
    if (!kernel) return kernel.error();
    s.kernels.push_back(std::move(*kernel));
  }
  return s;
}

}  // namespace tilegen::schedule
