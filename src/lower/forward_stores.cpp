#include "lower/forward_stores.h"

#include <algorithm>

#include "lower/accesses.h"
#include "lower/perfect_nest.h"

namespace tilegen::lower {

using ir::ExprId;
using thread::MemoryId;
using thread::StmtId;
using thread::ThreadProgram;

namespace {

// Loads of one element read as the value that was going to be stored there.
class ReplaceLoad final : public ir::ExprRewriter {
 public:
  ReplaceLoad(ir::ExprPool& pool, MemoryId memory, ExprId index, ExprId value)
      : ExprRewriter(pool, pool), memory_(memory), index_(index), value_(value) {}
  ExprId operator()(ExprId id) { return id ? rewrite(id) : id; }

 protected:
  ExprId rewrite_load(const ir::ExprNode& n, std::span<const ExprId> indices) override {
    if (n.object != memory_ || indices[0] != index_) return to_->load(n.object, n.type, indices);
    return indices.size() > 1 ? to_->select(indices[1], value_, to_->const_number(0, n.type)) : value_;
  }

 private:
  MemoryId memory_;
  ExprId index_, value_;
};

class Forwarder {
 public:
  explicit Forwarder(ThreadProgram& p) : p_(p) {}

  void run() {
    for (size_t position = 0; position < p_.body.size(); ++position) {
      auto nest = perfect_nest(p_, p_.body[position]);
      if (!nest) continue;
      for (size_t s = 0; s < nest->stores.size();) {
        if (nest->stores.size() > 1 && try_forward(*nest, s, position))
          nest->stores.erase(nest->stores.begin() + static_cast<long>(s));
        else
          ++s;
      }
      std::get<thread::Loop>(p_.stmts[nest->loops.back().value].node).body = nest->stores;
    }
  }

 private:
  thread::Store& store_at(StmtId id) { return std::get<thread::Store>(p_.stmts[id.value].node); }

  bool read_behind(size_t position, MemoryId memory) const {
    for (size_t k = position + 1; k < p_.body.size(); ++k)
      for (const Access& a : accesses_of(p_, p_.body[k]).list)
        if (!a.write && may_alias(p_, a.memory, memory)) return true;
    return false;
  }

  bool try_forward(const PerfectNest& nest, size_t s, size_t position) {
    const thread::Store candidate = store_at(nest.stores[s]);
    const thread::Memory& memory = p_.memory(candidate.memory);
    if (memory.space == thread::Space::global || memory.in_registers || candidate.predicate) return false;
    if (p_.exprs[candidate.value].depth > kDeepest) return false;
    if (read_behind(position, candidate.memory) || !injective(p_, nest, candidate.index)) return false;

    // An index that is read from memory must mean one element throughout.
    std::set<ExprId> seen;
    std::vector<Access> inputs;
    collect_loads(p_.exprs, candidate.index, seen, inputs);
    for (const Access& input : inputs)
      for (StmtId store : nest.stores)
        if (may_alias(p_, store_at(store).memory, input.memory)) return false;
    seen.clear();
    inputs.clear();
    collect_loads(p_.exprs, candidate.value, seen, inputs);
    // Readers in front of the store see the old value; at another index they could mean another iteration's.
    for (size_t k = 0; k <= s; ++k)
      if (reads_elsewhere(nest.stores[k], candidate)) return false;
    for (size_t k = s + 1; k < nest.stores.size(); ++k) {
      const thread::Store& later = store_at(nest.stores[k]);
      // The value must still mean the same where it is used, and no second store may hide behind this one.
      for (const Access& input : inputs)
        if (may_alias(p_, later.memory, input.memory)) {
          for (size_t u = k + 1; u < nest.stores.size(); ++u)
            if (reads(nest.stores[u], candidate.memory)) return false;
        }
      if (may_alias(p_, later.memory, candidate.memory) || reads_elsewhere(nest.stores[k], candidate))
        return false;
    }
    ReplaceLoad replace(p_.exprs, candidate.memory, candidate.index, candidate.value);
    for (size_t k = s + 1; k < nest.stores.size(); ++k) {
      thread::Store later = store_at(nest.stores[k]);
      later.index = replace(later.index);
      later.value = replace(later.value);
      later.predicate = replace(later.predicate);
      store_at(nest.stores[k]) = later;
    }
    return true;
  }

  bool reads(StmtId id, MemoryId memory) const {
    for (const Access& a : accesses_of(p_, id).list)
      if (!a.write && a.memory == memory) return true;
    return false;
  }

  // Reads of what the candidate writes by another index or another name.
  bool reads_elsewhere(StmtId id, const thread::Store& candidate) const {
    for (const Access& a : accesses_of(p_, id).list)
      if (!a.write && may_alias(p_, a.memory, candidate.memory) &&
          (a.memory != candidate.memory || a.index != candidate.index))
        return true;
    return false;
  }

  // A long chain of steps is cut here and there: code generation recurses over expressions.
  static constexpr int kDeepest = 1024;
  ThreadProgram& p_;
};

}  // namespace

void forward_stores(ThreadProgram& p) { Forwarder(p).run(); }

}  // namespace tilegen::lower
