#include "thread/sync_history.h"

#include <algorithm>

namespace tilegen::thread {

// A target without warpgroups has one of all threads, at whose barriers nobody meets.
SyncHistory::SyncHistory(const ThreadProgram& p, int64_t units)
    : warpgroup_(p.machine.warpgroup > 0 ? p.machine.warpgroup : std::max<int64_t>(p.threads, 1)),
      units_(static_cast<size_t>(units)),
      copies_(static_cast<size_t>(p.threads)) {
  const auto warpgroups = static_cast<size_t>(p.threads / warpgroup_ + 1);
  products_.resize(warpgroups);
  met_.resize(warpgroups, 0);
  const auto of_warps = [](const NamedBarrier& b) { return b.use == BarrierUse::warps; };
  if (std::any_of(p.named_barriers.begin(), p.named_barriers.end(), of_warps)) spans_.resize(units_.size());
}

void SyncHistory::meet_of_threads(int64_t first, int64_t end) {
  const auto same = [&](const WarpSet& s) { return s.first == first && s.end == end; };
  auto it = std::find_if(warp_sets_.begin(), warp_sets_.end(), same);
  if (it == warp_sets_.end()) it = warp_sets_.insert(it, WarpSet{first, end, -1});
  it->met = time_++;
}

bool SyncHistory::warps_have_met(const Span& s, int64_t thread) const {
  return std::any_of(warp_sets_.begin(), warp_sets_.end(), [&](const WarpSet& w) {
    return w.met >= s.time && w.first <= s.first && s.last < w.end && w.first <= thread && thread < w.end;
  });
}

// `anew`: nothing before counts. What is of several threads is as new as the newest.
void SyncHistory::extend(Span& s, const Access& a, bool anew) const {
  const auto thread = static_cast<Number>(a.thread);
  s = {time_, anew ? thread : std::min(s.first, thread), anew ? thread : std::max(s.last, thread)};
}

void SyncHistory::commit(int64_t thread) {
  CopyGroups& g = copies_[static_cast<size_t>(thread)];
  g.finished.push_back({});
  ++g.open;
}

void SyncHistory::wait(int64_t thread, int64_t pending) {
  CopyGroups& g = copies_[static_cast<size_t>(thread)];
  for (int64_t i = 0; i < g.open - pending; ++i)
    if (Stamp& s = g.finished[static_cast<size_t>(i)]; s.epoch < 0) s = now(warpgroup_of(thread));
}

void SyncHistory::issue_product(int64_t warpgroup) {
  product_ = static_cast<Number>(finished_.size());
  finished_.push_back(false);
  Products& g = products_[static_cast<size_t>(warpgroup)];
  g.under_way.emplace_back(product_, g.commits);
}

void SyncHistory::wait_products(int64_t warpgroup, int64_t pending) {
  const Products& g = products_[static_cast<size_t>(warpgroup)];
  for (auto [number, group] : g.under_way)
    if (group + pending < g.commits) finished_[static_cast<size_t>(number)] = true;
}

SyncHistory::Stamp SyncHistory::now(Number g) const { return {epoch_, g, met_[static_cast<size_t>(g)]}; }

// A barrier stands between the stamp and what a thread of the warpgroup does now.
bool SyncHistory::before(const Stamp& s, Number g) const {
  return s.epoch < epoch_ || (s.warpgroup == g && s.met < met_[static_cast<size_t>(g)]);
}

bool SyncHistory::write_is_visible(size_t unit, const Access& a) const {
  const Unit& u = units_[unit];
  if (u.writer == kNobody) return true;
  if (u.write_group == kSynchronous)
    return (u.writer == a.who && a.who != kMany) || before(u.written, a.warpgroup) ||
           (!spans_.empty() && warps_have_met(spans_[unit].written, a.thread));
  if (u.writer == kMany) return false;
  const CopyGroups& g = copies_[static_cast<size_t>(u.writer)];
  if (u.write_group >= g.open) return false;
  const Stamp& done = g.finished[static_cast<size_t>(u.write_group)];
  return done.epoch >= 0 && (u.writer == a.who || before(done, a.warpgroup));
}

std::vector<SyncHistory::Clash> SyncHistory::read(size_t unit, const Access& a) {
  Unit& u = units_[unit];
  const auto who = static_cast<Number>(a.who);
  std::vector<Clash> clashes;
  if (!write_is_visible(unit, a)) clashes.push_back({Clash::Kind::with_write, u.write_stmt, u.writer});
  const Stamp now = this->now(a.warpgroup);
  const bool first = u.reader == kNobody || before(u.read, a.warpgroup);
  if (!spans_.empty()) extend(spans_[unit].read, a, first);
  if (first) {
    u.reader = who;
    u.read = now;
  } else {
    if (u.reader != a.who) u.reader = kMany;
    u.read = {now.epoch, u.read.warpgroup == now.warpgroup ? now.warpgroup : -1, now.met};
  }
  if (product_ != kNobody) u.product = product_;
  u.read_instance = instance_;
  u.read_stmt = a.stmt;
  return clashes;
}

std::vector<SyncHistory::Clash> SyncHistory::write(size_t unit, const Access& a) {
  Unit& u = units_[unit];
  const auto who = static_cast<Number>(a.who);
  std::vector<Clash> clashes;
  if (u.write_instance != instance_ && !write_is_visible(unit, a))
    clashes.push_back({Clash::Kind::with_write, u.write_stmt, u.writer});
  // Its own product a warpgroup waits for without a barrier.
  const bool own_product = u.reader == kProducts - a.warpgroup;
  const bool met = !spans_.empty() && warps_have_met(spans_[unit].read, a.thread);
  if (u.reader != kNobody && !own_product && !met && !before(u.read, a.warpgroup) &&
      (u.reader != a.who || a.who == kMany) && u.read_instance != instance_)
    clashes.push_back({Clash::Kind::with_read, u.read_stmt, u.reader});
  if (u.product != kNobody && !finished_[static_cast<size_t>(u.product)])
    clashes.push_back({Clash::Kind::with_product, u.read_stmt, kNobody});
  const bool again = u.write_instance == instance_;
  const Stamp now = this->now(a.warpgroup);
  if (!spans_.empty()) extend(spans_[unit].written, a, !again);
  const bool of_others = again && u.written.warpgroup != now.warpgroup;
  u.writer = !a.async && again && u.writer != who ? Number{kMany} : who;
  u.written = {now.epoch, of_others ? -1 : now.warpgroup, now.met};
  u.write_group = a.async ? copies_[static_cast<size_t>(a.thread)].open : kSynchronous;
  u.write_instance = instance_;
  u.write_stmt = a.stmt;
  return clashes;
}

}  // namespace tilegen::thread
