// Transaction barriers: arrivals, announced bytes and phases, and warps that wait for them.
#include "sim/transaction_barriers.h"

#include <string>

#include "sim/async_copies.h"
#include "sim/barriers.h"
#include "sim/cluster_run.h"
#include "sim/memory_access.h"
#include "sim/run_findings.h"

namespace tilegen::sim {

namespace {

LaneMask bit(int lane) { return LaneMask{1} << lane; }

void pass(ClusterRun& run, Warp& w, TransactionState& t, int party) {
  run.order.acquire(w.index, w.mask, w.mask == w.all, t.completed);
  t.waited = run.order.epoch(party) - 1;
}

}  // namespace

std::string transaction_text(const ClusterRun& run, int barriers, int64_t index) {
  const thread::TransactionBarriers& b = run.program.barriers[static_cast<size_t>(barriers)];
  const TransactionState& t = run.transactions[static_cast<size_t>(barriers)][static_cast<size_t>(index)];
  std::string text =
      b.name + "[" + std::to_string(index % b.count) + "]" +
      (run.program.cluster > 1 ? " of block " + std::to_string(run.block + index / b.count) : "") +
      " (in phase " + std::to_string(t.phase) + ", " + std::to_string(t.arrived) + " of " +
      std::to_string(b.arrivals) + " arrivals there";
  if (t.to_land > 0) text += ", " + std::to_string(t.to_land) + " announced bytes that no copy brings";
  if (t.to_land < 0) text += ", " + std::to_string(-t.to_land) + " bytes more than announced";
  return text + ")";
}

std::optional<int64_t> transaction(ClusterRun& run, Warp& w, const Step& s, int barriers, int64_t block,
                                   int64_t index) {
  const int64_t count = run.program.barriers[static_cast<size_t>(barriers)].count;
  if (block < 0 || block >= run.program.cluster) {
    step_finding(run, FindingKind::out_of_bounds, s.stmt, first_thread(w, w.mask),
                 "there is no block " + std::to_string(block) + " of the cluster");
    return std::nullopt;
  }
  if (index >= 0 && index < count) return block * count + index;
  step_finding(run, FindingKind::out_of_bounds, s.stmt, first_thread(w, w.mask),
               "there is no " + run.program.barriers[static_cast<size_t>(barriers)].name + "[" +
                   std::to_string(index) + "]");
  return std::nullopt;
}

void transaction_arrive(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::TransactionArrive>(s);
  const int64_t wanted = run.program.barriers[static_cast<size_t>(n.barriers)].arrivals;
  const Operand index = w.values.operand(s.x);
  if (n.copies) land_copies(run, w);
  // One release for all barriers that the lanes arrive at.
  Ordering::Clock clock;
  const uint32_t epoch = run.order.epoch(w.index);
  release(run, w, clock);
  for (int l = 0; l < run.lanes; ++l) {
    if ((w.mask & bit(l)) == 0) continue;
    const int64_t block = n.block.valid() ? w.values.operand(s.y)[l].i : w.rank;
    const auto at = transaction(run, w, s, n.barriers, block, index[l].i);
    if (!at) continue;
    if (block != w.rank) run.reached[{w.index, static_cast<int>(block)}] = {epoch, s.stmt, thread_of(w, l)};
    TransactionState& t = run.transaction_at(n.barriers, *at);
    if (t.arrived == wanted)
      step_finding(run, FindingKind::transaction_arrivals, s.stmt, thread_of(w, l),
                   transaction_text(run, n.barriers, *at) + " has all its arrivals");
    else
      ++t.arrived;
    t.to_land += n.bytes;
    t.unclaimed += n.bytes;
    Ordering::join(t.current, clock);
    advance(run, n.barriers, *at);
  }
}

void advance(ClusterRun& run, int barriers, int64_t index) {
  TransactionState& t = run.transaction_at(barriers, index);
  if (t.arrived < run.program.barriers[static_cast<size_t>(barriers)].arrivals || t.to_land != 0) return;
  const int party = run.engines.load(barriers, index);
  ++t.phase;
  t.arrived = t.unclaimed = 0;
  Ordering::join(t.completed, t.current);
  t.current.clear();
  t.completed.seen.resize(static_cast<size_t>(run.order.parties()), 0);
  t.completed.seen[static_cast<size_t>(party)] = run.order.epoch(party);
  run.order.advance(party);
  for (Warp& w : run.warps)
    if (w.state == WarpState::waiting && w.awaited == Awaited::transaction && w.barrier == barriers &&
        w.place == index && t.passes(w.parity)) {
      w.state = WarpState::ready;
      pass(run, w, t, party);
    }
}

void transaction_test(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::TransactionTest>(s);
  const int64_t index = same_for_lanes(run, w, s, s.x, "the barrier"),
                parity = same_for_lanes(run, w, s, s.y, "the parity");
  const auto at = transaction(run, w, s, n.barriers, w.rank, index);
  if (!at) return;
  TransactionState& t = run.transaction_at(n.barriers, *at);
  Cell answer{};
  answer.i = t.passes(parity) ? 1 : 0;
  if (answer.i != 0) pass(run, w, t, run.engines.load(n.barriers, *at));
  write_lanes(run, w, s.access, w.mask, w.values.operand(s.z), {&answer, 0}, true);
}

void transaction_wait(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::TransactionWait>(s);
  if (s.z && same_for_lanes(run, w, s, s.z, "the answer") != 0) return;
  ++run.counters.barriers;
  const int64_t index = same_for_lanes(run, w, s, s.x, "the barrier"),
                parity = same_for_lanes(run, w, s, s.y, "the parity");
  const auto at = transaction(run, w, s, n.barriers, w.rank, index);
  if (!at) return;
  TransactionState& t = run.transaction_at(n.barriers, *at);
  if (t.passes(parity)) return pass(run, w, t, run.engines.load(n.barriers, *at));
  w.state = WarpState::waiting;
  w.awaited = Awaited::transaction;
  w.barrier = n.barriers;
  w.place = *at;
  w.parity = parity;
}

// A block is over, its shared memory gone, when all its threads are. One of them at least must know of what
// others arrive at.
void check_reached(ClusterRun& run) {
  for (const auto& [who, reach] : run.reached) {
    const auto [party, block] = who;
    bool known = false;
    for (const Warp& w : run.warps)
      known =
          known || (w.rank == block && w.all != 0 && run.order.seen(w.index, w.all)[party] >= reach.epoch);
    if (!known)
      step_finding(run, FindingKind::cluster_left, reach.stmt, reach.thread,
                   "nothing keeps block " + std::to_string(run.block + block) + " from being over then");
  }
}

// What the copy engine may still do to the shared memory of a block that is over.
void check_unfinished(ClusterRun& run) {
  for (size_t b = 0; b < run.transactions.size(); ++b)
    for (size_t i = 0; i < run.transactions[b].size(); ++i) {
      const TransactionState& t = run.transactions[b][i];
      if (t.loaded > t.waited)
        access_finding(
            run, FindingKind::tensor_copy_unfinished, t.load_access,
            run.asked_by[static_cast<size_t>(run.engines.load(static_cast<int>(b), static_cast<int64_t>(i)))],
            0,
            "nobody waits for the phase of " +
                transaction_text(run, static_cast<int>(b), static_cast<int64_t>(i)) + " that it belongs to");
    }
  for (const Warp& w : run.warps)
    for (const TensorCopy& c : w.stores)
      if (!c.read)
        access_finding(run, FindingKind::tensor_copy_unfinished, c.step->access, thread_of(w, c.lane), 0,
                       c.group == w.bulk_commits[static_cast<size_t>(c.lane)] ? "no commit closes its group"
                                                                              : "no wait covers its group");
}

}  // namespace tilegen::sim
