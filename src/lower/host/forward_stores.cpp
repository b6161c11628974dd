#include "lower/host/forward_stores.h"

#include <algorithm>
#include <map>
#include <set>

#include "lower/accesses.h"
#include "lower/host/memory_aliases.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

using thread::PerfectNest;

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

// The stores of one nest, by what they read and write.
class NestStores {
 public:
  NestStores(ThreadProgram& p, std::vector<StmtId> stores)
      : p_(p), stores_(std::move(stores)), gone_(stores_.size(), false), reads_(stores_.size()) {
    for (size_t k = 0; k < stores_.size(); ++k) {
      writers_[store(k).memory].insert(k);
      note_reads(k);
    }
  }

  thread::Store& store(size_t k) { return std::get<thread::Store>(p_.stmts[stores_[k].value].node); }
  size_t count() const { return stores_.size(); }
  const std::vector<Access>& reads(size_t k) const { return reads_[k]; }
  const std::set<size_t>& readers(MemoryId m) const { return of(readers_, m); }
  const std::set<size_t>& writers(MemoryId m) const { return of(writers_, m); }

  // What the statement reads is another.
  void changed(size_t k) {
    forget_reads(k);
    note_reads(k);
  }
  void drop(size_t k) {
    forget_reads(k);
    reads_[k].clear();
    writers_[store(k).memory].erase(k);
    gone_[k] = true;
  }
  std::vector<StmtId> rest() const {
    std::vector<StmtId> list;
    for (size_t k = 0; k < stores_.size(); ++k)
      if (!gone_[k]) list.push_back(stores_[k]);
    return list;
  }

 private:
  using Users = std::map<MemoryId, std::set<size_t>>;
  const std::set<size_t>& of(const Users& users, MemoryId m) const {
    const auto it = users.find(m);
    return it == users.end() ? none_ : it->second;
  }
  void note_reads(size_t k) {
    reads_[k].clear();
    std::set<ExprId> seen;
    for (ExprId x : {store(k).index, store(k).value, store(k).predicate})
      collect_loads(p_.exprs, x, seen, reads_[k]);
    for (const Access& a : reads_[k]) readers_[a.memory].insert(k);
  }
  void forget_reads(size_t k) {
    for (const Access& a : reads_[k]) readers_[a.memory].erase(k);
  }

  ThreadProgram& p_;
  const std::vector<StmtId> stores_;
  std::vector<bool> gone_;
  std::vector<std::vector<Access>> reads_;
  Users readers_, writers_;
  const std::set<size_t> none_;
};

class Forwarder {
 public:
  explicit Forwarder(ThreadProgram& p) : p_(p), aliases_(p), last_read_(p.memories.size(), 0) {
    for (size_t k = 0; k < p_.body.size(); ++k)
      for (const Access& a : accesses_of(p_, p_.body[k]).list)
        if (!a.write) last_read_[a.memory.value] = k;
  }

  void run() {
    for (size_t position = 0; position < p_.body.size(); ++position) {
      auto nest = thread::perfect_nest(p_, p_.body[position]);
      if (!nest) continue;
      NestStores stores(p_, nest->stores);
      size_t left = stores.count();
      for (size_t s = 0; s < stores.count() && left > 1; ++s) {
        if (!may_forward(*nest, stores, s, position)) continue;
        forward(stores, s);
        stores.drop(s);
        --left;
      }
      std::get<thread::Loop>(p_.stmts[nest->loops.back().value].node).body = stores.rest();
    }
  }

 private:
  // What is forwarded at an earlier position changes nothing after it.
  bool read_after(size_t position, MemoryId memory) const {
    const auto aliases = aliases_.of(memory);
    return std::any_of(aliases.begin(), aliases.end(),
                       [&](MemoryId m) { return last_read_[m.value] > position; });
  }

  bool may_forward(const PerfectNest& nest, NestStores& stores, size_t s, size_t position) const {
    const thread::Store& candidate = stores.store(s);
    const thread::Memory& memory = p_.memory(candidate.memory);
    if (memory.space == thread::Space::global || memory.in_registers || candidate.predicate) return false;
    if (p_.exprs[candidate.value].depth > kDeepest) return false;
    if (read_after(position, candidate.memory) || !thread::injective(p_, nest, candidate.index))
      return false;

    // An index that is read from memory must mean one element throughout.
    std::set<ExprId> seen;
    std::vector<Access> inputs;
    collect_loads(p_.exprs, candidate.index, seen, inputs);
    for (const Access& input : inputs)
      for (MemoryId m : aliases_.of(input.memory))
        if (!stores.writers(m).empty()) return false;
    return keeps_meaning(stores, s, candidate);
  }

  // Readers before the store see the old value; at another index, or by another name, they could mean
  // another iteration's. No second store may hide behind this one, and the value must still mean the same
  // where it is used.
  bool keeps_meaning(NestStores& stores, size_t s, const thread::Store& candidate) const {
    for (MemoryId m : aliases_.of(candidate.memory)) {
      if (const auto& writers = stores.writers(m); writers.upper_bound(s) != writers.end()) return false;
      for (size_t k : stores.readers(m))
        for (const Access& a : stores.reads(k))
          if (a.memory == m && (m != candidate.memory || a.index != candidate.index)) return false;
    }
    const std::set<size_t>& users = stores.readers(candidate.memory);
    const size_t last_use = users.empty() ? 0 : *users.rbegin();
    std::set<ExprId> seen;
    std::vector<Access> inputs;
    collect_loads(p_.exprs, candidate.value, seen, inputs);
    for (const Access& input : inputs)
      for (MemoryId m : aliases_.of(input.memory)) {
        const std::set<size_t>& writers = stores.writers(m);
        const auto later = writers.upper_bound(s);
        if (later != writers.end() && *later < last_use) return false;
      }
    return true;
  }

  void forward(NestStores& stores, size_t s) {
    const thread::Store candidate = stores.store(s);
    ReplaceLoad replace(p_.exprs, candidate.memory, candidate.index, candidate.value);
    const std::set<size_t> users = stores.readers(candidate.memory);
    for (auto k = users.upper_bound(s); k != users.end(); ++k) {
      thread::Store& later = stores.store(*k);
      later.index = replace(later.index);
      later.value = replace(later.value);
      later.predicate = replace(later.predicate);
      stores.changed(*k);
    }
  }

  // A long chain of steps is cut here and there: code generation recurses over expressions.
  static constexpr int kDeepest = 1024;
  ThreadProgram& p_;
  const MemoryAliases aliases_;
  std::vector<size_t> last_read_;  // by memory: the last statement of the body that reads it
};

}  // namespace

void forward_stores(ThreadProgram& p) { Forwarder(p).run(); }

}  // namespace tilegen::lower
