// Asynchronous copies: those in flight, their groups, and who touches their bytes meanwhile.
#include "sim/async_copies.h"

#include <algorithm>
#include <cstring>

#include "sim/cluster_run.h"
#include "sim/element_check.h"
#include "sim/memory_access.h"
#include "sim/run_findings.h"
#include "sim/tensor_engine.h"

namespace tilegen::sim {

using thread::Space;

namespace {

LaneMask bit(int lane) { return LaneMask{1} << lane; }

// A store to what a copy of this block still reads.
void check_sources(ClusterRun& run, const Warp& w, uint32_t access, int lane, uint64_t address,
                   int64_t bytes) {
  for (const Warp& owner : run.warps)
    for (uint32_t id : owner.copies) {
      const CopyInFlight& c = run.copies[id];
      for (int l = 0; l < run.lanes; ++l) {
        if ((c.pending & c.fetched & bit(l)) == 0) continue;
        const uint64_t from = c.from[static_cast<size_t>(l)];
        if (from >= address + static_cast<uint64_t>(bytes) ||
            address >= from + static_cast<uint64_t>(c.bytes))
          continue;
        const MemoryView& m = run.memory(run.code.accesses[access].memory);
        return access_finding(run, FindingKind::async_source_changed, access, thread_of(w, lane),
                              static_cast<int64_t>(address - m.address) / m.element,
                              "an async copy reads it until it is waited for", c.src_access,
                              thread_of(owner, l));
      }
    }
}

// The bytes of one lane's copy arrive.
void move(ClusterRun& run, CopyInFlight& c, int lane) {
  std::byte* to = run.arena.data() + c.to[static_cast<size_t>(lane)];
  if (c.fetched & bit(lane))
    std::memcpy(to, std::bit_cast<const std::byte*>(c.from[static_cast<size_t>(lane)]),
                static_cast<size_t>(c.bytes));
  else
    std::memset(to, 0, static_cast<size_t>(c.bytes));
}

void land(ClusterRun& run, Warp& w, CopyInFlight& c, uint32_t id, LaneMask lanes) {
  const MemoryView& src = run.memory(run.code.accesses[c.src_access].memory);
  for (int l = 0; l < run.lanes; ++l) {
    if ((lanes & bit(l)) == 0) continue;
    if (run.options.async_latest) move(run, c, l);
    if (run.options.check_races)
      run.history.land(actor(run, w, l, c.dst_access), c.to[static_cast<size_t>(l)], c.bytes,
                       id * static_cast<uint32_t>(run.lanes) + l + 1);
    // The copy has read its source at any time up to now.
    if (src.watched && (c.fetched & bit(l)))
      global_access(run, w, c.src_access, l, c.from[static_cast<size_t>(l)], c.bytes, false);
  }
  c.pending &= ~lanes;
  if (c.pending == 0 && src.watched && c.fetched != 0) --run.watched_sources;
}

// Lane l's bytes come l places behind those of lane 0.
void check_lane_order(ClusterRun& run, const Warp& w, const Step& s, const Addresses& to, int bytes) {
  if (!run.code.program->machine.copies_in_lane_order || to.lanes == 0) return;
  const MemoryView& m = run.memory(run.code.accesses[s.access].memory);
  const int first = std::countr_zero(to.lanes);
  for (int l = first; l < run.lanes; ++l) {
    if ((to.lanes & bit(l)) == 0) continue;
    const int64_t at = to.at[static_cast<size_t>(l)], behind = at - to.at[static_cast<size_t>(first)];
    if (behind == int64_t{bytes} * (l - first)) continue;
    return access_finding(run, FindingKind::lane_order, s.access, thread_of(w, l),
                          (at - run.arena_begin(w.rank) - m.arena_offset) / m.element,
                          "lane " + std::to_string(l) + " writes " + std::to_string(behind) +
                              " bytes behind lane " + std::to_string(first));
  }
}

}  // namespace

void global_access(ClusterRun& run, const Warp& w, uint32_t access, int lane, uint64_t address, int64_t bytes,
                   bool write) {
  if (write && run.watched_sources > 0) check_sources(run, w, access, lane, address, bytes);
  global_access(run, actor(run, w, lane, access), address, bytes, write);
}

void global_access(ClusterRun& run, const SharedHistory::Actor& who, uint64_t address, int64_t bytes,
                   bool write) {
  if (!run.options.check_races || run.launch.global == nullptr) return;
  GlobalHistory::Actor by{who};
  const auto thread_of_party = [&](int64_t thread) {
    const auto party = static_cast<size_t>(thread / run.lanes);
    return party < run.warps.size() ? thread : run.asked_by[party];
  };
  by.block = run.block + thread_of_party(by.thread) / run.block_threads();
  GlobalHistory& history = *run.launch.global;
  // Of blocks that write the same value no one races with another.
  const bool atomic =
      write && (run.code.program->overlapping_blocks || run.code.accesses[who.access].atomic.has_value());
  const GlobalHistory::Found f = atomic  ? history.update(by, address, bytes)
                                 : write ? history.write(by, address, bytes)
                                         : history.read(by, address, bytes);
  if (f.trouble.conflict == Conflict::none) return;
  const MemoryView& m = run.memory(run.code.accesses[who.access].memory);
  Event e;
  e.kind = FindingKind::data_race;
  e.access = who.access;
  e.other_access = f.trouble.other_access;
  e.block = run.block;
  e.other_block = f.other_block;
  e.thread = thread_of_party(by.thread);
  e.other_thread = thread_of_party(f.trouble.other_thread);
  e.element = (static_cast<int64_t>(f.at) - static_cast<int64_t>(m.address)) / m.element;
  report(run, std::move(e));
}

void async_copy(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::AsyncCopy>(s);
  const MemoryView &dst = run.memory(n.dst), &src = run.memory(n.src);
  const Addresses to = locate(run, w, s.access, w.mask, w.values.operand(s.x), true);
  const LaneMask wanted = s.z ? true_lanes(w, s.z, to.lanes) : to.lanes;
  const Addresses from = locate(run, w, s.access2, wanted, w.values.operand(s.y), true);
  check_alignment(run, w, s.access, to, n.bytes);
  check_alignment(run, w, s.access2, from, n.bytes);
  check_lane_order(run, w, s, to, n.bytes);
  count_access(run, s.access, dst, to, n.bytes);
  count_access(run, s.access2, src, from, n.bytes);
  run.counters.async_bytes += int64_t{n.bytes} * std::popcount(to.lanes);
  if (to.lanes == 0) return;
  if (const StatementPlaces* places = statement_places(run, s.stmt); places != nullptr && places->copy) {
    std::array<int64_t, kMaxLanes> from_index{}, to_index{};
    for (size_t l = 0; l < run.width(); ++l) {
      from_index[l] = w.values.operand(s.y)[static_cast<int>(l)].i;
      to_index[l] = w.values.operand(s.x)[static_cast<int>(l)].i;
    }
    check_copy(run, w, s.access, *places, from.lanes & to.lanes, n.src, from_index, n.dst, to_index);
  }
  if (run.free_copies.empty()) {
    run.free_copies.push_back(static_cast<uint32_t>(run.copies.size()));
    run.copies.emplace_back();
  }
  const uint32_t id = run.free_copies.back();
  run.free_copies.pop_back();
  CopyInFlight& c = run.copies[id];
  c.pending = to.lanes;
  c.fetched = from.lanes;
  c.dst_access = s.access;
  c.src_access = s.access2;
  c.bytes = n.bytes;
  c.load = issue_copy(w, s.access2);
  c.group = w.commits;
  c.to = to.at;
  for (size_t l = 0; l < run.width(); ++l) c.from[l] = static_cast<uint64_t>(from.at[l]);
  w.copies.push_back(id);
  if (src.watched && from.lanes != 0) {
    ++run.watched_sources;
    check_history(run, w, s.access2, src, from, n.bytes, false);
  }
  for (int l = 0; l < run.lanes; ++l) {
    if ((to.lanes & bit(l)) == 0) continue;
    if (run.options.check_races) {
      int64_t at = 0;
      const auto by = actor(run, w, l, s.access);
      const Trouble t = run.history.launch(by, to.at[static_cast<size_t>(l)], n.bytes,
                                           id * static_cast<uint32_t>(run.lanes) + l + 1, &at);
      // Another copy on the way to the same bytes is in their record no more: it is named by its access.
      if (t.conflict != Conflict::none) report_shared(run, t, s.access, by.thread, at);
    }
    if (!run.options.async_latest) move(run, c, l);
  }
}

void async_commit(Warp& w) {
  for (int l = 0; l < w.lanes; ++l)
    if (w.mask & bit(l)) ++w.commits[static_cast<size_t>(l)];
}

namespace {

// Those of groups that are older than the newest so many.
void finish(ClusterRun& run, Warp& w, std::optional<int64_t> pending) {
  size_t kept = 0;
  for (uint32_t id : w.copies) {
    CopyInFlight& c = run.copies[id];
    LaneMask lanes = pending ? 0 : c.pending;
    for (int l = 0; pending && l < run.lanes; ++l) {
      const auto at = static_cast<size_t>(l);
      lanes |= LaneMask{int64_t{c.group[at]} + *pending < int64_t{w.commits[at]}} << l;
    }
    lanes &= c.pending & w.mask;
    if (lanes != 0) wait_for_copy(run, w, c.load);
    if (lanes != 0) land(run, w, c, id, lanes);
    if (c.pending != 0)
      w.copies[kept++] = id;
    else
      run.free_copies.push_back(id);
  }
  w.copies.resize(kept);
}

}  // namespace

void async_wait(ClusterRun& run, Warp& w, const Step& s) {
  finish(run, w, run.node<thread::AsyncWait>(s).pending);
}

void land_copies(ClusterRun& run, Warp& w) { finish(run, w, std::nullopt); }

}  // namespace tilegen::sim
