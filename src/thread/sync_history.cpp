#include "thread/sync_history.h"

#include <algorithm>

#include "thread/sync_accesses.h"

namespace tilegen::thread {

// A target without warpgroups has one of all threads, at whose barriers nobody meets.
SyncHistory::SyncHistory(const ThreadProgram& p, int64_t units)
    : warpgroup_(p.machine.warpgroup > 0 ? p.machine.warpgroup : std::max<int64_t>(p.threads, 1)),
      units_(static_cast<size_t>(units)),
      copies_(static_cast<size_t>(p.threads)),
      warp_(std::max(p.machine.warp, 1)) {
  const auto warpgroups = static_cast<size_t>(p.threads / warpgroup_ + 1);
  products_.resize(warpgroups);
  met_.resize(warpgroups, 0);
  const auto of_warps = [](const NamedBarrier& b) { return b.use == BarrierUse::warps; };
  const bool roles = std::any_of(p.body.begin(), p.body.end(), [&](StmtId s) {
    return std::holds_alternative<Roles>(p.stmts[s.value].node);
  });
  if (has_program_barriers(p) && !roles) {
    const auto warps = static_cast<size_t>((p.threads + warp_ - 1) / warp_);
    const Clock nothing(2 * warps, -1);
    clocks_.assign(warps, nothing);
    reads_.assign(units_.size() * warps, -1);
    for (const TransactionBarriers& b : p.barriers)
      transactions_.emplace_back(static_cast<size_t>(b.count),
                                 TransactionBarrier{b.arrivals, 0, nothing, nothing});
    named_from_ = static_cast<int>(transactions_.size());
    transactions_.resize(transactions_.size() + p.named_barriers.size());
    for (const Stmt& s : p.stmts)
      if (const auto* b = std::get_if<Barrier>(&s.node); b && is_of_program(p, *b))
        transactions_[static_cast<size_t>(array_of(b->id))] = {{b->threads, 0, nothing, nothing}};
  }
  if (has_clocks() || std::any_of(p.named_barriers.begin(), p.named_barriers.end(), of_warps))
    spans_.resize(units_.size());
}

void SyncHistory::join(Clock& to, const Clock& from) {
  for (size_t w = 0; w < to.size(); ++w) to[w] = std::max(to[w], from[w]);
}

void SyncHistory::meet() {
  ++epoch_;
  for (Clock& clock : clocks_) std::fill_n(clock.begin(), clocks_.size(), time_);
  if (has_clocks()) ++time_;
}

void SyncHistory::arrive(int barriers, int64_t index, int64_t first, int64_t end, bool copies) {
  if (!has_clocks() || index < 0) return;
  auto& array = transactions_[static_cast<size_t>(barriers)];
  if (index >= static_cast<int64_t>(array.size())) return;
  TransactionBarrier& b = array[static_cast<size_t>(index)];
  for (Number w = warp_of(first); w <= warp_of(end - 1); ++w) {
    join(b.open, clocks_[static_cast<size_t>(w)]);
    b.open[static_cast<size_t>(w)] = time_;
    if (copies) b.open[clocks_.size() + static_cast<size_t>(w)] = time_;
  }
  ++time_;
  b.arrived += end - first;
  if (b.arrived < b.wanted) return;
  join(b.completed, b.open);
  b.open.assign(b.open.size(), -1);
  b.arrived = 0;
}

void SyncHistory::await(int barriers, int64_t index, int64_t first, int64_t end) {
  if (!has_clocks() || index < 0) return;
  const auto& array = transactions_[static_cast<size_t>(barriers)];
  if (index >= static_cast<int64_t>(array.size())) return;
  for (Number w = warp_of(first); w <= warp_of(end - 1); ++w)
    join(clocks_[static_cast<size_t>(w)], array[static_cast<size_t>(index)].completed);
}

bool SyncHistory::knows_write(size_t unit, const Access& a) const {
  if (!has_clocks()) return false;
  const Clock& clock = clocks_[static_cast<size_t>(warp_of(a.thread))];
  const Span& s = spans_[unit].written;
  const size_t copies = units_[unit].write_group == kSynchronous ? 0 : clocks_.size();
  for (Number w = warp_of(s.first); w <= warp_of(s.last); ++w)
    if (clock[copies + static_cast<size_t>(w)] < s.time) return false;
  return true;
}

bool SyncHistory::knows_reads(size_t unit, const Access& a) const {
  if (!has_clocks()) return false;
  const Clock& clock = clocks_[static_cast<size_t>(warp_of(a.thread))];
  for (size_t w = 0; w < clocks_.size(); ++w)
    if (clock[w] < reads_[unit * clocks_.size() + w]) return false;
  return true;
}

void SyncHistory::meet_of_threads(int64_t first, int64_t end) {
  const auto same = [&](const WarpSet& s) { return s.first == first && s.end == end; };
  auto it = std::find_if(warp_sets_.begin(), warp_sets_.end(), same);
  if (it == warp_sets_.end()) it = warp_sets_.insert(it, WarpSet{first, end, -1});
  if (has_clocks()) {
    Clock all(2 * clocks_.size(), -1);
    for (Number w = warp_of(first); w <= warp_of(end - 1); ++w) {
      join(all, clocks_[static_cast<size_t>(w)]);
      all[static_cast<size_t>(w)] = time_;
    }
    for (Number w = warp_of(first); w <= warp_of(end - 1); ++w) clocks_[static_cast<size_t>(w)] = all;
  }
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
  if (u.writer == kNobody || knows_write(unit, a)) return true;
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
  if (has_clocks()) reads_[unit * clocks_.size() + static_cast<size_t>(warp_of(a.thread))] = time_;
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
  const bool again = u.write_instance == instance_ || (a.operation != kOfNone && u.operation == a.operation);
  if (!again && !write_is_visible(unit, a))
    clashes.push_back({Clash::Kind::with_write, u.write_stmt, u.writer});
  // Its own product a warpgroup waits for without a barrier.
  const bool own_product = u.reader == kProducts - a.warpgroup;
  const bool met = (!spans_.empty() && warps_have_met(spans_[unit].read, a.thread)) || knows_reads(unit, a);
  if (u.reader != kNobody && !own_product && !met && !before(u.read, a.warpgroup) &&
      (u.reader != a.who || a.who == kMany) && u.read_instance != instance_)
    clashes.push_back({Clash::Kind::with_read, u.read_stmt, u.reader});
  if (u.product != kNobody && !finished_[static_cast<size_t>(u.product)])
    clashes.push_back({Clash::Kind::with_product, u.read_stmt, kNobody});
  const Stamp now = this->now(a.warpgroup);
  if (!spans_.empty()) extend(spans_[unit].written, a, !again);
  if (has_clocks() && !again)
    std::fill_n(reads_.begin() + static_cast<long>(unit * clocks_.size()), clocks_.size(), Number{-1});
  const bool of_others = again && u.written.warpgroup != now.warpgroup;
  u.writer = !a.async && again && u.writer != who ? Number{kMany} : who;
  u.written = {now.epoch, of_others ? -1 : now.warpgroup, now.met};
  u.write_group = a.async ? copies_[static_cast<size_t>(a.thread)].open : kSynchronous;
  u.write_instance = instance_;
  u.operation = a.operation;
  u.write_stmt = a.stmt;
  return clashes;
}

}  // namespace tilegen::thread
