#include "lower/fuse_loops.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "lower/perfect_nest.h"

namespace tilegen::lower {

using ir::ExprId;
using ir::VarId;
using thread::Block;
using thread::MemoryId;
using thread::StmtId;
using thread::ThreadProgram;

namespace {

struct Access {
  MemoryId memory;
  ExprId index;  // invalid: anywhere
  bool write = false;
};

void loads_of(const ir::ExprPool& e, ExprId id, std::set<ExprId>& seen, std::vector<Access>& out) {
  if (!id || !seen.insert(id).second) return;
  const ir::ExprNode& n = e[id];
  for (ExprId operand : {n.a, n.b, n.c}) loads_of(e, operand, seen, out);
  if (n.op != ir::ExprOp::load) return;
  for (ExprId index : e.indices(id)) loads_of(e, index, seen, out);
  out.push_back({n.object, e.indices(id)[0], false});
}

class AccessCollector {
 public:
  explicit AccessCollector(const ThreadProgram& p) : p_(p) {}

  void statement(StmtId id) {
    const auto& node = p_.stmts[id.value].node;
    if (const auto* s = std::get_if<thread::Store>(&node)) {
      for (ExprId x : {s->index, s->value, s->predicate}) loads_of(p_.exprs, x, seen_, accesses);
      accesses.push_back({s->memory, s->index, true});
    } else if (const auto* l = std::get_if<thread::Loop>(&node)) {
      loads_of(p_.exprs, l->extent, seen_, accesses);
      for (StmtId s : l->body) statement(s);
    } else if (const auto* b = std::get_if<thread::Branch>(&node)) {
      loads_of(p_.exprs, b->condition, seen_, accesses);
      for (StmtId s : b->then_body) statement(s);
      for (StmtId s : b->else_body) statement(s);
    } else if (const auto* r = std::get_if<thread::LaneReduce>(&node)) {
      for (ExprId x : {r->dst_index, r->src_index}) loads_of(p_.exprs, x, seen_, accesses);
      accesses.push_back({r->src, ExprId(), false});
      accesses.push_back({r->dst, ExprId(), true});
      if (r->accumulate) accesses.push_back({r->dst, ExprId(), false});
    } else if (const auto* m = std::get_if<thread::HostMma>(&node)) {
      for (ExprId x : {m->a_index, m->b_index, m->c_index}) loads_of(p_.exprs, x, seen_, accesses);
      accesses.push_back({m->a, ExprId(), false});
      accesses.push_back({m->b, ExprId(), false});
      accesses.push_back({m->c, ExprId(), true});
      accesses.push_back({m->c, ExprId(), false});
    } else if (const auto* f = std::get_if<thread::Prefetch>(&node)) {
      loads_of(p_.exprs, f->index, seen_, accesses);
    } else {
      barrier = true;
    }
  }

  std::vector<Access> accesses;
  bool barrier = false;

 private:
  const ThreadProgram& p_;
  std::set<ExprId> seen_;
};

class LoopFuser {
 public:
  explicit LoopFuser(ThreadProgram& p) : p_(p) {}

  void block(Block& b) {
    for (size_t i = 0; i < b.size();) {
      if (i > 0 && fuse_backwards(b, i)) continue;  // b[i] went away; the next statement is at i now
      ++i;
    }
    for (StmtId id : b) children(id);
  }

 private:
  void children(StmtId id) {
    if (auto* l = std::get_if<thread::Loop>(&p_.stmts[id.value].node)) {
      Block body = l->body;
      block(body);
      std::get<thread::Loop>(p_.stmts[id.value].node).body = std::move(body);
    } else if (auto* br = std::get_if<thread::Branch>(&p_.stmts[id.value].node)) {
      Block then_body = br->then_body, else_body = br->else_body;
      block(then_body);
      block(else_body);
      auto& again = std::get<thread::Branch>(p_.stmts[id.value].node);
      again.then_body = std::move(then_body);
      again.else_body = std::move(else_body);
    }
  }

  // Merges b[i] into the closest earlier nest of its shape; what stands between moves in front of that nest.
  bool fuse_backwards(Block& b, size_t i) {
    auto second = perfect_nest(p_, b[i]);
    if (!second) return false;
    for (size_t k = i; k-- > 0;) {
      auto first = perfect_nest(p_, b[k]);
      if (first && same_loops(p_, *first, *second)) {
        if (!movable_before(b, k, i)) return false;
        if (!merge(*first, *second)) return false;
        StmtId nest = b[k];
        b.erase(b.begin() + static_cast<long>(i));
        b.erase(b.begin() + static_cast<long>(k));
        b.insert(b.begin() + static_cast<long>(i - 1), nest);
        return true;
      }
      if (i - k > kReach) return false;
    }
    return false;
  }

  // Statements between k and i exchange places with b[k] when they share no memory that either writes.
  bool movable_before(const Block& b, size_t k, size_t i) const {
    AccessCollector nest(p_);
    nest.statement(b[k]);
    for (size_t s = k + 1; s < i; ++s) {
      AccessCollector between(p_);
      between.statement(b[s]);
      if (between.barrier) return false;
      for (const Access& x : nest.accesses)
        for (const Access& y : between.accesses)
          if ((x.write || y.write) && may_alias(x.memory, y.memory)) return false;
    }
    return true;
  }

  bool may_alias(MemoryId a, MemoryId b) const {
    return a == b || (p_.memory(a).space == thread::Space::global && p_.memory(b).space == thread::Space::global);
  }

  bool merge(const PerfectNest& a, const PerfectNest& b) {
    VarSubstitution rename(p_.exprs, loop_variables(p_, b, a));
    std::vector<thread::Store> renamed;
    for (StmtId s : b.stores) {
      thread::Store store = std::get<thread::Store>(p_.stmts[s.value].node);
      store.index = rename(store.index);
      store.value = rename(store.value);
      store.predicate = rename(store.predicate);
      renamed.push_back(store);
    }
    if (!pointwise(a, renamed)) return false;
    for (size_t s = 0; s < renamed.size(); ++s) p_.stmts[b.stores[s].value].node = renamed[s];
    auto& innermost = std::get<thread::Loop>(p_.stmts[a.loops.back().value].node);
    innermost.body.insert(innermost.body.end(), b.stores.begin(), b.stores.end());
    return true;
  }

  // index = sum(coefficient * variable) + what no loop of the nest changes, with the coefficients a mixed radix system: each
  // point of the nest has an element of its own.
  bool injective(const PerfectNest& nest, ExprId index) const {
    std::map<VarId, int64_t> coefficients;
    for (StmtId l : nest.loops) coefficients[std::get<thread::Loop>(p_.stmts[l.value].node).var] = 0;
    if (!linear(index, 1, coefficients)) return false;
    std::vector<std::pair<int64_t, int64_t>> digits;  // coefficient, extent
    for (StmtId l : nest.loops) {
      const auto& loop = std::get<thread::Loop>(p_.stmts[l.value].node);
      int64_t extent = 0;
      if (!p_.exprs.is_const_int(loop.extent, &extent)) return false;
      if (extent > 1) digits.push_back({std::abs(coefficients[loop.var]), extent});
    }
    std::sort(digits.begin(), digits.end());
    int64_t reach = 0;  // largest offset of the smaller digits
    for (auto [coefficient, extent] : digits) {
      if (coefficient <= reach) return false;
      reach += coefficient * (extent - 1);
    }
    return true;
  }

  bool linear(ExprId id, int64_t scale, std::map<VarId, int64_t>& coefficients) const {
    const ir::ExprNode& n = p_.exprs[id];
    int64_t factor = 0;
    switch (n.op) {
      case ir::ExprOp::const_int: return true;
      case ir::ExprOp::var:
        if (auto it = coefficients.find(n.var()); it != coefficients.end()) it->second += scale;
        return true;
      case ir::ExprOp::add: return linear(n.a, scale, coefficients) && linear(n.b, scale, coefficients);
      case ir::ExprOp::sub: return linear(n.a, scale, coefficients) && linear(n.b, -scale, coefficients);
      case ir::ExprOp::mul:
        if (p_.exprs.is_const_int(n.b, &factor)) return linear(n.a, scale * factor, coefficients);
        if (p_.exprs.is_const_int(n.a, &factor)) return linear(n.b, scale * factor, coefficients);
        break;
      default: break;
    }
    return !mentions(id, coefficients);
  }

  bool mentions(ExprId id, const std::map<VarId, int64_t>& vars) const {
    const ir::ExprNode& n = p_.exprs[id];
    if (n.op == ir::ExprOp::var) return vars.count(n.var()) > 0;
    for (ExprId operand : {n.a, n.b, n.c})
      if (operand && mentions(operand, vars)) return true;
    if (n.op == ir::ExprOp::load)
      for (ExprId index : p_.exprs.indices(id))
        if (mentions(index, vars)) return true;
    return false;
  }

  // Every conflicting pair touches the same element in the same iteration, and no other iteration touches it.
  bool pointwise(const PerfectNest& a, const std::vector<thread::Store>& b) const {
    AccessCollector first(p_);
    for (StmtId s : a.stores) first.statement(s);
    std::vector<Access> second;
    std::set<ExprId> seen;
    for (const thread::Store& s : b) {
      for (ExprId x : {s.index, s.value, s.predicate}) loads_of(p_.exprs, x, seen, second);
      second.push_back({s.memory, s.index, true});
    }
    for (const Access& x : first.accesses)
      for (const Access& y : second) {
        if (!(x.write || y.write) || !may_alias(x.memory, y.memory)) continue;
        if (x.memory != y.memory || x.index != y.index || !injective(a, x.index)) return false;
      }
    return true;
  }

  static constexpr size_t kReach = 16;  // statements looked back over
  ThreadProgram& p_;
};

}  // namespace

void fuse_loops(ThreadProgram& p) {
  Block body = p.body;
  LoopFuser(p).block(body);
  p.body = std::move(body);
}

}  // namespace tilegen::lower
