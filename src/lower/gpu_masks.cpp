// Masks: work that depends on where an element lies, as in select(key <= query, score, -inf). Most blocks lie on one side
// of the mask, where the condition is the same for every element: they take a path on which it is known, and where
// nothing is left to do, none.
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

namespace {

// Conditions of selects below `root`.
void collect_conditions(const ir::ExprPool& e, ExprId root, std::set<ExprId>& seen, std::vector<ExprId>& conditions) {
  std::vector<ExprId> todo = {root};
  while (!todo.empty()) {
    const ExprId id = todo.back();
    todo.pop_back();
    if (!id || !seen.insert(id).second) continue;
    const ir::ExprNode& n = e[id];
    if (n.op == ir::ExprOp::select) conditions.push_back(n.a);
    for (ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
  }
}

}  // namespace

// The condition, the same for the whole block, under which every select takes its first value and no store that depends on
// a comparison of indices is done; invalid when none can be told.
ExprId KernelLowering::unmasked(const Walk& walk, const EmitPoint& emit) {
  ir::ExprPool& e = out_.exprs;
  const size_t stmts = out_.stmts.size(), vars = out_.vars.size(), memories = out_.memories.size();
  auto mark = ctx_.mark();
  const bool staged = staged_;
  Nest nest = make_thread_nest(walk.iteration, 1, walk.iteration.shape(), walk.serial);
  thread::Block body;
  no_padding_ = both(ExprId(), nest.inside);
  emit(nest, body);
  no_padding_ = ExprId();
  bounds_.clear();
  std::set<ExprId> seen;
  std::vector<ExprId> conditions;
  for (thread::StmtId id : body) {
    const auto* store = std::get_if<thread::Store>(&out_.stmts[id.value].node);
    if (!store) continue;
    collect_conditions(e, store->value, seen, conditions);
    if (!store->predicate || !out_.memory(store->memory).in_registers) continue;
    const ir::ExprNode n = e[store->predicate];
    if (n.op == ir::ExprOp::lt) conditions.push_back(e.le(n.b, n.a));
    if (n.op == ir::ExprOp::le) conditions.push_back(e.lt(n.b, n.a));
  }
  for (ExprId condition : conditions) record_condition(condition);
  const ExprId all = bounds_.empty() ? ExprId() : interior_of_bounds(nest);
  ctx_.rollback(mark);
  staged_ = staged;
  out_.stmts.resize(stmts);
  out_.vars.resize(vars);
  out_.memories.resize(memories);
  fixed_vars_.erase(fixed_vars_.lower_bound(VarId(vars)), fixed_vars_.end());
  int64_t known = 1;
  return all && e.is_const_int(simplified(all), &known) ? ExprId() : all;
}

bool KernelLowering::emit_split_by_mask(const Walk& walk, const EmitPoint& emit, thread::Block& out) {
  if (mask_known_ || mask_open_) return false;
  const ExprId clear = unmasked(walk, emit);
  if (!clear) return false;
  thread::Branch branch{clear, {}, {}};
  mask_known_ = clear;
  emit_walk(walk, emit, branch.then_body);
  mask_known_ = ExprId();
  mask_open_ = true;
  emit_walk(walk, emit, branch.else_body);
  mask_open_ = false;
  if (branch.then_body.empty()) {
    branch.condition = simplified(out_.exprs.unary(ir::ExprOp::logical_not, clear));
    std::swap(branch.then_body, branch.else_body);
  }
  out.push_back(out_.add(std::move(branch), walk.origin));
  return true;
}

// What is known of the mask is put into the stores; those that store an element onto itself, or never, go.
void KernelLowering::fold_mask(thread::Block& body) {
  ir::ExprPool& e = out_.exprs;
  std::erase_if(body, [&](thread::StmtId id) {
    auto* store = std::get_if<thread::Store>(&out_.stmts[id.value].node);
    if (!store) return false;
    store->value = simplified(store->value);
    if (store->predicate) store->predicate = simplified(store->predicate);
    int64_t taken = 1;
    if (store->predicate && e.is_const_int(store->predicate, &taken)) {
      if (taken == 0) return true;
      store->predicate = ExprId();
    }
    const ir::ExprNode& n = e[store->value];
    return n.op == ir::ExprOp::load && n.object == store->memory && e.indices(store->value).size() == 1 &&
           simplified(e.indices(store->value)[0]) == simplified(store->index);
  });
}

}  // namespace tilegen::lower
