#include "lower/perfect_nest.h"

namespace tilegen::lower {

using thread::StmtId;
using thread::ThreadProgram;

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
    for (StmtId s : loop->body)
      if (!std::get_if<thread::Store>(&p.stmts[s.value].node)) return std::nullopt;
    nest.stores = loop->body;
    return nest;
  }
}

bool same_loops(const ThreadProgram& p, const PerfectNest& a, const PerfectNest& b) {
  if (a.loops.size() != b.loops.size()) return false;
  for (size_t l = 0; l < a.loops.size(); ++l) {
    const auto& x = std::get<thread::Loop>(p.stmts[a.loops[l].value].node);
    const auto& y = std::get<thread::Loop>(p.stmts[b.loops[l].value].node);
    if (x.form != y.form || x.extent != y.extent) return false;
  }
  return true;
}

ir::ExprId VarSubstitution::rewrite_var(const ir::ExprNode& n) {
  auto it = map_.find(n.var());
  return it == map_.end() ? to_->var(n.var(), n.type) : it->second;
}

std::map<ir::VarId, ir::ExprId> loop_variables(ThreadProgram& p, const PerfectNest& from, const PerfectNest& to) {
  std::map<ir::VarId, ir::ExprId> map;
  for (size_t l = 0; l < from.loops.size(); ++l)
    map[std::get<thread::Loop>(p.stmts[from.loops[l].value].node).var] =
        p.exprs.var(std::get<thread::Loop>(p.stmts[to.loops[l].value].node).var);
  return map;
}

}  // namespace tilegen::lower
