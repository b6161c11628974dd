// Runs a GPU thread program one statement at a time for all threads of a block, blocks one after the other: what the
// program computes when nothing races. Finds accesses outside memories, wide accesses that are not aligned, shuffles
// from lanes that are not there, barriers that not all threads reach.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "arith/prove.h"
#include "interp/storage.h"
#include "thread/thread_program.h"

namespace tilegen::lower::test {

class LockstepBlock {
 public:
  // By parameter: a tensor's bytes, or the value of a dim or scalar.
  struct Argument {
    std::byte* data = nullptr;
    int64_t bytes = 0;
    ir::ScalarValue value;
  };

  LockstepBlock(const thread::ThreadProgram& p, std::vector<Argument> arguments)
      : p_(p), arguments_(std::move(arguments)), vars_(p.vars.size()) {
    for (size_t i = 0; i < p.params.size(); ++i)
      if (p.params[i].kind != thread::Param::Kind::tensor) vars_[p.params[i].var.value] = arguments_[i].value;
  }

  std::vector<std::string> run() {
    const int64_t blocks = eval(p_.grid[0]).i;
    for (int64_t b = 0; b < blocks && faults_.size() < 5; ++b) {
      vars_[p_.block_vars[0].value] = {ir::DType::i64, b, 0};
      arena_.assign(static_cast<size_t>(p_.arena_bytes), std::byte{0xff});
      registers_.assign(static_cast<size_t>(p_.threads), {});
      for (auto& thread : registers_)
        for (const thread::Memory& m : p_.memories)
          thread.emplace_back(m.in_registers ? static_cast<size_t>(m.elements) : 0, poison(m.type));
      std::vector<int64_t> all(static_cast<size_t>(p_.threads));
      for (int64_t t = 0; t < p_.threads; ++t) all[static_cast<size_t>(t)] = t;
      run(p_.body, all);
    }
    return faults_;
  }

 private:
  using Threads = std::vector<int64_t>;

  static ir::ScalarValue poison(ir::DType t) { return {t, ir::is_bool(t) ? 1 : -77, -12345.678}; }
  void fault(const std::string& text) {
    if (faults_.size() < 5) faults_.push_back(origin_ + ": " + text);
  }

  std::byte* place(const thread::Memory& m, int64_t index) {
    const int64_t bytes = ir::dtype_bytes(m.type);
    if (m.space == thread::Space::global) {
      const Argument& a = arguments_[static_cast<size_t>(m.param)];
      if (index >= 0 && (index + 1) * bytes <= a.bytes) return a.data + index * bytes;
    } else if (index >= 0 && index < m.elements) {
      return &arena_[static_cast<size_t>(m.arena_offset + index * bytes)];
    }
    fault("element " + std::to_string(index) + " of " + m.name + " is outside");
    return nullptr;
  }
  ir::ScalarValue load(thread::MemoryId id, int64_t index) {
    const thread::Memory& m = p_.memory(id);
    if (m.in_registers) {
      auto& r = registers_[static_cast<size_t>(thread_)][id.value];
      if (index >= 0 && index < m.elements) return r[static_cast<size_t>(index)];
      fault("register " + std::to_string(index) + " of " + m.name);
      return poison(m.type);
    }
    const std::byte* at = place(m, index);
    uint64_t bits = 0;
    if (at) std::memcpy(&bits, at, static_cast<size_t>(ir::dtype_bytes(m.type)));
    return interp::value_from_bits(m.type, bits);
  }
  void store(int64_t thread, thread::MemoryId id, int64_t index, ir::ScalarValue v) {
    const thread::Memory& m = p_.memory(id);
    v.type = m.type;
    if (m.in_registers) {
      if (index < 0 || index >= m.elements) return fault("register " + std::to_string(index) + " of " + m.name);
      registers_[static_cast<size_t>(thread)][id.value][static_cast<size_t>(index)] = v;
    } else if (std::byte* at = place(m, index)) {
      const uint64_t bits = interp::value_to_bits(v);
      std::memcpy(at, &bits, static_cast<size_t>(ir::dtype_bytes(m.type)));
    }
  }

  ir::ScalarValue eval(ir::ExprId id) {
    const ir::ExprNode& n = p_.exprs[id];
    switch (n.op) {
      case ir::ExprOp::const_int: return {n.type, n.imm, 0};
      case ir::ExprOp::const_float: return {n.type, 0, n.float_value()};
      case ir::ExprOp::var:
        if (n.var() == p_.thread_var) return {n.type, thread_, 0};
        return vars_[n.var().value];
      case ir::ExprOp::load: {
        auto indices = p_.exprs.indices(id);
        const int64_t index = eval(indices[0]).i;
        const bool happens = indices.size() < 2 || eval(indices[1]).i != 0;
        loads_[id].push_back({index, happens});
        return happens ? load(n.object, index) : ir::ScalarValue{n.type, 0, 0};
      }
      case ir::ExprOp::select: {
        const ir::ScalarValue c = eval(n.a), a = eval(n.b), b = eval(n.c);
        return c.i ? a : b;
      }
      case ir::ExprOp::cast: return ir::eval_cast(n.type, eval(n.a));
      default: break;
    }
    if (ir::expr_arity(n.op) == 1) return ir::eval_unary(n.op, n.type, eval(n.a));
    return ir::eval_binary(n.op, n.type, eval(n.a), eval(n.b));
  }
  ir::ScalarValue eval(ir::ExprId id, int64_t thread) {
    thread_ = thread;
    return eval(id);
  }

  void run(const thread::Block& block, const Threads& threads) {
    for (thread::StmtId id : block) {
      if (faults_.size() >= 5) return;
      origin_ = p_.stmts[id.value].origin;
      std::visit([&](const auto& node) { run(node, threads); }, p_.stmts[id.value].node);
    }
  }
  void run(const thread::Loop& l, const Threads& threads) {
    if (threads.empty()) return;
    const int64_t extent = eval(l.extent, threads[0]).i;
    for (int64_t t : threads)
      if (eval(l.extent, t).i != extent) fault("threads run a loop differently often");
    if (l.form == thread::LoopForm::vectorized) {
      for (thread::StmtId id : l.body) vector_store(std::get<thread::Store>(p_.stmts[id.value].node), l.var, extent, threads);
      return;
    }
    for (int64_t i = 0; i < extent && faults_.size() < 5; ++i) {
      vars_[l.var.value] = {ir::DType::i64, i, 0};
      run(l.body, threads);
    }
  }
  void run(const thread::Branch& b, const Threads& threads) {
    Threads yes, no;
    for (int64_t t : threads) (eval(b.condition, t).i ? yes : no).push_back(t);
    if (!yes.empty()) run(b.then_body, yes);
    if (!no.empty()) run(b.else_body, no);
  }
  void run(const thread::Store& s, const Threads& threads) { vector_store(s, ir::VarId(), 1, threads); }
  void run(const thread::Shuffle& s, const Threads& threads) {
    std::map<int64_t, ir::ScalarValue> given;
    for (int64_t t : threads) given[t] = eval(s.value, t);
    for (int64_t t : threads) {
      const int64_t lane = eval(s.lane, t).i, warp = t / 32 * 32;
      const int64_t from = s.mode == thread::Shuffle::Mode::butterfly ? warp + ((t % 32) ^ lane) : warp + lane;
      if (lane < 0 || lane > 31 || !given.count(from)) {
        fault("lane " + std::to_string(lane) + " is not there");
        continue;
      }
      store(t, s.dst, eval(s.dst_index, t).i, given[from]);
    }
  }
  void run(const thread::Barrier&, const Threads& threads) {
    if (static_cast<int64_t>(threads.size()) != p_.threads) fault("not all threads reach a barrier");
  }
  template <class Node>
    requires std::is_class_v<Node>
  void run(const Node&, const Threads&) {
    fault("a statement this executor does not know");
  }

  struct Write {
    int64_t thread, index;
    ir::ScalarValue value;
  };
  void vector_store(const thread::Store& s, ir::VarId lane, int64_t lanes, const Threads& threads) {
    std::vector<Write> writes;
    for (int64_t t : threads) {
      loads_.clear();
      std::vector<std::pair<int64_t, bool>> stores;
      for (int64_t l = 0; l < lanes; ++l) {
        if (lane) vars_[lane.value] = {ir::DType::i64, l, 0};
        const bool happens = !s.predicate || eval(s.predicate, t).i != 0;
        const int64_t index = eval(s.index, t).i;
        stores.push_back({index, happens});
        const ir::ScalarValue v = eval(s.value, t);
        if (happens) writes.push_back({t, index, v});
      }
      if (lanes == 1) continue;
      auto same_for_all = [&](ir::ExprId predicate) { return !predicate || !arith::depends_on(p_.exprs, predicate, lane); };
      if (same_for_all(s.predicate)) check_alignment(s.memory, stores);
      for (const auto& [id, accesses] : loads_) {
        auto indices = p_.exprs.indices(id);
        if (static_cast<int64_t>(accesses.size()) == lanes && (indices.size() < 2 || same_for_all(indices[1])))
          check_alignment(p_.exprs[id].object, accesses);
      }
    }
    for (const Write& w : writes) store(w.thread, s.memory, w.index, w.value);
  }
  // Lanes with consecutive indices that all happen are one access.
  void check_alignment(thread::MemoryId id, const std::vector<std::pair<int64_t, bool>>& accesses) {
    const thread::Memory& m = p_.memory(id);
    if (m.in_registers || accesses.size() < 2) return;
    for (size_t i = 0; i < accesses.size(); ++i)
      if (!accesses[i].second || accesses[i].first != accesses[0].first + static_cast<int64_t>(i)) return;
    const int64_t bytes = ir::dtype_bytes(m.type);
    const int64_t part = std::min<int64_t>(16, static_cast<int64_t>(accesses.size()) * bytes);
    if (m.alignment % part != 0 || accesses[0].first * bytes % part != 0)
      fault("an access of " + std::to_string(part) + " bytes at element " + std::to_string(accesses[0].first) + " of " +
            m.name + " is not aligned");
    ++wide_;
  }

 public:
  int64_t wide_accesses() const { return wide_; }

 private:
  const thread::ThreadProgram& p_;
  std::vector<Argument> arguments_;
  std::vector<ir::ScalarValue> vars_;
  std::vector<std::byte> arena_;
  std::vector<std::vector<std::vector<ir::ScalarValue>>> registers_;  // thread, memory, element
  std::map<ir::ExprId, std::vector<std::pair<int64_t, bool>>> loads_;
  std::vector<std::string> faults_;
  std::string origin_;
  int64_t thread_ = 0, wide_ = 0;
};

}  // namespace tilegen::lower::test
