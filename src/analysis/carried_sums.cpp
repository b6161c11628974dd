#include "analysis/carried_sums.h"

#include "analysis/linear_sums.h"
#include "ir/statement_paths.h"

namespace tilegen::analysis {

std::vector<CarriedSums> carried_sums(const ir::Program& p, int kernel, const KernelOps& ops, OpPlans plans) {
  const ir::KernelPaths paths(p, kernel);
  std::vector<CarriedSums> list;
  std::set<const KernelOp*> done;
  for (OpId i : ops.ops.ids()) {
    const KernelOp& op = ops.ops[i];
    if (!plans[i].deferred_to || plans[i].deferred_to->empty() || done.count(&op)) continue;
    ir::for_each_statement(p, p.kernels[static_cast<size_t>(kernel)].body, [&](ir::StmtId s, int) {
      if (paths[s.value] != *plans[i].deferred_to || done.count(&op)) return;
      const PartialSums parts = sum_parts(p, ops, s, op);
      CarriedSums c{s, &op, {parts.outside.begin(), parts.outside.end()}, {}};
      for (ValueId v : c.joined)
        if (!begins_as_zero(p, kernel, ops, s, v)) c.split.insert(v);
      done.insert(parts.reductions.begin(), parts.reductions.end());
      list.push_back(std::move(c));
    });
  }
  return list;
}

}  // namespace tilegen::analysis
