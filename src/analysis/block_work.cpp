#include "analysis/block_work.h"

#include <algorithm>

#include "analysis/monotonicity.h"
#include "analysis/uniformity.h"
#include "arith/prove.h"

namespace tilegen::analysis {

namespace {

template <class Visit>
void for_each_pipeline(const ir::Program& p, const ir::Kernel& kernel, Visit&& visit) {
  for (ir::StmtId id : kernel.body)
    if (const auto* loop = p.as<ir::Loop>(id); loop && loop->kind == ir::LoopKind::pipelined)
      visit(id, *loop);
}

}  // namespace

std::optional<VaryingWork> varying_work(const ir::Program& p, const ir::Kernel& kernel) {
  std::optional<VaryingWork> found;
  for_each_pipeline(p, kernel, [&](ir::StmtId id, const ir::Loop& loop) {
    if (found || !is_uniform(p, loop.extents[0])) return;
    Monotonicity told = Monotonicity::constant;
    for (size_t d = 0; d < kernel.block_vars.size(); ++d) {
      const Monotonicity t = monotonicity(p.exprs, loop.extents[0], kernel.block_vars[d]);
      if (t == Monotonicity::constant || (kernel.split && kernel.split->part == kernel.block_vars[d]))
        continue;
      told = told == Monotonicity::constant ? t : Monotonicity::unknown;
      found = VaryingWork{id, d, t == Monotonicity::increasing};
    }
    if (told != Monotonicity::increasing && told != Monotonicity::decreasing) found.reset();
  });
  return found;
}

bool in_branch(const ir::Program& p, const ir::Kernel& kernel, ir::StmtId s) {
  bool found = false;
  ir::for_each_statement(p, kernel.body, [&](ir::StmtId id, int) {
    const auto* branch = p.as<ir::Branch>(id);
    if (!branch) return;
    for (const ir::Block* side : {&branch->then_body, &branch->else_body})
      ir::for_each_statement(p, *side, [&](ir::StmtId inside, int) { found |= inside == s; });
  });
  return found;
}

bool pipelines_in_branch(const ir::Program& p, const ir::Kernel& kernel) {
  bool found = false;
  ir::for_each_statement(p, kernel.body, [&](ir::StmtId id, int) {
    const auto* loop = p.as<ir::Loop>(id);
    found = found || (loop && loop->kind == ir::LoopKind::pipelined && in_branch(p, kernel, id));
  });
  return found;
}

bool varies_by_block(const ir::Program& p, const ir::Kernel& kernel, const ir::Loop& loop) {
  return std::any_of(kernel.block_vars.begin(), kernel.block_vars.end(), [&](ir::VarId v) {
    return arith::depends_on(p.exprs, loop.begin, v) || arith::depends_on(p.exprs, loop.extents[0], v);
  });
}

bool blocks_differ(const ir::Program& p, const ir::Kernel& kernel) {
  bool differ = pipelines_in_branch(p, kernel);
  ir::for_each_statement(p, kernel.body, [&](ir::StmtId id, int) {
    const auto* loop = p.as<ir::Loop>(id);
    differ = differ || (loop && loop->kind != ir::LoopKind::parallel && varies_by_block(p, kernel, *loop));
  });
  return differ;
}

}  // namespace tilegen::analysis
