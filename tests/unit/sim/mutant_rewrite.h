// Rewriting a thread program in one place, for its mutants and the probes that judge them.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::sim::test {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using thread::StmtId;
using thread::ThreadProgram;

// Rebuilds `root` with `change` applied to each node, innermost first; an invalid id keeps the node.
class Rebuild {
 public:
  using Change = std::function<ExprId(ExprId rebuilt)>;
  Rebuild(ir::ExprPool& pool, Change change) : pool_(pool), change_(std::move(change)) {}

  ExprId operator()(ExprId root) {
    if (!root.valid()) return root;
    if (auto known = memo_.find(root); known != memo_.end()) return known->second;
    const ExprNode n = pool_[root];
    ExprId made = root;
    if (n.op == ExprOp::load) {
      std::vector<ExprId> indices(pool_.indices(root).begin(), pool_.indices(root).end());
      for (ExprId& i : indices) i = (*this)(i);
      made = pool_.load(n.object, n.type, indices);
    } else if (ir::expr_arity(n.op) > 0) {
      const ExprId a = (*this)(n.a), b = (*this)(n.b), c = (*this)(n.c);
      if (a != n.a || b != n.b || c != n.c) made = pool_.operation(n, a, b, c);
    }
    const ExprId changed = change_(made);
    return memo_[root] = changed.valid() ? changed : made;
  }

 private:
  ir::ExprPool& pool_;
  Change change_;
  std::map<ExprId, ExprId> memo_;
};

// The expressions of a statement, and the memory that each indexes (invalid: none).
struct Slot {
  ExprId* id;
  thread::MemoryId memory;
};
inline std::vector<Slot> slots_of(thread::StmtNode& node) {
  if (auto* s = std::get_if<thread::Store>(&node))
    return {{&s->index, s->memory},
            {&s->value, {}},
            {&s->predicate, {}},
            {&s->expected, {}},
            {&s->old_index, s->old}};
  if (auto* s = std::get_if<thread::AsyncCopy>(&node))
    return {{&s->dst_index, s->dst}, {&s->src_index, s->src}, {&s->predicate, {}}};
  if (auto* s = std::get_if<thread::LoadMatrix>(&node))
    return {{&s->dst_index, s->dst}, {&s->src_index, s->src}};
  if (auto* s = std::get_if<thread::StoreMatrix>(&node))
    return {{&s->dst_index, s->dst}, {&s->src_index, s->src}};
  if (auto* s = std::get_if<thread::Shuffle>(&node))
    return {{&s->dst_index, s->dst}, {&s->value, {}}, {&s->lane, {}}};
  if (auto* s = std::get_if<thread::Branch>(&node)) return {{&s->condition, {}}};
  if (auto* s = std::get_if<thread::Loop>(&node)) return {{&s->extent, {}}};
  return {};
}

// Puts statements before another, wherever it stands.
inline bool insert_before(ThreadProgram& p, thread::Block& block, StmtId at, const thread::Block& inserted) {
  const auto found = std::find(block.begin(), block.end(), at);
  if (found != block.end()) return block.insert(found, inserted.begin(), inserted.end()), true;
  for (StmtId id : block) {
    auto& node = p.stmts[id.value].node;
    if (auto* loop = std::get_if<thread::Loop>(&node))
      if (insert_before(p, loop->body, at, inserted)) return true;
    if (auto* branch = std::get_if<thread::Branch>(&node))
      if (insert_before(p, branch->then_body, at, inserted) ||
          insert_before(p, branch->else_body, at, inserted))
        return true;
  }
  return false;
}

// One that stores and prefetches may name without being what a kernel keeps in registers.
inline thread::MemoryId memory_outside_registers(const ThreadProgram& p) {
  for (size_t m = 0; m < p.memories.size(); ++m)
    if (p.memories[m].space != thread::Space::local) return thread::MemoryId(m);
  return thread::MemoryId(size_t{0});
}

}  // namespace tilegen::sim::test
