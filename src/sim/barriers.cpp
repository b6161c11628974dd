// Barriers of a block, and of a cluster: meeting, and the ways in which warps fail to meet.
#include "sim/barriers.h"

#include <bit>

#include "sim/cluster_run.h"
#include "sim/run_findings.h"
#include "sim/transaction_barriers.h"

namespace tilegen::sim {

namespace {

void complete(ClusterRun& run, BarrierState& b) {
  for (int index : b.waiting) {
    run.warps[static_cast<size_t>(index)].state = WarpState::ready;
    run.order.acquire(index, 0, true, b.clock);
  }
  b = {};
}

std::string waiting_text(const ClusterRun& run, const Warp& w) {
  if (w.awaited == Awaited::transaction)
    return " for phase parity " + std::to_string(w.parity) + " of " +
           transaction_text(run, w.barrier, w.place);
  if (w.awaited == Awaited::warpgroup)
    return " at a product of its warpgroup (" +
           std::to_string(__builtin_popcount(run.groups[static_cast<size_t>(w.index / kGroupWarps)].here)) +
           " of 4 warps there)";
  const bool of_cluster = w.awaited == Awaited::cluster;
  const BarrierState& b = of_cluster ? run.cluster_barrier : run.barriers[static_cast<size_t>(w.barrier)];
  const size_t of_block = run.barriers.size() / static_cast<size_t>(run.program.cluster);
  return (of_cluster ? std::string(" at the cluster's barrier")
                     : " at barrier " + std::to_string(static_cast<size_t>(w.barrier) % of_block)) +
         " (" + std::to_string(b.arrived) + " of " + std::to_string(b.expected) + " threads there)";
}

}  // namespace

// Some lanes alone release what the warp did when no other lane did anything.
void release(ClusterRun& run, Warp& w, Ordering::Clock& clock) {
  const bool whole = w.mask == w.all, own = (w.touched & ~w.mask) == 0;
  run.order.release(w.index, w.mask, whole, own, clock);
  if (own) w.touched = 0;
}

void meet_in_warp(ClusterRun& run, Warp& w) {
  Ordering::Clock clock;
  release(run, w, clock);
  run.order.acquire(w.index, w.mask, w.mask == w.all, clock);
}

void barrier(ClusterRun& run, Warp& w, const Step& s) {
  const auto& node = run.node<thread::Barrier>(s);
  converged(run, w, s, FindingKind::divergent_barrier);
  ++run.counters.barriers;
  const size_t of_block = run.barriers.size() / static_cast<size_t>(run.program.cluster);
  const size_t number = static_cast<size_t>(w.rank) * of_block + static_cast<size_t>(node.id) % of_block;
  BarrierState& b = run.barriers[number];
  const int64_t whole = (run.program.threads + run.lanes - 1) / run.lanes * run.lanes;
  const int64_t expected = node.threads == 0 ? whole : node.threads;
  const auto wrong_count = [&](std::string detail) {
    Event e;
    e.kind = FindingKind::barrier_count;
    e.stmt = s.stmt;
    e.other_stmt = b.first_stmt;
    e.block = run.block;
    e.thread = first_thread(w, w.mask);
    e.detail = std::move(detail);
    report(run, std::move(e));
  };
  if (b.arrived == 0) {
    b.expected = expected;
    b.first_stmt = s.stmt;
    if (expected % run.lanes != 0) {
      b.first_stmt = kNothing;
      wrong_count(std::to_string(expected) + " threads are no whole number of warps");
    }
  } else if (b.expected != expected) {
    wrong_count("it is for " + std::to_string(expected) + " threads, but warps that are there came for " +
                std::to_string(b.expected));
  }
  if ((b.here >> w.local & 1) != 0)
    step_finding(run, FindingKind::barrier_unclaimed, s.stmt, first_thread(w, w.mask),
                 "warp " + std::to_string(w.local) + " has arrived already, " + std::to_string(b.arrived) +
                     " of " + std::to_string(b.expected) + " threads are there");
  b.here |= uint32_t{1} << w.local;
  b.last_stmt = s.stmt;
  b.arrived += run.lanes;
  release(run, w, b.clock);
  if (!node.arrive_only) {
    w.state = WarpState::waiting;
    w.awaited = Awaited::barrier;
    w.barrier = static_cast<int>(number);
    b.waiting.push_back(w.index);
  }
  if (b.arrived >= b.expected) complete(run, b);
}

void cluster_barrier(ClusterRun& run, Warp& w, const Step& s) {
  converged(run, w, s, FindingKind::divergent_barrier);
  ++run.counters.barriers;
  BarrierState& b = run.cluster_barrier;
  b.expected = (run.program.threads + run.lanes - 1) / run.lanes * run.lanes * run.program.cluster;
  b.arrived += run.lanes;
  release(run, w, b.clock);
  w.state = WarpState::waiting;
  w.awaited = Awaited::cluster;
  b.waiting.push_back(w.index);
  if (b.arrived >= b.expected) complete(run, b);
}

void check_unclaimed(ClusterRun& run) {
  const size_t of_block = run.barriers.size() / static_cast<size_t>(run.program.cluster);
  for (size_t number = 0; number < run.barriers.size(); ++number) {
    const BarrierState& b = run.barriers[number];
    if (b.arrived == 0) continue;
    const Warp& first =
        run.warps[number / of_block * (run.warps.size() / static_cast<size_t>(run.program.cluster)) +
                  static_cast<size_t>(std::countr_zero(b.here))];
    step_finding(run, FindingKind::barrier_unclaimed, b.last_stmt, first_thread(first, first.all),
                 "the block ends with " + std::to_string(b.arrived) + " of " + std::to_string(b.expected) +
                     " threads at barrier " + std::to_string(number % of_block));
  }
}

void report_stuck(ClusterRun& run) {
  Event e;
  e.block = run.block;
  const Warp* first = nullptr;
  bool several = false;
  int exited = 0;
  for (size_t i = 0; i < run.warps.size(); ++i) {
    const Warp& w = run.warps[i];
    if (w.state == WarpState::done && w.all != 0) ++exited;
    if (w.state != WarpState::waiting) continue;
    several |= w.awaited != Awaited::barrier || (first != nullptr && first->barrier != w.barrier);
    const uint32_t stmt = run.code.steps[w.pc - 1].stmt;
    if (first == nullptr) {
      first = &w;
      e.stmt = stmt;
      e.thread = first_thread(w, w.mask);
    } else if (stmt != e.stmt && e.other_stmt == kNothing) {
      e.other_stmt = stmt;
    }
    const std::string text = waiting_text(run, w);
    size_t last = i;
    while (w.awaited != Awaited::barrier && last + 1 < run.warps.size() &&
           run.warps[last + 1].rank == w.rank && run.warps[last + 1].state == WarpState::waiting &&
           waiting_text(run, run.warps[last + 1]) == text)
      ++last;
    e.detail += (e.detail.empty() ? "" : ", ") + std::string(last > i ? "warps " : "warp ") +
                std::to_string(w.local) + (last > i ? " to " + std::to_string(run.warps[last].local) : "") +
                (run.program.cluster > 1 ? " of block " + std::to_string(run.block + w.rank) : "") +
                (last > i ? " wait" : " waits") + text;
    i = last;
  }
  if (exited > 0)
    e.detail += ", " + std::to_string(exited) + (exited == 1 ? " warp has exited" : " warps have exited");
  e.kind = several ? FindingKind::deadlock : FindingKind::barrier_abandoned;
  report(run, std::move(e));
  run.abandoned = true;
}

}  // namespace tilegen::sim
