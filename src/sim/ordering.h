// What happens before what among the threads of a block and the engines that work for them, as vector clocks.
//
// Warps and engines (sim/engines.h) are parties, each with an epoch. A warp's epoch grows when it releases
// what it did, an engine's with each of its works. An access of party p at epoch e is ordered before what
// warp w does now when w has seen e of p: by a barrier that p's warp released e to and w waited at since, or
// by a wait for the engine. Lanes of one warp are ordered the same way: by a barrier that their warp waited
// at.
//
// What some lanes of a warp wait for alone they have seen alone; of such lanes one set per warp is kept.
// `fenced` is what `seen` is, of plain accesses that a proxy fence has put before the asynchronous proxy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/bytecode.h"

namespace tilegen::sim {

class Ordering {
 public:
  struct Clock {
    std::vector<uint32_t> seen, fenced;
    void clear() { seen.clear(), fenced.clear(); }
  };

  Ordering(int warps, int parties)
      : warps_(warps), parties_(parties), epoch_(parties, 1), own_fence_(warps, 0), rows_(2 * size_t(warps)) {
    for (Row& r : rows_) r.clock.seen.resize(parties), r.clock.fenced.resize(warps);
  }

  // A new block: nothing that happened before is ordered, or visible as of this block.
  void begin_block() {
    for (uint32_t e : epoch_) first_ = e >= first_ ? e + 1 : first_;
    std::fill(epoch_.begin(), epoch_.end(), first_);
    std::fill(own_fence_.begin(), own_fence_.end(), first_ - 1);
    for (Row& r : rows_) {
      r.lanes = 0;
      std::fill(r.clock.seen.begin(), r.clock.seen.end(), first_ - 1);
      std::fill(r.clock.fenced.begin(), r.clock.fenced.end(), first_ - 1);
    }
  }
  uint32_t first_epoch() const { return first_; }
  int warps() const { return warps_; }
  int parties() const { return parties_; }
  uint32_t epoch(int party) const { return epoch_[party]; }
  void advance(int party) { ++epoch_[party]; }

  // Accesses of each party up to this epoch are ordered before those of these lanes of `warp` now; for its
  // own warp, those of its other lanes.
  const uint32_t* seen(int warp, LaneMask lanes) const { return row(warp, lanes).clock.seen.data(); }
  const uint32_t* fenced(int warp, LaneMask lanes) const { return row(warp, lanes).clock.fenced.data(); }
  uint32_t own_fence(int warp) const { return own_fence_[warp]; }

  // The warp's plain accesses so far come before the asynchronous proxy's after.
  void fence(int warp) {
    own_fence_[warp] = epoch_[warp];
    ++epoch_[warp];
  }

  static void join(Clock& to, const Clock& from) {
    if (to.seen.size() < from.seen.size()) to.seen.resize(from.seen.size(), 0);
    if (to.fenced.size() < from.fenced.size()) to.fenced.resize(from.fenced.size(), 0);
    for (size_t i = 0; i < from.seen.size(); ++i) raise(to.seen[i], from.seen[i]);
    for (size_t i = 0; i < from.fenced.size(); ++i) raise(to.fenced[i], from.fenced[i]);
  }

  // These lanes of `warp` release what they know and, with `own`, what the warp did into a barrier's clock.
  void release(int warp, LaneMask lanes, bool whole, bool own, Clock& clock) {
    join(clock, whole ? base(warp).clock : row(warp, lanes).clock);
    if (whole && part(warp).lanes != 0) join(clock, part(warp).clock);
    if (!own) return;
    raise(clock.seen[warp], epoch_[warp]);
    raise(clock.fenced[warp], own_fence_[warp]);
    ++epoch_[warp];
  }
  void acquire(int warp, LaneMask lanes, bool whole, const Clock& clock) {
    if (clock.seen.empty()) return;
    if (whole) join(base(warp).clock, clock);
    if (whole ? part(warp).lanes != 0 : (open_part(warp, lanes), true)) join(part(warp).clock, clock);
  }
  // A wait for an engine.
  void see(int warp, LaneMask lanes, bool whole, int party, uint32_t epoch) {
    if (whole) raise(base(warp).clock.seen[party], epoch);
    if (whole ? part(warp).lanes != 0 : (open_part(warp, lanes), true))
      raise(part(warp).clock.seen[party], epoch);
  }

 private:
  struct Row {
    LaneMask lanes = 0;  // of a part: whom it is for
    Clock clock;
  };
  static void raise(uint32_t& to, uint32_t at_least) { to = to < at_least ? at_least : to; }
  Row& base(int warp) { return rows_[2 * size_t(warp)]; }
  Row& part(int warp) { return rows_[2 * size_t(warp) + 1]; }
  const Row& row(int warp, LaneMask lanes) const {
    const Row& p = rows_[2 * size_t(warp) + 1];
    return p.lanes != 0 && (lanes & ~p.lanes) == 0 ? p : rows_[2 * size_t(warp)];
  }
  void open_part(int warp, LaneMask lanes) {
    Row& p = part(warp);
    if (p.lanes == lanes) return;
    p.clock = base(warp).clock;
    p.lanes = lanes;
  }

  int warps_, parties_;
  uint32_t first_ = 1;
  std::vector<uint32_t> epoch_, own_fence_;
  std::vector<Row> rows_;  // of each warp: the base, and the part that some lanes know
};

}  // namespace tilegen::sim
