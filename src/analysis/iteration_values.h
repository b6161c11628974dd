// What the elements of tiles are within an iteration of a loop: expressions of the elements that the
// iteration begins with. Temporaries, copies, operations in place and the way a maximum is written are looked
// through, so that rules ask what a value is, not which statements make it.
//
//   copy top -> before
//   reduce s -> top {kind=max, accumulate}                   factor[i] = exp(top[i] - max(top[i], ?[i]))
//   parallel i { factor[i] = exp(before[i] - top[i]) }
//
// requires: a checked program; a loop that is not parallel; a statement inside it.
// ensures: facts, no decisions. What is not followed (products, what is reduced, tensors that the program
// writes, inner loops, parts of tiles) is an element that equals no other. `max` and `min` by `select` are
// taken for themselves: they differ where an element is a NaN, or in the sign of a zero.
#pragma once

#include <map>
#include <vector>

#include "ir/program.h"

namespace tilegen::analysis {

class IterationValues {
 public:
  // As the statement `at` in the loop finds them.
  IterationValues(const ir::Program& p, ir::StmtId loop, ir::StmtId at);

  // Elements of the on-chip tile are 1 in iterations that leave some other tile as it was: a largest element
  // so far that stays the largest.
  bool is_one_where_unchanged(ir::BufferId tile);

 private:
  using Tiles = std::map<ir::BufferId, ir::ExprId>;  // an element by the indices any_indices()
  using Indices = std::vector<ir::ExprId>;

  // The walk over an iteration.
  void block(const ir::Block& b, Tiles& tiles);
  void statement(ir::StmtId s, Tiles& tiles);
  void branch(const ir::Branch& branch, Tiles& tiles);
  void stores(const ir::Block& b, const ir::Loop* points, ir::ExprId condition, Tiles& tiles);
  void store(const ir::Store& store, const ir::Loop* points, ir::ExprId condition, Tiles& tiles);
  void tile_op(const ir::TileOp& op, Tiles& tiles);
  void set(ir::BufferId tile, ir::ExprId element, Tiles& tiles);
  void forget(const ir::Block& b, Tiles& tiles);
  bool on_chip(ir::BufferId b) const { return p_.buffer(b).scope != ir::MemScope::global; }
  bool is_whole(const ir::Region& r) const;

  // Elements.
  ir::ExprId any_index(size_t dimension) { return e_.var(ir::VarId(p_.vars.size() + dimension)); }
  Indices any_indices(ir::BufferId tile);
  ir::ExprId unknown(ir::BufferId tile);
  ir::ExprId element(const Tiles& tiles, ir::BufferId tile, const Indices& indices);
  ir::ExprId copied(const ir::TileOp& copy, const Tiles& tiles);

  // Expressions in the pool of their own. `leaf` gives what stands for a variable or a load, or an invalid
  // id.
  using Memo = std::map<ir::ExprId, ir::ExprId>;
  template <class Leaf>
  ir::ExprId rewrite(const ir::ExprPool& from, ir::ExprId e, const Leaf& leaf, Memo& memo);
  ir::ExprId read(ir::ExprId e, const Tiles& tiles);
  ir::ExprId binary(ir::ExprOp op, ir::ExprId a, ir::ExprId b);
  ir::ExprId choice(ir::ExprId condition, ir::ExprId a, ir::ExprId b);

  // Where tiles stay as they were.
  ir::ExprId unchanged(ir::ExprId e);
  ir::ExprId kept_by(ir::ExprId next, ir::ExprId e, int depth);
  bool may_equal(ir::ExprId a, ir::ExprId b, int depth) const;
  bool may_be_zero(ir::ExprId e);
  bool may_be_one(ir::ExprId e);
  bool is_zero_by_parts(ir::ExprId e);
  bool is_one_by_parts(ir::ExprId e);

  const ir::Program& p_;
  const ir::StmtId at_;
  ir::ExprPool e_;
  size_t next_;  // number of the next element that equals no other
  bool reached_ = false;
  Tiles found_, after_;
  std::map<ir::ExprId, bool> zero_, one_;  // what has been asked
};

}  // namespace tilegen::analysis
