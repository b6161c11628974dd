#include "lower/fuse_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lower/accesses.h"
#include "lower/perfect_nest.h"

namespace tilegen::lower {

using ir::ExprId;
using ir::VarId;
using thread::Block;
using thread::StmtId;
using thread::ThreadProgram;

namespace {

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
    const StatementAccesses nest = accesses_of(p_, b[k]);
    for (size_t s = k + 1; s < i; ++s) {
      const StatementAccesses between = accesses_of(p_, b[s]);
      if (between.barrier) return false;
      for (const Access& x : nest.list)
        for (const Access& y : between.list)
          if ((x.write || y.write) && may_alias(p_, x.memory, y.memory)) return false;
    }
    return true;
  }

  bool merge(const PerfectNest& a, const PerfectNest& b) {
    VarSubstitution rename(p_.exprs, loop_variables(p_, b, a));
    std::vector<thread::Store> renamed;
    for (StmtId s : b.stores) {
      thread::Store store = std::get<thread::Store>(p_.stmts[s.value].node);
      store.index = rename(store.index);
      store.value = rename(store.value);
      store.predicate = rename(store.predicate);
      store.streaming_if = rename(store.streaming_if);
      renamed.push_back(store);
    }
    if (!pointwise(a, renamed)) return false;
    for (size_t s = 0; s < renamed.size(); ++s) p_.stmts[b.stores[s].value].node = renamed[s];
    auto& innermost = std::get<thread::Loop>(p_.stmts[a.loops.back().value].node);
    innermost.body.insert(innermost.body.end(), b.stores.begin(), b.stores.end());
    return true;
  }

  // Every conflicting pair touches the same element in the same iteration, and no other iteration touches it.
  bool pointwise(const PerfectNest& a, const std::vector<thread::Store>& b) const {
    std::vector<Access> first;
    for (StmtId s : a.stores) {
      StatementAccesses of = accesses_of(p_, s);
      first.insert(first.end(), of.list.begin(), of.list.end());
    }
    std::vector<Access> second;
    std::set<ExprId> seen;
    // What an extent reads is read by both: the loops are the same.
    for (StmtId l : a.loops)
      collect_loads(p_.exprs, std::get<thread::Loop>(p_.stmts[l.value].node).extent, seen, second);
    first.insert(first.end(), second.begin(), second.end());
    seen.clear();
    for (const thread::Store& s : b) {
      for (ExprId x : {s.index, s.value, s.predicate}) collect_loads(p_.exprs, x, seen, second);
      second.push_back({s.memory, s.index, true});
    }
    for (const Access& x : first)
      for (const Access& y : second) {
        if (!(x.write || y.write) || !may_alias(p_, x.memory, y.memory)) continue;
        if (x.memory != y.memory || x.index != y.index || !injective(p_, a, x.index)) return false;
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
