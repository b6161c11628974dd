#include "lower/host/fuse_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lower/accesses.h"
#include "lower/host/memory_aliases.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

using thread::PerfectNest;

using ir::ExprId;
using ir::VarId;
using thread::Block;
using thread::StmtId;
using thread::ThreadProgram;

namespace {

// What a statement reads and writes, each thing once: nests grow, and are asked again for each that may join
// them.
struct Touched {
  struct Places {
    std::set<ExprId> read, written;  // indices; an invalid one is anywhere
  };
  std::map<thread::MemoryId, Places> memories;
  bool barrier = false;

  void add(const Access& a) {
    (a.write ? memories[a.memory].written : memories[a.memory].read).insert(a.index);
  }
};

class LoopFuser {
 public:
  explicit LoopFuser(ThreadProgram& p) : p_(p), aliases_(p) {}

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

  // Merges b[i] into the closest earlier nest of its shape; what stands between moves before that nest.
  bool fuse_backwards(Block& b, size_t i) {
    auto second = thread::perfect_nest(p_, b[i]);
    if (!second) return false;
    for (size_t k = i; k-- > 0;) {
      auto first = thread::perfect_nest(p_, b[k]);
      if (first && thread::same_loops(p_, *first, *second)) {
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

  Touched& touched(StmtId id) {
    const auto [it, fresh] = touched_.try_emplace(id);
    if (fresh) {
      const StatementAccesses accesses = accesses_of(p_, id);
      for (const Access& a : accesses.list) it->second.add(a);
      it->second.barrier = accesses.barrier;
    }
    return it->second;
  }

  // Statements between k and i exchange places with b[k] when they share no memory that either writes.
  bool movable_before(const Block& b, size_t k, size_t i) {
    for (size_t s = k + 1; s < i; ++s)
      if (touched(b[s]).barrier || conflict(touched(b[k]), touched(b[s]))) return false;
    return true;
  }

  bool conflict(const Touched& a, const Touched& b) const {
    const bool fewer = a.memories.size() < b.memories.size();
    const Touched &few = fewer ? a : b, &many = fewer ? b : a;
    for (const auto& [memory, x] : few.memories)
      for (thread::MemoryId m : aliases_.of(memory)) {
        const auto y = many.memories.find(m);
        if (y != many.memories.end() && (!x.written.empty() || !y->second.written.empty())) return true;
      }
    return false;
  }

  bool merge(const PerfectNest& a, const PerfectNest& b) {
    thread::VarSubstitution rename(p_.exprs, thread::loop_variables(p_, b, a));
    std::vector<thread::Store> renamed;
    std::vector<Access> added;
    std::set<ExprId> seen;
    for (StmtId s : b.stores) {
      thread::Store store = std::get<thread::Store>(p_.stmts[s.value].node);
      store.index = rename(store.index);
      store.value = rename(store.value);
      store.predicate = rename(store.predicate);
      store.streaming_if = rename(store.streaming_if);
      for (ExprId x : {store.index, store.value, store.predicate}) collect_loads(p_.exprs, x, seen, added);
      added.push_back({store.memory, store.index, true});
      renamed.push_back(store);
    }
    if (!pointwise(a, added)) return false;
    for (size_t s = 0; s < renamed.size(); ++s) p_.stmts[b.stores[s].value].node = renamed[s];
    auto& innermost = std::get<thread::Loop>(p_.stmts[a.loops.back().value].node);
    innermost.body.insert(innermost.body.end(), b.stores.begin(), b.stores.end());
    for (const Access& x : added) touched(a.loops.front()).add(x);
    return true;
  }

  // Every conflicting pair of what the nest does and what is added touches the same element in the same
  // iteration, and no other iteration touches it.
  bool pointwise(const PerfectNest& nest, std::vector<Access> added) {
    // What an extent reads is read by both: the loops are the same.
    std::set<ExprId> seen;
    for (StmtId l : nest.loops)
      collect_loads(p_.exprs, std::get<thread::Loop>(p_.stmts[l.value].node).extent, seen, added);
    const Touched& first = touched(nest.loops.front());
    return std::all_of(added.begin(), added.end(), [&](const Access& y) {
      const auto same_point = [&](thread::MemoryId memory, ExprId index) {
        return memory == y.memory && index == y.index && thread::injective(p_, nest, index);
      };
      for (thread::MemoryId m : aliases_.of(y.memory)) {
        const auto x = first.memories.find(m);
        if (x == first.memories.end()) continue;
        for (ExprId index : x->second.written)
          if (!same_point(m, index)) return false;
        for (ExprId index : x->second.read)
          if (y.write && !same_point(m, index)) return false;
      }
      return true;
    });
  }

  static constexpr size_t kReach = 16;  // statements looked back over
  ThreadProgram& p_;
  const MemoryAliases aliases_;
  std::map<StmtId, Touched> touched_;  // by statement of a block
};

}  // namespace

void fuse_loops(ThreadProgram& p) {
  Block body = p.body;
  LoopFuser(p).block(body);
  p.body = std::move(body);
}

}  // namespace tilegen::lower
