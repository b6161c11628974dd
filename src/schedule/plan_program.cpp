#include "schedule/plan_program.h"

#include "schedule/check/check_schedule.h"
#include "schedule/plan_kernel.h"

namespace tilegen::schedule {

std::set<ir::BufferId> buffers_read(const ir::Program& p) {
  std::vector<std::shared_ptr<const analysis::KernelOps>> ops;
  for (size_t k = 0; k < p.kernels.size(); ++k)
    ops.push_back(
        std::make_shared<const analysis::KernelOps>(analysis::collect_kernel_ops(p, static_cast<int>(k))));
  return buffers_read(ops);
}

std::set<ir::BufferId> buffers_read(std::span<const std::shared_ptr<const analysis::KernelOps>> ops) {
  std::set<ir::BufferId> read;
  for (const auto& of_kernel : ops)
    for (const analysis::KernelOp& op : of_kernel->ops)
      for (const analysis::OpAccess& a : op.accesses)
        if (a.read) read.insert(a.buffer);
  return read;
}

Expected<plan::Schedule> plan_program(const ir::Program& p, const target::Target& target,
                                      const PlanOptions& options) {
  plan::Schedule s;
  s.target = target.name;
  if (options.given)
    if (Checked ok = check_schedule(*options.given, p, target); !ok) return ok.error();
  PlanOptions how = options;
  const std::set<ir::BufferId> read = buffers_read(p);
  how.read = &read;
  for (size_t k = 0; k < p.kernels.size(); ++k) {
    const plan::KernelSchedule* given = options.given ? options.given->find(p.kernels[k].name) : nullptr;
    auto kernel = plan_kernel(p, static_cast<int>(k), target, given, how);
    if (!kernel) return kernel.error();
    s.kernels.push_back(std::move(*kernel));
  }
  return s;
}

}  // namespace tilegen::schedule
