#include "schedule/grid/preamble_plan.h"

#include <algorithm>

#include "analysis/block_tree.h"
#include "analysis/loads.h"
#include "arith/prove.h"
#include "ir/statement_paths.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

namespace {

using analysis::KernelOp;

bool reads_constants(const ir::Program& p, const KernelOp& op) {
  bool any = false;
  for (const analysis::OpAccess& a : op.accesses) {
    if (a.value.valid()) continue;
    if (!p.buffer(a.buffer).constant) return false;
    any = true;
  }
  return any;
}

bool loads(const ir::Program& p, ir::ExprId e) {
  return analysis::any_load(p.exprs, e, [](ir::ExprId, const ir::ExprNode&) { return true; });
}

// Why the copy waits for the kernel in front; empty: it need not.
std::string why_behind(const ir::Program& p, const analysis::BlockTree& tree, const KernelOp& op,
                       const plan::KernelSchedule& s) {
  if (!s.launch || !s.launch->dependent.value_or(false)) return "the launch is not dependent";
  const auto issues = [&](const plan::RolePlan& r) {
    return std::find(r.ops.begin(), r.ops.end(), op.path) != r.ops.end();
  };
  if (!s.roles || std::none_of(s.roles->begin() + 1, s.roles->end(), issues))
    return "no producer makes the copy";
  if (!reads_constants(p, op)) return "its tensor is not constant";
  const std::vector<ir::StmtId> around = tree.around(op.stmt);
  const auto* loop = around.size() == 1 ? p.as<ir::Loop>(around.front()) : nullptr;
  if (!loop || loop->condition.valid()) return "it does not stand in a counted loop of the kernel's body";
  bool reads = loads(p, loop->begin) || loads(p, loop->extents[0]);
  for (const ir::Region& r : p.as<ir::TileOp>(op.stmt)->operands)
    for (ir::ExprId offset : r.offsets) reads = reads || loads(p, offset);
  return reads ? "where it reads is told by elements in memory" : "";
}

// A quotient by a size, of the loop's variable, tells where a copy of the loop's producer reads.
bool divides_by_sizes(const ir::Program& p, const ir::Loop& loop) {
  const auto divides = [&](ir::ExprId root) {
    std::vector<ir::ExprId> todo = {root};
    while (!todo.empty()) {
      const ir::ExprId e = todo.back();
      todo.pop_back();
      if (!e.valid()) continue;
      const ir::ExprNode& n = p.exprs[e];
      const bool quotient = n.op == ir::ExprOp::floordiv || n.op == ir::ExprOp::floormod;
      if (quotient && !p.exprs.is_const(n.b) && arith::depends_on(p.exprs, n.a, loop.vars[0])) return true;
      todo.insert(todo.end(), {n.a, n.b, n.c});
    }
    return false;
  };
  return std::any_of(loop.body.begin(), loop.body.end(), [&](ir::StmtId id) {
    const auto* copy = p.as<ir::TileOp>(id);
    return copy && std::any_of(copy->operands.begin(), copy->operands.end(), [&](const ir::Region& r) {
             return std::any_of(r.offsets.begin(), r.offsets.end(), divides);
           });
  });
}

}  // namespace

Checked plan_preamble(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                      const plan::KernelSchedule* given, plan::KernelSchedule& s) {
  const analysis::BlockTree tree(p, p.kernels[static_cast<size_t>(kernel)]);
  for (analysis::OpId i : ops.ops.ids()) {
    const KernelOp& op = ops.ops[i];
    plan::OpPlan& plan = s.ops[i.index()];
    const plan::OpPlan* asked = given ? plan::find_op(*given, op.path) : nullptr;
    if (asked && asked->preamble == false) {
      plan.preamble = false;
      continue;
    }
    const bool wanted = asked && asked->preamble == true;
    if (!wanted && (plan.engine != plan::Engine::tensor_copy || !reads_constants(p, op))) continue;
    std::string why = why_behind(p, tree, op, s);
    if (why.empty() && !wanted && s.split && s.split->through == "workspace")
      why = "sums of blocks meet in memory, which loads of the next launch would delay";
    if (why.empty() && !wanted && divides_by_sizes(p, *p.as<ir::Loop>(tree.around(op.stmt).front())))
      why = "its producer divides by sizes in each iteration, and would for a second way to the copy";
    if (why.empty()) {
      plan.preamble = true;
    } else if (wanted) {
      return Error(
          DiagCode::schedule_illegal, op.path,
          "the schedule has the copy begin before the kernel in front has ended (preamble), but " + why,
          "leave `preamble` out to have it decided", p.stmts[op.stmt.value].location);
    } else {
      s.notes.push_back({op.path, "waits for the end of the kernel in front: " + why});
    }
  }
  return Unit{};
}

}  // namespace tilegen::schedule
