// Tiles that threads write and products of a channel's loop read: where the threads have to meet.
//
//   write -> fence -> meet -> product .. wait -> meet -> write again
//
// The fence puts the writes in front of the products' reads, which are the asynchronous proxy's. The first
// meeting is that of the threads that share the tile: the warpgroup where it reads its own rows only, or all
// computing threads. The second has all warpgroups' products finished; a warpgroup that reads its own rows
// has waited for them itself. Where iterations have slots of their own, two in turn, one meeting does both:
// the products of the iteration before are waited for in front of it.
#pragma once

#include <vector>

#include "lower/kernel_lowering.h"

namespace tilegen::lower {

class WrittenTiles {
 public:
  // A statement of the loop's body, and how many iterations it lags behind.
  struct Issued {
    ir::StmtId stmt;
    int64_t lag = 0;
  };
  // `order`: of issue.
  WrittenTiles(KernelLowering& k, const std::vector<Issued>& order, const std::string& origin);

  // In front of the loop and behind it: for what is written outside of it.
  void enter(thread::Block& out) { hand_over(enter_, out); }
  void leave(thread::Block& out) { meet(leave_, out); }
  // In front of a statement, by its number in the order, and behind it; there it tells whether warpgroups
  // have met.
  void before(size_t at, thread::Block& out) { meet(before_[at], out); }
  bool behind(size_t at, thread::Block& out) {
    hand_over(behind_[at], out);
    return behind_[at] != Meeting::none;
  }

 private:
  enum class Meeting : uint8_t { none, warpgroup, all };
  void place(const schedule::WrittenOperand& w, const std::vector<Issued>& order);
  static void raise(Meeting& m, Meeting to) { m = m < to ? to : m; }
  void meet(Meeting m, thread::Block& out);
  void hand_over(Meeting m, thread::Block& out);

  KernelLowering& k_;
  const std::string& origin_;
  std::vector<Meeting> before_, behind_;  // by place in the order
  Meeting enter_ = Meeting::none, leave_ = Meeting::none;
};

}  // namespace tilegen::lower
