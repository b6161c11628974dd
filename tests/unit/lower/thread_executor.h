// Runs a thread program whose memories all hold i64, as code generation means it: lanes of a vectorized loop
// in step, each store's operands taken before it writes.
#pragma once

#include <map>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::lower::test {

class ThreadExecutor {
 public:
  // `storage` of a global memory: which array it lives in, and where it starts there.
  struct Place {
    size_t array = 0;
    int64_t offset = 0;
  };

  ThreadExecutor(const thread::ThreadProgram& p, std::vector<Place> places,
                 std::vector<std::vector<int64_t>>& arrays)
      : p_(p), places_(std::move(places)), arrays_(arrays) {}

  void run(int64_t blocks) {
    for (int64_t block = 0; block < blocks; ++block) {
      arena_.assign(static_cast<size_t>(p_.arena_bytes / 8), 0x5eed + block);  // undefined at a block's start
      vars_[p_.block_vars[0]] = 0;
      vars_[p_.block_vars[1]] = block;
      run(p_.body);
    }
  }
  bool in_bounds() const { return in_bounds_; }

 private:
  int64_t* element(thread::MemoryId id, int64_t index) {
    const thread::Memory& m = p_.memory(id);
    std::vector<int64_t>& array =
        m.space == thread::Space::global ? arrays_[places_[id.value].array] : arena_;
    int64_t at = index + (m.space == thread::Space::global ? places_[id.value].offset : m.arena_offset / 8);
    const int64_t size = m.space == thread::Space::global ? static_cast<int64_t>(array.size())
                                                          : m.arena_offset / 8 + m.elements;
    if (index < 0 || at >= size) {
      in_bounds_ = false;
      return nullptr;
    }
    return &array[static_cast<size_t>(at)];
  }

  int64_t value(ir::ExprId id) {
    const ir::ExprNode& n = p_.exprs[id];
    switch (n.op) {
      case ir::ExprOp::const_int: return n.imm;
      case ir::ExprOp::var: return vars_.at(n.var());
      case ir::ExprOp::select: return value(n.a) ? value(n.b) : value(n.c);
      case ir::ExprOp::load: {
        auto indices = p_.exprs.indices(id);
        if (indices.size() > 1 && !value(indices[1])) return 0;
        const int64_t* at = element(n.object, value(indices[0]));
        return at ? *at : 0;
      }
      default: break;
    }
    ir::ScalarValue a{p_.exprs.type(n.a), value(n.a), 0};
    if (ir::expr_arity(n.op) == 1) return ir::eval_unary(n.op, n.type, a).i;
    return ir::eval_binary(n.op, n.type, a, {p_.exprs.type(n.b), value(n.b), 0}).i;
  }

  void run(const thread::Block& b) {
    for (thread::StmtId id : b) std::visit([&](const auto& node) { run(node); }, p_.stmts[id.value].node);
  }
  void run(const thread::Loop& l) {
    const int64_t extent = value(l.extent);
    if (l.form == thread::LoopForm::vectorized) {
      for (thread::StmtId id : l.body) store(std::get<thread::Store>(p_.stmts[id.value].node), l.var, extent);
      return;
    }
    for (int64_t i = 0; i < extent; ++i) {
      vars_[l.var] = i;
      run(l.body);
    }
  }
  void run(const thread::Branch& b) { run(value(b.condition) ? b.then_body : b.else_body); }
  void run(const thread::Store& s) { store(s, ir::VarId(), 1); }
  void run(const thread::LaneReduce& r) {
    int64_t sum = 0;
    const int64_t from = value(r.src_index), to = value(r.dst_index);
    for (int64_t l = 0; l < r.width; ++l)
      if (const int64_t* at = element(r.src, from + l)) sum += *at;
    if (int64_t* at = element(r.dst, to)) *at = sum + (r.accumulate ? *at : 0);
  }
  template <class Node>
    requires std::is_class_v<Node>
  void run(const Node&) {}  // matrix atoms, hints, and what blocks of one thread do not have

  void store(const thread::Store& s, ir::VarId lane, int64_t lanes) {
    std::vector<std::pair<int64_t, int64_t>> writes;
    for (int64_t l = 0; l < lanes; ++l) {
      if (lane) vars_[lane] = l;
      if (s.predicate && !value(s.predicate)) continue;
      writes.push_back({value(s.index), value(s.value)});
    }
    for (auto [index, v] : writes)
      if (int64_t* at = element(s.memory, index)) *at = v;
  }

  const thread::ThreadProgram& p_;
  std::vector<Place> places_;
  std::vector<std::vector<int64_t>>& arrays_;
  std::vector<int64_t> arena_;
  std::map<ir::VarId, int64_t> vars_;
  bool in_bounds_ = true;
};

}  // namespace tilegen::lower::test
