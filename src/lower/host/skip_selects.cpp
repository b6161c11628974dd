#include "lower/host/skip_selects.h"

#include <map>
#include <optional>

#include "ir/dtype.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

namespace {

using ir::ExprId;
using ir::ExprOp;
using thread::StmtId;
using thread::ThreadProgram;

class SelectSkipper {
 public:
  explicit SelectSkipper(ThreadProgram& p) : p_(p) {}

  thread::Block block(const thread::Block& body) {
    thread::Block out;
    for (StmtId s : body) out.push_back(statement(s));
    return out;
  }

 private:
  StmtId statement(StmtId s) {
    if (const auto nest = thread::perfect_nest(p_, s)) {
      const auto kept = all_kept(*nest);
      if (!kept) return s;
      const std::string origin = p_.stmts[s.value].origin;
      return p_.add(thread::Branch{p_.exprs.unary(ExprOp::logical_not, *kept), {s}, {}}, origin);
    }
    if (const auto* loop = std::get_if<thread::Loop>(&p_.stmts[s.value].node)) {
      thread::Block inside = block(thread::Block(loop->body));
      std::get<thread::Loop>(p_.stmts[s.value].node).body = std::move(inside);
    } else if (const auto* branch = std::get_if<thread::Branch>(&p_.stmts[s.value].node)) {
      const thread::Branch before = *branch;
      thread::Block then = block(before.then_body), otherwise = block(before.else_body);
      auto& after = std::get<thread::Branch>(p_.stmts[s.value].node);
      after.then_body = std::move(then);
      after.else_body = std::move(otherwise);
    }
    return s;
  }

  // Under which every store of the nest writes what its element has.
  std::optional<ExprId> all_kept(const thread::PerfectNest& nest) {
    thread::VarExtents vars;
    for (StmtId l : nest.loops) {
      const auto& loop = std::get<thread::Loop>(p_.stmts[l.value].node);
      int64_t extent = 0;
      if (loop.condition || !p_.exprs.is_const_int(loop.extent, &extent) || extent < 1) return std::nullopt;
      vars.emplace_back(loop.var, extent);
    }
    std::optional<ExprId> all;
    for (StmtId s : nest.stores) {
      const auto store = std::get<thread::Store>(p_.stmts[s.value].node);
      const ir::ExprNode value = p_.exprs[store.value];
      if (value.op != ExprOp::select || !is_own(store, value.b)) return std::nullopt;
      const auto kept = at_worst(value.a, vars);
      if (!kept) return std::nullopt;
      all = all ? p_.exprs.logical_and(*all, *kept) : *kept;
    }
    return all;
  }

  bool is_own(const thread::Store& store, ExprId value) const {
    const ir::ExprNode& n = p_.exprs[value];
    return n.op == ExprOp::load && n.object == store.memory && n.index_count == 1 &&
           p_.exprs.indices(value)[0] == store.index && p_.memory(store.memory).type == n.type &&
           p_.memory(store.memory).space != thread::Space::global;
  }

  // What holds where the condition does for all values of the variables.
  std::optional<ExprId> at_worst(ExprId condition, const thread::VarExtents& vars) {
    ir::ExprPool& e = p_.exprs;
    const ir::ExprNode n = e[condition];
    if (n.op == ExprOp::logical_and) {
      const auto a = at_worst(n.a, vars), b = at_worst(n.b, vars);
      return a && b ? std::optional(e.logical_and(*a, *b)) : std::nullopt;
    }
    if ((n.op != ExprOp::lt && n.op != ExprOp::le) || e[n.a].type != ir::DType::i64 ||
        thread::reads_memory(p_, condition))
      return std::nullopt;
    std::map<ir::VarId, ExprId> worst;
    for (const auto& [var, extent] : vars) {
      const auto left = thread::coefficient_of(p_, var, n.a), right = thread::coefficient_of(p_, var, n.b);
      if (!left || !right) return std::nullopt;
      worst[var] = e.const_int(*left > *right ? extent - 1 : 0);
    }
    return thread::VarSubstitution(e, std::move(worst))(condition);
  }

  ThreadProgram& p_;
};

}  // namespace

void skip_selects(ThreadProgram& p) {
  if (p.threads == 1) p.body = SelectSkipper(p).block(thread::Block(p.body));
}

}  // namespace tilegen::lower
