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
  const ir::Kernel& k = p.kernels[static_cast<size_t>(kernel)];
  if (given.loop.empty() || given.parts < 1)
    return Error(DiagCode::schedule_illegal, k.name,
                 std::string("the given `split` has no `") + (given.loop.empty() ? "loop" : "parts") + "`",
                 "give both, or leave `split` out of the schedule", k.location);
  if (!loop.valid()) {
    std::string known;
    const ir::KernelPaths paths(p, kernel);
    for (ir::StmtId id : k.body)
      if (const auto* l = p.as<ir::Loop>(id); l && l->kind != ir::LoopKind::parallel)
        known += (known.empty() ? "" : ", ") + paths[id.value];
    return Error(DiagCode::schedule_mismatch, k.name,
                 "the given `split` names loop '" + given.loop + "', which the kernel does not have",
                 "loops of its body: " + (known.empty() ? "none" : known), k.location);
  }
  const std::string why = expand::split_refusal(p, kernel, t, loop, given.parts);
  if (!why.empty())
    return Error(DiagCode::schedule_illegal, given.loop, "blocks cannot share its iterations: " + why,
                 "leave `split` out of the schedule", p.stmt(loop).location);
  return std::make_shared<const ir::Program>(expand::split_form(p, kernel, loop, given.parts));
}

namespace {

bool is_known(const ir::Program& p, ir::ExprId e, const cost::Sizes& given) {
  return analysis::is_constant_with(p.exprs, e, [&](ir::VarId v) {
    return p.var(v).kind == ir::VarKind::dim && given.count(p.var(v).name) > 0;
  });
}

}  // namespace

std::optional<double> known_blocks(const ir::Program& p, int kernel, const cost::Sizes& given) {
  const cost::SizedProgram sizes(p, given);
  double blocks = 1;
  for (ir::ExprId extent : p.kernels[static_cast<size_t>(kernel)].grid) {
    const auto n = is_known(p, extent, given) ? sizes.value(extent) : std::nullopt;
    if (!n) return std::nullopt;
    blocks *= static_cast<double>(*n);
  }
  return blocks;
}

ir::StmtId loop_to_share(const ir::Program& p, int kernel, const target::Target& t, const cost::Sizes& given,
                         std::string& why) {
  const std::optional<double> blocks = known_blocks(p, kernel, given);
  if (!blocks || *blocks < 1 || 2 * *blocks > t.multiprocessors) return {};
  for (ir::StmtId id : p.kernels[static_cast<size_t>(kernel)].body) {
    const auto* loop = p.as<ir::Loop>(id);
    if (!loop || loop->kind != ir::LoopKind::pipelined || !is_known(p, loop->extents[0], given)) continue;
    const std::string refused = expand::split_refusal(p, kernel, t, id, 2);
    if (refused.empty()) return id;
    if (why.empty())
      why = "a grid of " + std::to_string(static_cast<int64_t>(*blocks)) + " does not fill " +
            std::to_string(t.multiprocessors) +
            " multiprocessors, and blocks cannot share the iterations of " +
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
