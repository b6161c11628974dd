#include "lower/host/interleave_rows.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "arith/context.h"
#include "arith/simplify.h"
#include "thread/interleaved.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

namespace {

using ir::ExprId;
using ir::VarId;
using thread::StmtId;
using thread::ThreadProgram;

class RowInterleaver {
 public:
  explicit RowInterleaver(ThreadProgram& p) : p_(p) {}

  void block(const thread::Block& body) {
    for (StmtId s : body) {
      if (const auto nest = thread::perfect_nest(p_, s)) {
        interleave(*nest);
      } else if (const auto* loop = std::get_if<thread::Loop>(&p_.stmts[s.value].node)) {
        block(thread::Block(loop->body));
      } else if (const auto* branch = std::get_if<thread::Branch>(&p_.stmts[s.value].node)) {
        const thread::Block otherwise = branch->else_body;
        block(thread::Block(branch->then_body));
        block(otherwise);
      }
    }
  }

 private:
  thread::Loop& loop(StmtId s) { return std::get<thread::Loop>(p_.stmts[s.value].node); }
  thread::Store& store(StmtId s) { return std::get<thread::Store>(p_.stmts[s.value].node); }

  void interleave(const thread::PerfectNest& nest) {
    if (nest.stores.size() != 1 || nest.loops.size() < 2 || store(nest.stores[0]).predicate) return;
    const thread::Loop lanes = loop(nest.loops.back());
    if (lanes.form != thread::LoopForm::vectorized || !thread::only_copies_on_chip(p_, store(nest.stores[0])))
      return;
    const auto distance = thread::coefficient_of(p_, lanes.var, store(nest.stores[0]).index);
    if (distance != 2 && distance != 4) return;
    for (StmtId row : nest.loops)
      if (row != nest.loops.back() && loop(row).form == thread::LoopForm::serial && !loop(row).condition)
        if (split(nest, row, *distance)) return;
  }

  // The loop `row` counts groups of `size`, and its body is that of one of the group, in a loop around the
  // lanes. False where the rows of a group are not neighbours in the tile.
  bool split(const thread::PerfectNest& nest, StmtId row, int64_t size) {
    int64_t extent = 0;
    if (!p_.exprs.is_const_int(loop(row).extent, &extent) || extent % size != 0) return false;
    ir::ExprPool& e = p_.exprs;
    const VarId var = loop(row).var,
                in_group = p_.add_var("row" + std::to_string(p_.vars.size()), ir::VarKind::loop);
    arith::Context context(e);
    for (StmtId l : nest.loops) {
      int64_t reach = 0;
      if (!e.is_const_int(loop(l).extent, &reach)) return false;
      context.bind(loop(l).var, 0, (l == row ? extent / size : reach) - 1);
    }
    context.bind(in_group, 0, size - 1);
    thread::VarSubstitution there(e, {{var, e.add(e.mul(e.var(var), size), e.var(in_group))}});
    const thread::Store before = store(nest.stores[0]);
    const ExprId index = arith::simplify(context, there(before.index));
    if (thread::coefficient_of(p_, in_group, index) != 1) return false;
    const StmtId lanes = nest.loops.back(), parent = nest.loops[nest.loops.size() - 2];
    const StmtId group =
        p_.add(thread::Loop{in_group, e.const_int(size), thread::LoopForm::unrolled, {lanes}},
               p_.stmts[lanes.value].origin);
    thread::PerfectNest grouped = nest;
    grouped.loops.insert(grouped.loops.end() - 1, group);
    const ExprId whole = loop(row).extent;
    loop(row).extent = e.const_int(extent / size);
    if (!thread::injective(p_, grouped,
                           index)) {  // the last of several stores to an element must stay the last
      loop(row).extent = whole;
      return false;
    }
    thread::Store after = before;
    after.index = index;
    after.value = arith::simplify(context, there(before.value));
    store(nest.stores[0]) = after;
    loop(parent).body = {group};
    return true;
  }

  ThreadProgram& p_;
};

}  // namespace

void interleave_rows(ThreadProgram& p) {
  if (p.threads == 1) RowInterleaver(p).block(thread::Block(p.body));
}

}  // namespace tilegen::lower
