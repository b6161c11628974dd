#include "driver/split_plan.h"

#include "analysis/uniformity.h"
#include "cost/estimate.h"
#include "ir/statement_paths.h"
#include "support/diag_codes.h"

namespace tilegen::driver {

Expected<SplitProgram> given_split(const ir::Program& p, int kernel, const target::Target& t,
                                   const plan::SplitPlan& given) {
  if (given.parts == 1) return SplitProgram();
  const ir::StmtId loop = expand::loop_of_path(p, kernel, given.loop);
  const std::string& name = p.kernels[static_cast<size_t>(kernel)].name;
  if (!loop.valid())
    return Error(DiagCode::schedule_mismatch, name,
                 "the given `split` names loop '" + given.loop + "', which the kernel does not have",
                 "name a loop of the kernel's body");
  const std::string why = expand::split_refusal(p, kernel, t, loop, given.parts);
  if (!why.empty())
    return Error(DiagCode::schedule_illegal, given.loop, "blocks cannot share its iterations: " + why,
                 "leave `split` out of the schedule", p.stmt(loop).location);
  return std::make_shared<const ir::Program>(expand::split_form(p, kernel, loop, given.parts));
}

ir::StmtId loop_to_share(const ir::Program& p, int kernel, const target::Target& t, const cost::Sizes& given,
                         std::string& why) {
  const ir::Kernel& k = p.kernels[static_cast<size_t>(kernel)];
  const cost::SizedProgram sizes(p, given);
  double blocks = 1;
  const auto known = [&](ir::ExprId e) {
    return analysis::is_constant_with(p.exprs, e, [&](ir::VarId v) {
      return p.var(v).kind == ir::VarKind::dim && given.count(p.var(v).name) > 0;
    });
  };
  for (ir::ExprId extent : k.grid) {
    const auto n = known(extent) ? sizes.value(extent) : std::nullopt;
    if (!n) return {};
    blocks *= static_cast<double>(*n);
  }
  if (blocks < 1 || 2 * blocks > t.multiprocessors) return {};
  for (ir::StmtId id : k.body) {
    const auto* loop = p.as<ir::Loop>(id);
    if (!loop || loop->kind != ir::LoopKind::pipelined || !known(loop->extents[0])) continue;
    const std::string refused = expand::split_refusal(p, kernel, t, id, 2);
    if (refused.empty()) return id;
    if (why.empty())
      why = std::to_string(static_cast<int64_t>(blocks)) + " blocks do not fill " +
            std::to_string(t.multiprocessors) + " multiprocessors, and they cannot share the iterations of " +
            ir::KernelPaths(p, kernel)[id.value] + ": " + refused;
  }
  return {};
}

double estimated_microseconds(const ir::Program& p, int kernel, const plan::KernelSchedule& plan,
                              const target::Target& t, const cost::Sizes& given) {
  const analysis::KernelOps ops = analysis::collect_kernel_ops(p, kernel);
  cost::SizedProgram sizes(p, given);
  const cost::PlannedKernel k{p, ops, plan, t, sizes};
  return cost::estimate_kernel(kernel, k, sizes, works_of(k)).microseconds;
}

}  // namespace tilegen::driver
