// Tiles that threads write and products of a consumer's loop read: where the threads have to meet.
//
//   write -> fence -> meet -> product .. await -> meet -> write again
//
// The fence puts the writes before the products' reads, which are the asynchronous proxy's; asynchronous
// copies are complete before it. The first meeting is that of the threads that share the tile: the warpgroup
// where it reads its own rows only, or all of the role. The second has all warpgroups' products finished; a
// warpgroup that reads its own rows has awaited them itself. Where iterations have slots of their own, two in
// turn, one meeting does both: the products of the iteration before are awaited before it.
#pragma once

#include <algorithm>
#include <optional>

#include "expand/consumer_units.h"

namespace tilegen::expand {

// Tiles that threads have written go over to products: who meets (nobody where there are none), and whether
// asynchronous copies write them.
struct HandOver {
  std::optional<Scope> scope;
  bool copied = false;
  void add(const Expander& x, const analysis::ThreadWrittenOperand& w);
};
void emit_hand_over(const HandOver& h, Block& out);

class WrittenTiles {
 public:
  WrittenTiles(const Expander& x, const std::vector<ConsumerUnit>& order);

  // Before the loop and after it: for what is written outside of it.
  void enter(Block& out) const { emit_hand_over(enter_, out); }
  void leave(Block& out) const { meet(leave_, out); }
  // Before a unit, by its number in the order, and after it; there it tells whether warpgroups have
  // met.
  void before(size_t at, Block& out) const { meet(before_[at], out); }
  bool after(size_t at, Block& out) const {
    emit_hand_over(after_[at], out);
    return after_[at].scope.has_value();
  }

 private:
  // Who meets; the role's threads rather than a warpgroup's, these rather than nobody.
  using Meet = std::optional<Scope>;
  void place(const analysis::ThreadWrittenOperand& w, const std::vector<ConsumerUnit>& order);
  static void raise(Meet& m, Scope to) { m = std::max(m, Meet(to)); }
  static void meet(Meet m, Block& out);

  const Expander& x_;
  std::vector<Meet> before_;  // by place in the order
  std::vector<HandOver> after_;
  HandOver enter_;
  Meet leave_;
};

}  // namespace tilegen::expand
