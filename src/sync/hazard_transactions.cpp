// What arrivals and waits at transaction barriers do to accesses that nothing orders yet.
#include "sync/hazard_walk.h"

namespace tilegen::sync {

// All of the warps arrive behind it: behind what they did themselves, their own copies where the arrival is
// for these, and what they know of.
bool HazardWalk::comes_before(const Outstanding& access, const TransactionOrder::Point& arrival) {
  const WarpRange& warps = arrival.warps;
  if (warps.count == 0) return false;
  if ((!access.in_flight || arrival.copies) && warps.holds(warps_of(access.access))) return true;
  for (size_t set = 0; set < waiting_.size(); ++set)
    if ((access.known_to >> set & 1) != 0 && waiting_[set].holds(warps)) return true;
  for (size_t set = 0; set < warp_sets_.size(); ++set)
    if ((access.met_in >> set & 1) != 0 && warp_sets_[set].holds(warps_of(access.access)) &&
        warp_sets_[set].holds(warps))
      return true;
  return false;
}

// It waits at a transaction barrier, and what else it does is accesses alone: no meeting, and no wait for
// groups of copies, is of one side.
bool HazardWalk::hands_over(thread::StmtId id) {
  const auto [at, fresh] = hands_over_.try_emplace(id, false);
  if (!fresh) return at->second;
  bool waits = false;
  std::vector<thread::StmtId> left{id};
  while (!left.empty()) {
    const thread::StmtId s = left.back();
    left.pop_back();
    if (warp_barriers_.contains(s)) continue;  // of warps of one side
    const thread::StmtNode& node = p_.stmts[s.value].node;
    const TransactionOrder::Point* point = transactions_.find(s);
    if ((std::holds_alternative<thread::Barrier>(node) && !point) ||
        std::holds_alternative<thread::AsyncCommit>(node) || std::holds_alternative<thread::AsyncWait>(node))
      return false;
    waits = waits || (point && point->waits);
    for (const thread::Block* inside : thread::blocks_inside(node))
      left.insert(left.end(), inside->begin(), inside->end());
  }
  return at->second = waits;
}

// Threads run both sides, each its own: what either has waited for comes before what all do behind them. The
// accesses have the condition.
Need HazardWalk::walk_sides(const thread::Branch& branch, State& state) {
  Need need = Need::nothing;
  for (const bool taken : {true, false}) {
    enter_branch(branch.condition, taken);
    need = std::max(need, walk(taken ? branch.then_body : branch.else_body, state));
    leave_branch();
  }
  return need;
}

// A condition that is one value as long as the block runs leaves each access on one side of all its ifs.
void HazardWalk::choose(ir::ExprId condition, bool value, State& state) {
  const auto choice = transactions_.choice_of(condition);
  if (!choice) return;
  const bool chosen = value != choice->opposite;
  for (size_t i = state.size(); i-- > 0;) {
    Outstanding access = *outstanding_[state[i].access];
    if (((chosen ? access.left : access.chosen) & choice->bit) != 0) {
      state.erase(state.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    (chosen ? access.chosen : access.left) |= choice->bit;
    state[i].access = number_of(std::move(access));
  }
  close(state);
}

// An arrival that an iteration may leave out says nothing of those behind it.
void HazardWalk::arrive(const TransactionOrder::Point& at, State& state) {
  if (!at.always) return;
  const auto now = current_.find(at.loop);
  for (Held& h : state) {
    Outstanding access = *outstanding_[h.access];
    if (!comes_before(access, at)) continue;
    if (!access.arrivals.try_emplace(at.stmt, now == current_.end() ? Binding{} : now->second).second)
      continue;
    h.access = number_of(std::move(access));
  }
  close(state);
}

// What the arrivals of the phase come behind, or those of an earlier iteration, comes before what the waiting
// warps do from here on.
void HazardWalk::wait(const TransactionOrder::Point& at, State& state) {
  constexpr size_t kMaxSets = 32;  // bits of Outstanding::known_to
  if (at.warps.count == 0) return;
  const auto same = [&](const WarpRange& w) {
    return w.first == at.warps.first && w.count == at.warps.count;
  };
  auto set = std::find_if(waiting_.begin(), waiting_.end(), same);
  if (set == waiting_.end()) {
    if (waiting_.size() == kMaxSets) return;
    set = waiting_.insert(set, at.warps);
  }
  const uint32_t bit = uint32_t{1} << (set - waiting_.begin());
  const auto now = current_.find(at.loop);
  for (Held& h : state) {
    Outstanding access = *outstanding_[h.access];
    for (const auto& [stmt, arrived] : access.arrivals) {
      if (at.named) {
        const TransactionOrder::Point& arrival = *transactions_.find(stmt);
        if (arrival.named && arrival.barriers == at.barriers) access.known_to |= bit;
        continue;
      }
      const auto [back, fresh] = iterations_back_.try_emplace({stmt, at.stmt});
      if (fresh) back->second = transactions_.iterations_back(*transactions_.find(stmt), at, back_);
      if (!back->second) continue;
      const bool outside = !at.loop.valid();
      const bool long_ago = arrived.kind == Binding::Kind::far ||
                            (arrived.kind == Binding::Kind::back && arrived.value >= *back->second);
      const bool numbered = arrived.kind == Binding::Kind::at && now != current_.end() &&
                            now->second.kind == Binding::Kind::at &&
                            now->second.value - arrived.value >= *back->second;
      if (outside || long_ago || numbered) access.known_to |= bit;
    }
    h.access = number_of(std::move(access));
  }
  close(state);
}

}  // namespace tilegen::sync
