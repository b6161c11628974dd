// Loops over a thread's points that are written out, and the size of the code that they come to.
#include "lower/gpu/code_size.h"

#include <algorithm>

#include "lower/gpu/access_facts.h"
#include "lower/lowering_context.h"
#include "lower/statement_exprs.h"
#include "support/small_set.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

namespace {

using SeenExprs = SmallSet<ExprId, 32>;

// Calls `visit` for every node below `root` once.
template <class Visit>
void for_each_node(const ir::ExprPool& e, ExprId root, SeenExprs& seen, Visit&& visit) {
  std::vector<ExprId> todo = {root};
  while (!todo.empty()) {
    const ExprId at = todo.back();
    todo.pop_back();
    if (!at || !seen.insert(at)) continue;
    const ir::ExprNode& n = e[at];
    visit(at, n);
    todo.insert(todo.end(), {n.a, n.b, n.c});
    if (n.op == ir::ExprOp::load)
      for (ExprId index : e.indices(at)) todo.push_back(index);
  }
}

// Variables that registers are told by: their loops are unrolled.
std::set<VarId> register_vars(LoweringContext& k, const thread::Block& body) {
  std::set<VarId> vars;
  const ir::ExprPool& e = k.out.exprs;
  auto all_of = [&](ExprId root) {
    SeenExprs seen;
    for_each_node(e, root, seen, [&](ExprId, const ir::ExprNode& n) {
      if (n.op == ir::ExprOp::var) vars.insert(n.var());
    });
  };
  auto of_loads = [&](ExprId root) {
    SeenExprs seen;
    for_each_node(e, root, seen, [&](ExprId at, const ir::ExprNode& n) {
      if (n.op == ir::ExprOp::load && k.out.memory(n.object).in_registers) all_of(e.indices(at)[0]);
    });
  };
  for (thread::StmtId id : body) {
    thread::StmtNode& node = k.out.stmts[id.value].node;
    const auto* store = std::get_if<thread::Store>(&node);
    const bool plain = store || std::holds_alternative<thread::AsyncCopy>(node) ||
                       !thread::blocks_inside(std::as_const(node)).empty();
    if (store && k.out.memory(store->memory).in_registers) all_of(store->index);
    for_each_expr(node, [&](ExprId& root) { plain ? of_loads(root) : all_of(root); });
    for (const thread::Block* inside : thread::blocks_inside(std::as_const(node)))
      vars.merge(register_vars(k, *inside));
  }
  return vars;
}

}  // namespace

std::vector<bool> rolled_loops(LoweringContext& k, const Nest& nest, size_t first, size_t last,
                               const thread::Block& body, const std::string& origin, int64_t& copies) {
  std::vector<bool> rolled(nest.loops.size(), false);
  copies = 1;
  for (size_t i = first; i < last; ++i)
    if (nest.loops[i].form == thread::LoopForm::unrolled) copies *= nest.loops[i].extent;
  if (k.facts && k.facts->for_estimate) return rolled;  // no estimate sees the size
  const plan::OpPlan* plan = plan::find_op(k.in.schedule, origin);
  const int64_t most = plan ? plan->unroll : 0;
  if (!k.block_threads() || copies <= 1 || (!k.facts && (most == 0 || copies <= most))) return rolled;
  const std::set<VarId> needed = register_vars(k, body);
  const auto may_roll = [&](size_t i) {
    return nest.loops[i].form == thread::LoopForm::unrolled && !needed.count(nest.loops[i].var);
  };
  if (k.facts) {
    const bool lanes = nest.loops.back().form == thread::LoopForm::vectorized;
    int64_t& most_copies = facts_of(k, origin).copies[lanes ? nest.loops.back().extent : 1];
    for (size_t i = first; i < last; ++i)
      if (may_roll(i)) most_copies = std::max(most_copies, copies);
    return rolled;
  }
  for (size_t i = first; i < last && copies > most; ++i)
    if (may_roll(i)) {
      rolled[i] = true;
      copies /= nest.loops[i].extent;
    }
  return rolled;
}

thread::Block rolled_loop(LoweringContext& k, const NestLoop& l, int64_t together, thread::Block body,
                          const std::string& origin) {
  ir::ExprPool& e = k.out.exprs;
  int64_t inner = std::min(together, l.extent);
  while (l.extent % inner != 0) --inner;
  VarId outer_var = l.var;
  if (inner > 1) {
    outer_var = k.out.add_var("i" + std::to_string(k.out.vars.size()), ir::VarKind::loop);
    const VarId inner_var = k.out.add_var("u" + std::to_string(k.out.vars.size()), ir::VarKind::loop);
    k.ctx.bind(outer_var, 0, l.extent / inner - 1);
    k.ctx.bind(inner_var, 0, inner - 1);
    thread::VarSubstitution replace(e, {{l.var, e.add(e.mul(e.var(outer_var), inner), e.var(inner_var))}});
    for_each_expr_below(k.out, body, [&](ExprId& at) {
      if (at) at = k.simplified(replace(at));
    });
    body = {k.out.add(
        thread::Loop{inner_var, e.const_int(inner), thread::LoopForm::unrolled, std::move(body)}, origin)};
  }
  return {k.out.add(thread::Loop{outer_var, e.const_int(l.extent / inner), thread::LoopForm::serial,
                                 std::move(body), ExprId(), true},
                    origin)};
}

// What depends on no variable of an unrolled loop is computed once.
int64_t operations(LoweringContext& k, const thread::Block& block, const std::set<VarId>& unrolled) {
  int64_t sum = 0;
  std::map<ExprId, bool> changes;
  auto count = [&](auto&& self, ExprId at) -> bool {
    if (!at) return false;
    if (const auto it = changes.find(at); it != changes.end()) return it->second;
    const ir::ExprNode n = k.out.exprs[at];
    bool any = n.op == ir::ExprOp::var && unrolled.count(n.var()) > 0;
    const bool leaf = n.op == ir::ExprOp::var || (!n.a && n.op != ir::ExprOp::load);
    for (ExprId operand : {n.a, n.b, n.c}) any |= self(self, operand);
    if (n.op == ir::ExprOp::load)
      for (ExprId index : k.out.exprs.indices(at)) any |= self(self, index);
    sum += any && !leaf;
    return changes[at] = any;
  };
  for (thread::StmtId id : block) {
    thread::StmtNode& node = k.out.stmts[id.value].node;
    sum += 1;
    changes.clear();
    for_each_expr(node, [&](ExprId& root) { count(count, root); });
    std::set<VarId> inner = unrolled;
    int64_t copies = 1;
    if (const auto* loop = std::get_if<thread::Loop>(&node); loop && loop->form != thread::LoopForm::serial) {
      inner.insert(loop->var);
      k.out.exprs.is_const_int(loop->extent, &copies);
    }
    for (const thread::Block* b : thread::blocks_inside(std::as_const(node)))
      sum += operations(k, *b, inner) * std::max<int64_t>(copies, 1);
  }
  return sum;
}

}  // namespace tilegen::lower
