#include "driver/split_plan.h"

#include <algorithm>

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
  const expand::SplitThrough through = expand::split_through(given, t);
  const std::string why = expand::split_refusal(p, kernel, t, loop, given.parts, through);
  if (!why.empty())
    return Error(DiagCode::schedule_illegal, given.loop, "blocks cannot share its iterations: " + why,
                 std::string(!t.has_block_threads() || !expand::through_cluster(through) ? ""
                             : through == expand::SplitThrough::cluster ? "give `through` workspace, or "
                                                                        : "give `through` cluster, or ") +
                     "leave `split` out of the schedule",
                 p.stmt(loop).location);
  return std::make_shared<const ir::Program>(expand::split_form(p, kernel, loop, given.parts, through));
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
                         const analysis::KernelOps& ops, std::string& why) {
  const std::optional<double> blocks = known_blocks(p, kernel, given);
  if (!blocks || *blocks < 1 || 2 * *blocks > t.multiprocessors) return {};
  for (ir::StmtId id : p.kernels[static_cast<size_t>(kernel)].body) {
    const auto* loop = p.as<ir::Loop>(id);
    if (!loop || loop->kind != ir::LoopKind::pipelined || !is_known(p, loop->extents[0], given)) continue;
    const std::string refused =
        expand::split_refusal(p, kernel, t, id, 2, expand::SplitThrough::workspace, &ops);
    if (refused.empty()) return id;
    if (why.empty())
      why = "a grid of " + std::to_string(static_cast<int64_t>(*blocks)) + " does not fill " +
            std::to_string(t.multiprocessors) +
            " multiprocessors, and blocks cannot share the iterations of " +
            ir::KernelPaths(p, kernel)[id.value] + ": " + refused;
  }
  return {};
}

std::vector<int64_t> parts_to_try(const ir::Program& p, int kernel, const target::Target& t,
                                  const cost::Sizes& given, ir::StmtId loop, expand::SplitThrough through) {
  std::vector<int64_t> parts;
  if (expand::through_cluster(through)) {
    for (int64_t n = 2; t.tensor_copy && n <= t.max_cluster; n *= 2) parts.push_back(n);
    return parts;
  }
  const cost::SizedProgram sizes(p, given);
  const int64_t trips = sizes.value(p.as<ir::Loop>(loop)->extents[0]).value_or(1),
                blocks = static_cast<int64_t>(known_blocks(p, kernel, given).value_or(1));
  const int64_t most =
      std::min({expand::kMaxWorkspaceParts, t.multiprocessors / std::max<int64_t>(1, blocks), trips});
  int64_t even = most;
  while (even > 1 && trips % even != 0) --even;
  const int64_t n = 2 * even > most ? even : most;
  if (n > 1) parts.push_back(n);
  return parts;
}

double estimated_microseconds(const ir::Program& p, int kernel, const plan::KernelSchedule& plan,
                              const target::Target& t, const cost::Sizes& given,
                              const analysis::KernelOps* ops) {
  if (!ops) {
    const analysis::KernelOps collected = analysis::collect_kernel_ops(p, kernel);
    return estimated_microseconds(p, kernel, plan, t, given, &collected);
  }
  cost::SizedProgram sizes(p, given);
  const cost::PlannedKernel k{p, *ops, plan, t, sizes};
  return cost::estimate_kernel(kernel, k, sizes, works_of(k)).microseconds;
}

}  // namespace tilegen::driver
