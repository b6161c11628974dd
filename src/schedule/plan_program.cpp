#include "schedule/plan_program.h"

#include <algorithm>

#include "schedule/plan_kernel.h"

namespace tilegen::schedule {

Checked check_given(const ir::Program& p, const plan::Schedule& given) {
  for (const plan::KernelSchedule& g : given.kernels)
    if (std::none_of(p.kernels.begin(), p.kernels.end(), [&](const ir::Kernel& k) { return k.name == g.kernel; }))
      return Error(DiagCode::schedule_mismatch, g.kernel,
                   "the schedule names kernel '" + g.kernel + "', which the program does not have",
                   "use the schedule of this program");
  return Unit{};
}

Expected<plan::Schedule> plan_program(const ir::Program& p, const target::Target& target,
                                      const PlanOptions& options) {
  plan::Schedule s;
  s.target = target.name;
  if (options.given)
    if (Checked ok = check_given(p, *options.given); !ok) return ok.error();
  for (size_t k = 0; k < p.kernels.size(); ++k) {
    const plan::KernelSchedule* given = options.given ? options.given->find(p.kernels[k].name) : nullptr;
    auto kernel = plan_kernel(p, static_cast<int>(k), target, given, options);
    if (!kernel) return kernel.error();
    s.kernels.push_back(std::move(*kernel));
  }
  return s;
}

}  // namespace tilegen::schedule
