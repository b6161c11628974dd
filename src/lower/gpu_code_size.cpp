// The size of the code that loops over registers, and second forms of a walk, come to. The compiler in the driver takes
// time in proportion to it, and more.
#include <algorithm>

#include "lower/kernel_lowering.h"
#include "lower/statement_exprs.h"

namespace tilegen::lower {

namespace {

constexpr int64_t kMostCopies = 64;  // of a body whose loop need not be unrolled
// Operations of a form that stands beside another one: some thousand lines of PTX.
constexpr int64_t kMostSecondForm = 8192;

// Calls `visit` for every node below `root` once.
template <class Visit>
void for_each_node(const ir::ExprPool& e, ExprId root, std::set<ExprId>& seen, Visit&& visit) {
  std::vector<ExprId> todo = {root};
  while (!todo.empty()) {
    const ExprId at = todo.back();
    todo.pop_back();
    if (!at || !seen.insert(at).second) continue;
    const ir::ExprNode& n = e[at];
    visit(at, n);
    todo.insert(todo.end(), {n.a, n.b, n.c});
    if (n.op == ir::ExprOp::load)
      for (ExprId index : e.indices(at)) todo.push_back(index);
  }
}

}  // namespace

// Variables that registers are told by: their loops are unrolled.
std::set<VarId> KernelLowering::register_vars(const thread::Block& body) {
  std::set<VarId> vars;
  const ir::ExprPool& e = out_.exprs;
  auto all_of = [&](ExprId root) {
    std::set<ExprId> seen;
    for_each_node(e, root, seen, [&](ExprId, const ir::ExprNode& n) {
      if (n.op == ir::ExprOp::var) vars.insert(n.var());
    });
  };
  auto of_loads = [&](ExprId root) {
    std::set<ExprId> seen;
    for_each_node(e, root, seen, [&](ExprId at, const ir::ExprNode& n) {
      if (n.op == ir::ExprOp::load && out_.memory(n.object).in_registers) all_of(e.indices(at)[0]);
    });
  };
  for (thread::StmtId id : body) {
    thread::StmtNode& node = out_.stmts[id.value].node;
    const auto* store = std::get_if<thread::Store>(&node);
    const bool plain = store || std::holds_alternative<thread::AsyncCopy>(node) ||
                       !thread::blocks_inside(std::as_const(node)).empty();
    if (store && out_.memory(store->memory).in_registers) all_of(store->index);
    for_each_expr(node, [&](ExprId& root) { plain ? of_loads(root) : all_of(root); });
    for (const thread::Block* inside : thread::blocks_inside(std::as_const(node))) vars.merge(register_vars(*inside));
  }
  return vars;
}

// Forms of the loops [first, last) around `body`: the outermost ones that may are serial where all unrolled made too many
// copies.
std::vector<thread::LoopForm> KernelLowering::loop_forms(const Nest& nest, size_t first, size_t last,
                                                         const thread::Block& body) {
  std::vector<thread::LoopForm> forms;
  int64_t copies = 1;
  for (const NestLoop& l : nest.loops) forms.push_back(l.form);
  for (size_t i = first; i < last; ++i)
    if (forms[i] == thread::LoopForm::unrolled) copies *= nest.loops[i].extent;
  if (!gpu() || copies <= kMostCopies) return forms;
  const std::set<VarId> needed = register_vars(body);
  for (size_t i = first; i < last && copies > kMostCopies; ++i)
    if (forms[i] == thread::LoopForm::unrolled && !needed.count(nest.loops[i].var)) {
      forms[i] = thread::LoopForm::serial;
      copies /= nest.loops[i].extent;
    }
  return forms;
}

// What depends on no variable of an unrolled loop is computed once.
int64_t KernelLowering::operations(const thread::Block& block, const std::set<VarId>& unrolled) {
  int64_t sum = 0;
  std::map<ExprId, bool> changes;
  auto count = [&](auto&& self, ExprId at) -> bool {
    if (!at) return false;
    if (const auto it = changes.find(at); it != changes.end()) return it->second;
    const ir::ExprNode n = out_.exprs[at];
    bool any = n.op == ir::ExprOp::var && unrolled.count(n.var()) > 0;
    const bool leaf = n.op == ir::ExprOp::var || (!n.a && n.op != ir::ExprOp::load);
    for (ExprId operand : {n.a, n.b, n.c}) any |= self(self, operand);
    if (n.op == ir::ExprOp::load)
      for (ExprId index : out_.exprs.indices(at)) any |= self(self, index);
    sum += any && !leaf;
    return changes[at] = any;
  };
  for (thread::StmtId id : block) {
    thread::StmtNode& node = out_.stmts[id.value].node;
    sum += 1;
    changes.clear();
    for_each_expr(node, [&](ExprId& root) { count(count, root); });
    std::set<VarId> inner = unrolled;
    int64_t copies = 1;
    if (const auto* loop = std::get_if<thread::Loop>(&node); loop && loop->form != thread::LoopForm::serial) {
      inner.insert(loop->var);
      out_.exprs.is_const_int(loop->extent, &copies);
    }
    for (const thread::Block* b : thread::blocks_inside(std::as_const(node)))
      sum += operations(*b, inner) * std::max<int64_t>(copies, 1);
  }
  return sum;
}

bool KernelLowering::second_form_fits(const thread::Block& form, const std::string& origin, const char* what) {
  const int64_t size = operations(form);
  if (size <= kMostSecondForm) return true;
  if (options_.notes) {
    const plan::Note note{origin, std::string(what) + ": it would take " + std::to_string(size) +
                                      " operations of a thread, more than " + std::to_string(kMostSecondForm)};
    if (std::find(options_.notes->begin(), options_.notes->end(), note) == options_.notes->end())
      options_.notes->push_back(note);
  }
  return false;
}

}  // namespace tilegen::lower
