// Dependences that running a program shows.
#pragma once

#include <gtest/gtest.h>

#include <set>

#include "analysis/dependence.h"
#include "ir/text.h"

namespace tilegen::analysis {

constexpr int64_t kDim = 5;  // what the program's dim n is when it runs

using Element = std::pair<Place, std::vector<int64_t>>;
using Key = std::tuple<OpId, OpId, DependenceKind, Place>;
using Distances = std::map<Key, int64_t>;

// Executes a kernel of i64 buffers statement by statement and notes who touches what.
class Run {
 public:
  Run(const ir::Program& p, const KernelOps& ops) : p_(p), ops_(ops) {
    for (OpId op : ops.ops.ids()) op_of_[ops.ops[op].stmt] = op;
    for (const ir::Kernel& k : p.kernels) block(k.body);
  }

  bool ran(ir::StmtId loop) const { return ran_.count(loop) > 0; }

  // The least distance of each pair of ops that meet in one run of the loop; of the whole kernel without one.
  Distances distances(ir::StmtId loop) const {
    std::map<Element, std::vector<std::pair<const Touch*, Turn>>> touches;
    for (const auto& [element, list] : touches_)
      for (const Touch& t : list)
        for (const Turn& turn : t.turns)
          if (turn.loop == loop) touches[element].emplace_back(&t, turn);
    Distances found;
    for (const auto& [element, list] : touches)
      for (const auto& [a, from] : list)
        for (const auto& [b, to] : list) {
          const int64_t distance = to.iteration - from.iteration;
          if (from.run != to.run || a->time >= b->time || (a->op == b->op && distance == 0)) continue;
          if (!a->write && !b->write) continue;
          const auto kind = !a->write  ? DependenceKind::anti
                            : b->write ? DependenceKind::output
                                       : DependenceKind::flow;
          const auto [at, fresh] = found.try_emplace({a->op, b->op, kind, element.first}, distance);
          at->second = std::min(at->second, distance);
        }
    return found;
  }

 private:
  struct Turn {
    ir::StmtId loop;
    int64_t run = 0, iteration = 0;
  };
  struct Touch {
    OpId op;
    bool write = false;
    int64_t time = 0;
    std::vector<Turn> turns;
  };

  void touch(OpId op, const Place& place, const std::vector<int64_t>& at, bool write) {
    touches_[{place, at}].push_back({op, write, time_, turns_});
  }

  int64_t eval(ir::ExprId e) {
    const ir::ExprNode n = p_.exprs[e];
    if (n.op == ir::ExprOp::const_int) return n.imm;
    if (n.op == ir::ExprOp::var) return vars_.count(n.var()) ? vars_.at(n.var()) : kDim;
    if (n.op == ir::ExprOp::load) return memory_[{n.object, evaluated(p_.exprs.indices(e))}];
    ir::ScalarValue a, b;
    a.i = eval(n.a);
    if (n.b.valid()) b.i = eval(n.b);
    return n.b.valid() ? ir::eval_binary(n.op, n.type, a, b).i : ir::eval_unary(n.op, n.type, a).i;
  }
  std::vector<int64_t> evaluated(std::span<const ir::ExprId> list) {
    std::vector<int64_t> values;
    for (ir::ExprId e : list) values.push_back(eval(e));
    return values;
  }

  // Loads of an expression, by each of `readers`; `where`: the statement whose scalars they are, if any.
  void read(ir::ExprId e, const std::vector<OpId>& readers, ir::StmtId where) {
    const ir::ExprNode n = p_.exprs[e];
    for (ir::ExprId operand : {n.a, n.b, n.c})
      if (operand.valid()) read(operand, readers, where);
    if (n.op != ir::ExprOp::load) return;
    for (ir::ExprId index : p_.exprs.indices(e)) read(index, readers, where);
    ValueId value;
    if (const auto at = ops_.scalar_reads.find({where, n.object}); at != ops_.scalar_reads.end())
      value = at->second;
    for (OpId op : readers) {
      if (!where) value = ops_.value_of(ops_.ops[op], n.object);
      if (value.valid() || p_.buffer(n.object).scope == ir::MemScope::global)
        touch(op, place(value, n.object), evaluated(p_.exprs.indices(e)), false);
    }
  }
  static Place place(ValueId value, ir::BufferId buffer) {
    return value.valid() ? Place{value, {}} : Place{{}, buffer};
  }

  std::vector<OpId> ops_in(ir::StmtId s) const {
    std::vector<OpId> list;
    const ir::Block one = {s};
    ir::for_each_statement(p_, one, [&](ir::StmtId inside, int) {
      if (const auto op = op_of_.find(inside); op != op_of_.end()) list.push_back(op->second);
    });
    return list;
  }

  void block(const ir::Block& b) {
    for (ir::StmtId s : b) statement(s);
  }
  void statement(ir::StmtId s) {
    ++time_;
    if (const auto op = op_of_.find(s); op != op_of_.end()) return run_op(op->second);
    if (const auto* branch = p_.as<ir::Branch>(s)) {
      read(branch->condition, ops_in(s), s);
      block(eval(branch->condition) != 0 ? branch->then_body : branch->else_body);
    } else if (const auto* loop = p_.as<ir::Loop>(s)) {
      ran_.insert(s);
      const int64_t begin = eval(loop->begin), trips = eval(loop->extents[0]), run = ++runs_;
      read(loop->begin, ops_in(s), s);
      read(loop->extents[0], ops_in(s), s);
      for (int64_t i = 0; i < trips; ++i) {
        vars_[loop->vars[0]] = begin + i;
        turns_.push_back({s, run, i});
        block(loop->body);
        turns_.pop_back();
      }
    }
  }

  template <class Visit>
  static void for_each_point(std::span<const int64_t> extents, Visit&& visit) {
    std::vector<int64_t> at(extents.size(), 0);
    for (;;) {
      visit(at);
      size_t d = at.size();
      while (d > 0 && ++at[d - 1] == extents[d - 1]) at[--d] = 0;
      if (d == 0) return;
    }
  }

  void run_op(OpId id) {
    const KernelOp& op = ops_.ops[id];
    if (const auto* tile_op = p_.as<ir::TileOp>(op.stmt)) {
      for (const ir::Region& r : tile_op->operands)
        for (ir::ExprId offset : r.offsets) read(offset, {id}, op.stmt);
      if (tile_op->value.valid()) read(tile_op->value, {id}, op.stmt);
      const int64_t filled = tile_op->value.valid() ? eval(tile_op->value) : 0;
      for (bool write : {false, true})
        for (const OpAccess& a : op.accesses) {
          if (!(write ? a.write : a.read)) continue;
          const ir::Region& r = tile_op->operands[static_cast<size_t>(a.operand)];
          const std::vector<int64_t> base = evaluated(r.offsets);
          for_each_point(r.extents, [&](std::vector<int64_t> at) {
            for (size_t d = 0; d < at.size(); ++d) at[d] += base[d];
            touch(id, place(a.value, a.buffer), at, write);
            if (write) memory_[{a.buffer, at}] = filled + time_ % 3;
          });
        }
    } else if (const auto* loop = p_.as<ir::Loop>(op.stmt)) {
      const std::vector<int64_t> extents = evaluated(loop->extents);
      for_each_point(extents, [&](const std::vector<int64_t>& at) {
        for (size_t d = 0; d < at.size(); ++d) vars_[loop->vars[d]] = at[d];
        elements(id, loop->body);
      });
    } else {
      elements(id, {op.stmt});
    }
  }
  void elements(OpId id, const ir::Block& body) {
    for (ir::StmtId s : body) {
      if (const auto* branch = p_.as<ir::Branch>(s)) {
        read(branch->condition, {id}, {});
        elements(id, eval(branch->condition) != 0 ? branch->then_body : branch->else_body);
      } else if (const auto* store = p_.as<ir::Store>(s)) {
        read(store->value, {id}, {});
        for (ir::ExprId index : store->indices) read(index, {id}, {});
        const std::vector<int64_t> at = evaluated(store->indices);
        touch(id, place(ops_.value_of(ops_.ops[id], store->buffer), store->buffer), at, true);
        memory_[{store->buffer, at}] = eval(store->value) % 7;
      }
    }
  }

  const ir::Program& p_;
  const KernelOps& ops_;
  std::map<ir::StmtId, OpId> op_of_;
  std::map<ir::VarId, int64_t> vars_;
  std::set<ir::StmtId> ran_;
  std::map<std::pair<ir::BufferId, std::vector<int64_t>>, int64_t> memory_;
  std::vector<Turn> turns_ = {Turn{}};  // the kernel itself, then the loops around
  std::map<Element, std::vector<Touch>> touches_;
  int64_t time_ = 0, runs_ = 0;
};

}  // namespace tilegen::analysis
