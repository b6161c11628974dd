#include "thread/expr_verifier.h"

#include "support/checked.h"
#include "thread/thread_expr_text.h"

namespace tilegen::thread {

using ir::DType;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

ExprVerifier::ExprVerifier(const ThreadProgram& p, std::vector<std::string>& problems)
    : p_(&p), problems_(&problems), scope_(p.vars.size(), Scope::out), checked_(p.exprs.size(), 0) {}

bool ExprVerifier::enter_scope(ir::VarId var, bool fixed_after_unrolling) {
  if (!var.valid() || var.value >= scope_.size()) {
    report("variable id out of range");
    return false;
  }
  if (scope_[var.value] != Scope::out) {
    report("variable " + var_text(*p_, var) + " is defined twice");
    return false;
  }
  scope_[var.value] = fixed_after_unrolling ? Scope::fixed : Scope::in;
  return true;
}

void ExprVerifier::leave_scope(ir::VarId var) {
  scope_[var.value] = Scope::out;
  ++epoch_;
}

bool ExprVerifier::check(ExprId id, DType type, const std::string& what) {
  if (!in_pool(id)) {
    report(what + ": expression id out of range");
    return false;
  }
  check_nodes(id);
  if (p_->exprs.type(id) == type) return true;
  report(what + " " + expr_text(*p_, id) + " is " + ir::dtype_name(p_->exprs.type(id)) + ", expected " +
         ir::dtype_name(type));
  return false;
}

bool ExprVerifier::check_memory(MemoryId id, const std::string& what) {
  if (id.valid() && id.value < p_->memories.size()) return true;
  report(what + ": memory id out of range");
  return false;
}

void ExprVerifier::check_index(MemoryId memory, ExprId index, int64_t span, const std::string& what) {
  if (!check(index, DType::i64, what + " index")) return;
  const Memory& m = p_->memory(memory);
  if (m.in_registers && !fixed_after_unrolling(index))
    report(what + ": " + m.name + " is in registers but its index " + expr_text(*p_, index) +
           " is not made of constants, unrolled variables and the lane");
  int64_t first = 0;
  if (m.elements == 0 || !p_->exprs.is_const_int(index, &first)) return;
  const auto end = checked_add(first, span);
  if (first < 0 || !end || *end > m.elements)
    report(what + ": elements " + std::to_string(first) + " and on (" + std::to_string(span) +
           ") are outside " + m.name + "[" + std::to_string(m.elements) + "]");
}

void ExprVerifier::check_launch_expr(ExprId id, const std::string& what) {
  if (!check(id, DType::i64, what)) return;
  std::vector<ExprId> todo{id};
  std::vector<bool> seen(p_->exprs.size());
  while (!todo.empty()) {
    const ExprId at = todo.back();
    todo.pop_back();
    if (!at.valid() || seen[at.value]) continue;
    seen[at.value] = true;
    const ExprNode& n = p_->exprs[at];
    if (n.op == ExprOp::load) report(what + " reads memory");
    if (n.op == ExprOp::var && n.var().value < p_->vars.size()) {
      const ir::VarKind kind = p_->vars[n.var().value].kind;
      if (kind != ir::VarKind::dim && kind != ir::VarKind::scalar)
        report(what + " uses " + var_text(*p_, n.var()) + ", which is neither a dim nor a scalar");
    }
    for (ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
  }
}

// Every node below `root`, each once per epoch, without recursion.
void ExprVerifier::check_nodes(ExprId root) {
  std::vector<ExprId> todo{root};
  while (!todo.empty()) {
    const ExprId id = todo.back();
    todo.pop_back();
    if (!id.valid() || checked_[id.value] == epoch_) continue;
    checked_[id.value] = epoch_;
    check_node(id);
    const ExprNode& n = p_->exprs[id];
    for (ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
    if (n.op == ExprOp::load)
      for (ExprId index : p_->exprs.indices(id)) todo.push_back(index);
  }
}

// The pool itself refuses operators whose operands do not fit and ids it has not given out; only what it
// cannot know
// is left: the variables and memories of this program.
void ExprVerifier::check_node(ExprId id) {
  const ExprNode& n = p_->exprs[id];
  if (n.op == ExprOp::load) return check_load(id);
  if (n.op != ExprOp::var) return;
  if (n.var().value >= p_->vars.size()) return report("an expression uses a variable id out of range");
  if (scope_[n.var().value] == Scope::out)
    report("variable " + var_text(*p_, n.var()) + " is used outside the loop that defines it");
  const DType declared = p_->vars[n.var().value].type;
  if (n.type != declared)
    report("variable " + var_text(*p_, n.var()) + " is " + ir::dtype_name(declared) + " but used as " +
           ir::dtype_name(n.type));
}

void ExprVerifier::check_load(ExprId id) {
  const ExprNode& n = p_->exprs[id];
  if (!check_memory(n.object, "load")) return;
  const Memory& m = p_->memory(n.object);
  if (n.type != m.type)
    report("load of " + m.name + " is " + ir::dtype_name(n.type) + ", its elements are " +
           ir::dtype_name(m.type));
  const auto indices = p_->exprs.indices(id);
  if (indices.size() != 1 && indices.size() != 2) {
    report("load of " + m.name + " has " + std::to_string(indices.size()) +
           " indices, expected index and predicate");
    return;
  }
  check_index(n.object, indices[0], 1, "load of " + m.name);
  if (indices.size() == 2) check(indices[1], DType::boolean, "load of " + m.name + " predicate");
}

bool ExprVerifier::fixed_after_unrolling(ExprId root) const {
  std::vector<ExprId> todo{root};
  std::vector<ExprId> seen;  // register indices are short; a set would cost more
  while (!todo.empty()) {
    const ExprId id = todo.back();
    todo.pop_back();
    if (!id.valid()) continue;
    const ExprNode& n = p_->exprs[id];
    if (n.op == ExprOp::load) return false;
    if (n.op == ExprOp::var && (n.var().value >= scope_.size() || scope_[n.var().value] != Scope::fixed))
      return false;
    bool known = false;
    for (ExprId s : seen) known = known || s == id;
    if (known) continue;
    seen.push_back(id);
    for (ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
  }
  return true;
}

}  // namespace tilegen::thread
