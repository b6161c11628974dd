// What a walk over roles reports: hazards as they are met, who waits for ever, and what the end leaves open.
#include <algorithm>

#include "thread/role_walk.h"

namespace tilegen::thread {

namespace {

constexpr size_t kMaxHazards = 16;

}  // namespace

void RoleWalk::hazard(StmtId id, StmtId other, const std::string& text) {
  if (!seen_.insert({id, other}).second || hazards_.size() >= kMaxHazards) return;
  const std::string &a = p_.stmts[id.value].origin, &b = p_.stmts[other.value].origin;
  const std::string line = a + (id == other || a == b ? "" : " after " + b) + ": " + text;
  if (std::find(hazards_.begin(), hazards_.end(), line) == hazards_.end()) hazards_.push_back(line);
}

std::string RoleWalk::phase_text(int array, int64_t index) const {
  const Phase& f = phases_[static_cast<size_t>(array)][static_cast<size_t>(index)];
  const TransactionBarriers& b = p_.barriers[static_cast<size_t>(array)];
  return b.name + "[" + std::to_string(index % b.count) + "]" +
         (p_.cluster > 1 ? " of block " + std::to_string(index / b.count) : "") + " (phase " +
         std::to_string(f.number) + ": " + std::to_string(f.arrived) + " of " + std::to_string(b.arrivals) +
         " arrivals" +
         (f.to_land > 0   ? ", " + std::to_string(f.to_land) + " announced bytes that no copy brings"
          : f.to_land < 0 ? ", " + std::to_string(-f.to_land) + " bytes more than announced"
                          : "") +
         ")";
}

std::string RoleWalk::name_of(const Running& x) const {
  return "thread " + std::to_string(x.process.samples[0]) +
         (p_.cluster > 1 ? " of block " + std::to_string(x.block) : "");
}

void RoleWalk::report_stuck() {
  std::string text;
  StmtId first, other;
  for (const Running& x : running_) {
    if (x.state == State::ready || x.state == State::done) continue;
    if (!first.valid())
      first = x.at;
    else if (!other.valid() && x.at != first)
      other = x.at;
    const Meeting& m = meetings_[static_cast<size_t>(x.array) % meetings_.size()];
    const bool of_cluster = static_cast<size_t>(x.array) + 1 == meetings_.size();
    text += (text.empty() ? "" : "; ") + name_of(x) + " waits " +
            (x.state == State::at_barrier
                 ? (of_cluster ? "at the cluster's barrier ("
                               : "at barrier " +
                                     std::to_string(static_cast<size_t>(x.array) % named_barriers_) + " (") +
                       std::to_string(m.arrived) + " of " + std::to_string(m.wanted) + " threads)"
             : x.state == State::at_product
                 ? "for the others of its warpgroup at a product"
                 : "for parity " + std::to_string(x.parity) + " of " + phase_text(x.array, x.index));
  }
  hazard(first, other.valid() ? other : first, "a deadlock: " + text);
}

void RoleWalk::check_end() {
  for (size_t at = 0; at < meetings_.size(); ++at)
    if (const Meeting& m = meetings_[at]; m.arrived > 0)
      hazard(m.last, m.last,
             "the block ends with " + std::to_string(m.arrived) + " of " + std::to_string(m.wanted) +
                 " threads at barrier " + std::to_string(at % named_barriers_) + ", whom nobody waits for");
  for (size_t a = 0; a < phases_.size(); ++a)
    for (size_t k = 0; k < phases_[a].size(); ++k)
      if (const Phase& f = phases_[a][k]; f.loaded > f.waited)
        hazard(f.load, f.load,
               "nobody waits for the copy to " + phase_text(static_cast<int>(a), static_cast<int64_t>(k)));
  for (const Running& x : running_)
    for (const Work& w : x.stores_under_way)
      hazard(w.stmt, w.stmt, "the block ends with no wait for the copy, which may still read its stage");
  for (size_t i = 0; i < running_.size(); ++i)
    for (int64_t block = 0; block < p_.cluster; ++block) {
      const Work& w = running_[i].reached[static_cast<size_t>(block)];
      if (w.number > 0 && std::none_of(running_.begin(), running_.end(), [&](const Running& x) {
            return x.block == block && x.knows.seen[i] >= w.number;
          }))
        hazard(w.stmt, w.stmt,
               "block " + std::to_string(block) +
                   " of the cluster may be over when threads of another arrive at its barrier or read its "
                   "memory");
    }
}

}  // namespace tilegen::thread
