// Transaction barriers: arrivals, announced bytes and phases, and warps that wait for them.
#include <string>

#include "sim/block_executor.h"

namespace tilegen::sim {

namespace {

uint32_t bit(int lane) { return uint32_t{1} << lane; }

}  // namespace

std::string BlockExecutor::transaction_text(int barriers, int64_t index) const {
  const thread::TransactionBarriers& b = program_.barriers[static_cast<size_t>(barriers)];
  const TransactionState& t = transactions_[static_cast<size_t>(barriers)][static_cast<size_t>(index)];
  std::string text = b.name + "[" + std::to_string(index % b.count) + "]" +
                     (program_.cluster > 1 ? " of block " + std::to_string(block_ + index / b.count) : "") +
                     " (in phase " + std::to_string(t.phase) + ", " +
                     std::to_string(t.arrived) + " of " + std::to_string(b.arrivals) + " arrivals there";
  if (t.to_land > 0) text += ", " + std::to_string(t.to_land) + " announced bytes that no copy brings";
  if (t.to_land < 0) text += ", " + std::to_string(-t.to_land) + " bytes more than announced";
  return text + ")";
}

std::optional<int64_t> BlockExecutor::transaction(Warp& w, const Step& s, int barriers, int64_t block,
                                                  int64_t index) {
  const int64_t count = program_.barriers[static_cast<size_t>(barriers)].count;
  if (block < 0 || block >= program_.cluster) {
    step_finding(FindingKind::out_of_bounds, s.stmt, first_thread(w, w.mask),
                 "there is no block " + std::to_string(block) + " of the cluster");
    return std::nullopt;
  }
  if (index >= 0 && index < count) return block * count + index;
  step_finding(FindingKind::out_of_bounds, s.stmt, first_thread(w, w.mask),
               "there is no " + program_.barriers[static_cast<size_t>(barriers)].name + "[" +
                   std::to_string(index) + "]");
  return std::nullopt;
}

void BlockExecutor::transaction_arrive(Warp& w, const Step& s) {
  const auto& n = node<thread::TransactionArrive>(s);
  const int64_t wanted = program_.barriers[static_cast<size_t>(n.barriers)].arrivals;
  const Operand index = w.values.operand(s.x);
  // One release for all barriers that the lanes arrive at.
  Ordering::Clock clock;
  const uint32_t epoch = order_.epoch(w.index);
  release(w, clock);
  for (int l = 0; l < kLanes; ++l) {
    if ((w.mask & bit(l)) == 0) continue;
    const int64_t block = n.block.valid() ? w.values.operand(s.y)[l].i : w.rank;
    const auto at = transaction(w, s, n.barriers, block, index[l].i);
    if (!at) continue;
    if (block != w.rank) reached_[{w.index, static_cast<int>(block)}] = {epoch, s.stmt, thread_of(w, l)};
    TransactionState& t = transaction_at(n.barriers, *at);
    if (t.arrived == wanted)
      step_finding(FindingKind::transaction_arrivals, s.stmt, thread_of(w, l),
                   transaction_text(n.barriers, *at) + " has all its arrivals");
    else
      ++t.arrived;
    t.to_land += n.bytes;
    t.unclaimed += n.bytes;
    Ordering::join(t.current, clock);
    advance(n.barriers, *at);
  }
}

// Completes the phase when nothing is missing.
void BlockExecutor::advance(int barriers, int64_t index) {
  TransactionState& t = transaction_at(barriers, index);
  if (t.arrived < program_.barriers[static_cast<size_t>(barriers)].arrivals || t.to_land != 0) return;
  const int party = engines_.load(barriers, index);
  ++t.phase;
  t.arrived = t.unclaimed = 0;
  Ordering::join(t.completed, t.current);
  t.current.clear();
  t.completed.seen.resize(static_cast<size_t>(order_.parties()), 0);
  t.completed.seen[static_cast<size_t>(party)] = order_.epoch(party);
  order_.advance(party);
  for (Warp& w : warps_)
    if (w.state == State::waiting && w.awaited == Awaited::transaction && w.barrier == barriers &&
        w.place == index && t.passes(w.parity)) {
      w.state = State::ready;
      pass(w, t, party);
    }
}

void BlockExecutor::pass(Warp& w, TransactionState& t, int party) {
  order_.acquire(w.index, w.mask, w.mask == w.all, t.completed);
  t.waited = order_.epoch(party) - 1;
}

void BlockExecutor::transaction_test(Warp& w, const Step& s) {
  const auto& n = node<thread::TransactionTest>(s);
  const int64_t index = same_for_lanes(w, s, s.x, "the barrier"),
                parity = same_for_lanes(w, s, s.y, "the parity");
  const auto at = transaction(w, s, n.barriers, w.rank, index);
  if (!at) return;
  TransactionState& t = transaction_at(n.barriers, *at);
  Cell answer{};
  answer.i = t.passes(parity) ? 1 : 0;
  if (answer.i != 0) pass(w, t, engines_.load(n.barriers, *at));
  write_lanes(w, s.access, w.mask, w.values.operand(s.z), {&answer, 0}, true);
}

void BlockExecutor::transaction_wait(Warp& w, const Step& s) {
  const auto& n = node<thread::TransactionWait>(s);
  if (s.z && same_for_lanes(w, s, s.z, "the answer") != 0) return;
  ++counters_.barriers;
  const int64_t index = same_for_lanes(w, s, s.x, "the barrier"),
                parity = same_for_lanes(w, s, s.y, "the parity");
  const auto at = transaction(w, s, n.barriers, w.rank, index);
  if (!at) return;
  TransactionState& t = transaction_at(n.barriers, *at);
  if (t.passes(parity)) return pass(w, t, engines_.load(n.barriers, *at));
  w.state = State::waiting;
  w.awaited = Awaited::transaction;
  w.barrier = n.barriers;
  w.place = *at;
  w.parity = parity;
}

// A block is over, its shared memory gone, when all its threads are. One of them at least must know of what
// others arrive at.
void BlockExecutor::check_reached() {
  for (const auto& [who, reach] : reached_) {
    const auto [party, block] = who;
    bool known = false;
    for (const Warp& w : warps_)
      known = known || (w.rank == block && w.all != 0 && order_.seen(w.index, w.all)[party] >= reach.epoch);
    if (!known)
      step_finding(FindingKind::cluster_left, reach.stmt, reach.thread,
                   "nothing keeps block " + std::to_string(block_ + block) + " from being over then");
  }
}

// What the copy engine may still do to the shared memory of a block that is over.
void BlockExecutor::check_unfinished() {
  for (size_t b = 0; b < transactions_.size(); ++b)
    for (size_t i = 0; i < transactions_[b].size(); ++i) {
      const TransactionState& t = transactions_[b][i];
      if (t.loaded > t.waited)
        access_finding(
            FindingKind::tensor_copy_unfinished, t.load_access,
            asked_by_[static_cast<size_t>(engines_.load(static_cast<int>(b), static_cast<int64_t>(i)))], 0,
            "nobody waits for the phase of " +
                transaction_text(static_cast<int>(b), static_cast<int64_t>(i)) + " that it belongs to");
    }
  for (const Warp& w : warps_)
    for (const TensorCopy& c : w.stores)
      if (!c.read)
        access_finding(FindingKind::tensor_copy_unfinished, c.step->access, thread_of(w, c.lane), 0,
                       c.group == w.bulk_commits[static_cast<size_t>(c.lane)] ? "no commit closes its group"
                                                                              : "no wait covers its group");
}

}  // namespace tilegen::sim
