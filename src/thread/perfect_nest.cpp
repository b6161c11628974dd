#include "thread/perfect_nest.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "ir/expr_nodes.h"
#include "support/checked.h"

namespace tilegen::thread {

using thread::StmtId;
using thread::ThreadProgram;

namespace {

bool mentions(const ThreadProgram& p, ir::ExprId root, const std::map<ir::VarId, int64_t>& vars) {
  std::set<ir::ExprId> seen;
  std::vector<ir::ExprId> todo = {root};
  while (!todo.empty()) {
    const ir::ExprId id = todo.back();
    todo.pop_back();
    if (!id || !seen.insert(id).second) continue;
    const ir::ExprNode& n = p.exprs[id];
    if (n.op == ir::ExprOp::var && vars.count(n.var()) > 0) return true;
    todo.insert(todo.end(), {n.a, n.b, n.c});
    if (n.op == ir::ExprOp::load)
      for (ir::ExprId index : p.exprs.indices(id)) todo.push_back(index);
  }
  return false;
}

// False also where the coefficients overflow.
bool linear(const ThreadProgram& p, ir::ExprId id, int64_t scale,
            std::map<ir::VarId, int64_t>& coefficients) {
  const ir::ExprNode& n = p.exprs[id];
  int64_t factor = 0;
  switch (n.op) {
    case ir::ExprOp::const_int:
      return true;
    case ir::ExprOp::var:
      if (auto it = coefficients.find(n.var()); it != coefficients.end()) {
        auto sum = checked_add(it->second, scale);
        if (!sum) return false;
        it->second = *sum;
      }
      return true;
    case ir::ExprOp::add:
      return linear(p, n.a, scale, coefficients) && linear(p, n.b, scale, coefficients);
    case ir::ExprOp::sub:
      return scale != INT64_MIN && linear(p, n.a, scale, coefficients) &&
             linear(p, n.b, -scale, coefficients);
    case ir::ExprOp::mul:
      for (auto [constant, other] : {std::pair{n.b, n.a}, {n.a, n.b}}) {
        if (!p.exprs.is_const_int(constant, &factor)) continue;
        auto product = checked_mul(scale, factor);
        return product && linear(p, other, *product, coefficients);
      }
      break;
    default:
      break;
  }
  return !mentions(p, id, coefficients);
}

}  // namespace

std::optional<PerfectNest> perfect_nest(const ThreadProgram& p, StmtId id) {
  PerfectNest nest;
  for (;;) {
    const auto* loop = std::get_if<thread::Loop>(&p.stmts[id.value].node);
    if (!loop) return std::nullopt;
    nest.loops.push_back(id);
    if (loop->body.size() == 1 && std::get_if<thread::Loop>(&p.stmts[loop->body[0].value].node)) {
      id = loop->body[0];
      continue;
    }
    for (StmtId s : loop->body) {
      const auto* store = std::get_if<thread::Store>(&p.stmts[s.value].node);
      if (!store || store->atomic) return std::nullopt;
    }
    nest.stores = loop->body;
    return nest;
  }
}

bool same_loops(const ThreadProgram& p, const PerfectNest& a, const PerfectNest& b) {
  if (a.loops.size() != b.loops.size()) return false;
  for (size_t l = 0; l < a.loops.size(); ++l) {
    const auto& x = std::get<thread::Loop>(p.stmts[a.loops[l].value].node);
    const auto& y = std::get<thread::Loop>(p.stmts[b.loops[l].value].node);
    if (x.form != y.form || x.extent != y.extent || x.condition != y.condition) return false;
  }
  return true;
}

std::optional<int64_t> coefficient_of(const ThreadProgram& p, ir::VarId var, ir::ExprId index) {
  std::map<ir::VarId, int64_t> found = {{var, 0}};
  if (!linear(p, index, 1, found)) return std::nullopt;
  return found[var];
}

bool injective(const ThreadProgram& p, const PerfectNest& nest, ir::ExprId index) {
  VarExtents vars;
  for (StmtId l : nest.loops) {
    const auto& loop = std::get<thread::Loop>(p.stmts[l.value].node);
    int64_t extent = 0;
    if (!p.exprs.is_const_int(loop.extent, &extent)) return false;
    vars.emplace_back(loop.var, extent);
  }
  return injective(p, vars, index);
}

bool injective(const ThreadProgram& p, const VarExtents& vars, ir::ExprId index) {
  std::map<ir::VarId, int64_t> coefficients;
  for (const auto& [var, extent] : vars) coefficients[var] = 0;
  if (!linear(p, index, 1, coefficients)) return false;
  std::vector<std::pair<int64_t, int64_t>> digits;  // coefficient, extent
  for (const auto& [var, extent] : vars) {
    if (coefficients[var] == INT64_MIN) return false;
    if (extent > 1) digits.push_back({std::abs(coefficients[var]), extent});
  }
  std::sort(digits.begin(), digits.end());
  int64_t reach = 0;  // largest offset of the smaller digits
  for (auto [coefficient, extent] : digits) {
    if (coefficient <= reach) return false;
    auto span = checked_mul(coefficient, extent - 1);
    auto end = span ? checked_add(reach, *span) : std::nullopt;
    if (!end) return false;
    reach = *end;
  }
  return true;
}

bool reads_memory(const ThreadProgram& p, ir::ExprId value) {
  ir::ExprNodes nodes(p.exprs, {value});
  while (const ir::ExprId e = nodes.next())
    if (const ir::ExprOp op = p.exprs[e].op; op == ir::ExprOp::load || op == ir::ExprOp::native_call)
      return true;
  return false;
}

ir::ExprId VarSubstitution::rewrite_var(const ir::ExprNode& n) {
  auto it = map_.find(n.var());
  return it == map_.end() ? to_->var(n.var(), n.type) : it->second;
}

std::map<ir::VarId, ir::ExprId> loop_variables(ThreadProgram& p, const PerfectNest& from,
                                               const PerfectNest& to) {
  std::map<ir::VarId, ir::ExprId> map;
  for (size_t l = 0; l < from.loops.size(); ++l)
    map[std::get<thread::Loop>(p.stmts[from.loops[l].value].node).var] =
        p.exprs.var(std::get<thread::Loop>(p.stmts[to.loops[l].value].node).var);
  return map;
}

}  // namespace tilegen::thread
