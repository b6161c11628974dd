// What has to stand between an earlier access and a later one, and which warps it is about.
#include <algorithm>

#include "sync/hazard_walk.h"

namespace tilegen::sync {

using thread::StmtId;

Need HazardWalk::between(uint32_t earlier, uint32_t later) {
  const auto [at, fresh] = needs_.try_emplace(uint64_t{earlier} << 32 | later, Need::nothing);
  if (fresh) at->second = find_between(*outstanding_[earlier], *outstanding_[later]);
  return at->second;
}

// What other threads of the block did to tensors comes before an operation that releases it, and what they do
// behind one that acquires, after it. Of one parallel loop no iteration comes before another.
bool HazardWalk::orders_block(int earlier, int later) {
  const auto& first = oracle_[earlier].access;
  const auto& second = oracle_[later].access;
  if (!ir::releases(second.order) && !ir::acquires(first.order)) return false;
  const auto of_tensor = [&](const thread::SyncAccess& a) {
    return p_.memory(a.memory).space == thread::Space::global;
  };
  return of_tensor(first) && of_tensor(second) && oracle_[earlier].origin != oracle_[later].origin;
}

Need HazardWalk::find_between(const Outstanding& earlier, const Outstanding& later) {
  if (orders_block(earlier.access, later.access)) return earlier.in_flight ? Need::wait : Need::barrier;
  if (!oracle_[earlier.access].access.write && !oracle_[later.access].access.write) return Need::nothing;
  if (thread::any_order(oracle_[earlier.access].access, oracle_[later.access].access)) return Need::nothing;
  if (oracle_.same_points(earlier.access, earlier.at, later.access, later.at)) return Need::nothing;
  const Meeting m = oracle_.meeting(earlier.access, earlier.at, later.access, later.at);
  if (m == Meeting::disjoint) return Need::nothing;
  for (size_t set = 0; set < waiting_.size(); ++set)
    if ((earlier.known_to >> set & 1) != 0 && waiting_[set].holds(warps_of(later.access)))
      return Need::nothing;
  if (earlier.in_flight) return earlier.known_to != 0 ? Need::barrier : Need::wait;
  for (size_t set = 0; set < warp_sets_.size(); ++set)
    if ((earlier.met_in >> set & 1) != 0 && warp_sets_[set].holds(warps_of(earlier.access)) &&
        warp_sets_[set].holds(warps_of(later.access)))
      return Need::nothing;
  return m == Meeting::clash || (m == Meeting::same_warpgroup && !earlier.met) ? Need::barrier
                                                                               : Need::nothing;
}

bool HazardWalk::add_warp_barrier(StmtId id, const WarpRange& warps) {
  constexpr size_t kMaxSets = 32;  // bits of Outstanding::met_in
  const auto same = [&](const WarpRange& w) { return w.first == warps.first && w.count == warps.count; };
  const auto it = std::find_if(warp_sets_.begin(), warp_sets_.end(), same);
  if (it == warp_sets_.end() && warp_sets_.size() == kMaxSets) return false;
  warp_barriers_[id] = static_cast<size_t>(it - warp_sets_.begin());
  if (it == warp_sets_.end()) warp_sets_.push_back(warps);
  return true;
}

WarpRange HazardWalk::warps_to_await(StmtId id, const State& state) {
  WarpRange all;
  const auto add = [&](int access) {
    const WarpRange& own = warps_of(access);
    if (own.count == 0) return;
    const int64_t first = all.count == 0 ? own.first : std::min(all.first, own.first);
    all = {first, std::max(all.first + all.count, own.first + own.count) - first};
  };
  for (const Held& h : state) {
    State alone{h};
    if (walk(id, alone) == Need::nothing) continue;
    const int earlier = (*this)[h].access;
    if (oracle_[earlier].access.async || oracle_[earlier].access.engine) return {};
    add(earlier);
    if (!is_leaf(id)) continue;
    for (int own : classes_of(id))
      if (thread::may_overlap(p_, oracle_[own].access.memory, oracle_[earlier].access.memory)) add(own);
  }
  return all;
}

// Those with a thread that its condition is not known to leave out.
const WarpRange& HazardWalk::warps_of(int access) {
  const auto [at, fresh] = warps_.try_emplace(access);
  if (!fresh) return at->second;
  const int64_t warp = std::max(p_.machine.warp, 1), warps = (p_.threads + warp - 1) / warp;
  const ir::ExprId condition = oracle_[access].access.predicate;
  if (!condition || !p_.thread_var.valid()) return at->second = {0, warps};
  const thread::IndexProgram program(p_.exprs, condition);
  thread::PointValues values(p_.vars.size());
  int64_t first = warps, end = 0;
  for (int64_t t = 0; t < p_.threads; ++t) {
    values.set(p_.thread_var, t);
    if (program.eval(values).value_or(1) == 0) continue;
    first = std::min(first, t / warp);
    end = std::max(end, t / warp + 1);
  }
  return at->second = {std::min(first, end), end - std::min(first, end)};
}

}  // namespace tilegen::sync
