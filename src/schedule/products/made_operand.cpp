#include "schedule/products/made_operand.h"

#include <algorithm>
#include <set>
#include <vector>

namespace tilegen::schedule {

using ir::ExprId;

namespace {

// Operations of an expression, each once; what indices take is told from loops.
int64_t operations(const ir::ExprPool& e, ExprId root) {
  std::set<ExprId> seen;
  std::vector<ExprId> open = {root};
  int64_t count = 0;
  while (!open.empty()) {
    const ExprId id = open.back();
    open.pop_back();
    if (!id.valid() || !seen.insert(id).second || e[id].op == ir::ExprOp::load) continue;
    count += e[id].a.valid() ? 1 : 0;
    for (ExprId operand : {e[id].a, e[id].b, e[id].c}) open.push_back(operand);
  }
  return count;
}

}  // namespace

int64_t operations_of_element(const ir::Program& p, const ir::TileOp& product, ir::BufferId operand) {
  int64_t count = 0;
  const auto beside = [&](const ir::Block& block) {
    if (std::none_of(block.begin(), block.end(),
                     [&](ir::StmtId s) { return p.as<ir::TileOp>(s) == &product; }))
      return;
    for (ir::StmtId s : block) {
      const auto* loop = p.as<ir::Loop>(s);
      if (!loop || loop->kind != ir::LoopKind::parallel) continue;
      ir::for_each_statement(p, loop->body, [&](ir::StmtId inner, int) {
        const auto* store = p.as<ir::Store>(inner);
        if (store && store->buffer == operand) count += operations(p.exprs, store->value);
      });
    }
  };
  for (const ir::Kernel& k : p.kernels) beside(k.body);
  for (const ir::Stmt& s : p.stmts)
    if (const auto* loop = std::get_if<ir::Loop>(&s.node)) beside(loop->body);
  return count;
}

}  // namespace tilegen::schedule
