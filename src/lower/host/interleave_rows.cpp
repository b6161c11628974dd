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
    const ExprId index = store(nest.stores[0]).index;
    vars_ = {};
    const auto distance = thread::coefficient_of(p_, lanes.var, index);
    if (distance == 2 || distance == 4) {
      split_first(nest, {*distance, 1, 1});
      return;
    }
    // Words of 32 bits, transposed.
    const int64_t bits = ir::dtype_bits(p_.memory(store(nest.stores[0]).memory).type);
    int64_t width = 0;
    if (bits < 8 || bits > 32 || !p_.exprs.is_const_int(lanes.extent, &width) ||
        width > thread::kMaxTransposedLanes)
      return;
    const int64_t unit = 32 / bits;
    const auto digits = thread::lane_digits(p_, lanes.var, unit, index);
    if (!digits || (unit > 1 && digits->units != 1)) return;
    for (int64_t rows : {16, 8, 4})
      if (width % (rows * unit) == 0 && digits->words >= rows * unit && split_first(nest, {rows, unit, unit}))
        return;
  }

  // So many rows, which stand `apart` elements from each other; lanes of a unit stay together.
  struct Group {
    int64_t size = 1, apart = 1, unit = 1;
  };
  bool split_first(const thread::PerfectNest& nest, Group group) {
    for (StmtId row : nest.loops)
      if (row != nest.loops.back() && loop(row).form == thread::LoopForm::serial && !loop(row).condition)
        if (split(nest, row, group)) return true;
    return false;
  }

  bool split(const thread::PerfectNest& nest, StmtId row, Group group) {
    int64_t extent = 0;
    if (!p_.exprs.is_const_int(loop(row).extent, &extent)) return false;
    for (int64_t panel = group.size; panel <= extent; panel += group.size)
      if (extent % panel == 0 && split(nest, row, extent, panel, group)) return true;
    return false;
  }

  // The loop `row` counts panels, a loop inside of the nest the groups of one, where there are several, and
  // its body is that of a row of the group, in a loop around the lanes. False where the rows of a group do
  // not stand so in the tile.
  bool split(const thread::PerfectNest& nest, StmtId row, int64_t extent, int64_t panel, Group group) {
    ir::ExprPool& e = p_.exprs;
    const StmtId lanes = nest.loops.back(), parent = nest.loops[nest.loops.size() - 2];
    const VarId var = loop(row).var, lane = loop(lanes).var;
    if (vars_.empty()) vars_ = {new_var("row"), new_var("group"), new_var("word"), new_var("unit")};
    const VarId in_group = vars_[0], in_panel = vars_[1], word = vars_[2], within = vars_[3];
    arith::Context context(e);
    thread::VarExtents vars = {{in_panel, panel / group.size}, {in_group, group.size}};
    for (StmtId l : nest.loops) {
      int64_t reach = 0;
      if (!e.is_const_int(loop(l).extent, &reach)) return false;
      vars.emplace_back(loop(l).var, l == row ? extent / panel : reach);
    }
    for (const auto& [v, count] : vars) context.bind(v, 0, count - 1);
    const ExprId first = e.add(e.mul(e.var(var), panel), e.mul(e.var(in_panel), group.size));
    thread::VarSubstitution there(e, {{var, e.add(first, e.var(in_group))}});
    const thread::Store before = store(nest.stores[0]);
    const ExprId index = arith::simplify(context, there(before.index));
    if (thread::coefficient_of(p_, in_group, index) != group.apart) return false;
    // The last of several stores to an element must stay the last.
    ExprId place = index;
    if (group.unit > 1) {
      const int64_t words = vars.back().second / group.unit;
      vars.back() = {word, words};
      vars.emplace_back(within, group.unit);
      context.bind(word, 0, words - 1);
      context.bind(within, 0, group.unit - 1);
      thread::VarSubstitution apart(e, {{lane, e.add(e.mul(e.var(word), group.unit), e.var(within))}});
      place = arith::simplify(context, apart(index));
    }
    if (!thread::injective(p_, vars, place)) return false;
    const std::string origin = p_.stmts[lanes.value].origin;
    const auto wrapped = [&](VarId v, int64_t count, thread::LoopForm form, StmtId body) {
      return p_.add(thread::Loop{v, e.const_int(count), form, {body}}, origin);
    };
    StmtId rows = wrapped(in_group, group.size, thread::LoopForm::unrolled, lanes);
    if (panel > group.size) rows = wrapped(in_panel, panel / group.size, thread::LoopForm::serial, rows);
    loop(row).extent = e.const_int(extent / panel);
    thread::Store after = before;
    after.index = index;
    after.value = arith::simplify(context, there(before.value));
    store(nest.stores[0]) = after;
    loop(parent).body = {rows};
    return true;
  }

  VarId new_var(const char* name) {
    return p_.add_var(name + std::to_string(p_.vars.size()), ir::VarKind::loop);
  }

  ThreadProgram& p_;
  std::vector<VarId> vars_;  // of the nest: row of a group, group of a panel, word, element of a word
};

}  // namespace

void interleave_rows(ThreadProgram& p) {
  if (p.threads == 1) RowInterleaver(p).block(thread::Block(p.body));
}

}  // namespace tilegen::lower
