// Barriers of a block, and of a cluster: meeting, and the ways in which warps fail to meet.
#include <bit>

#include "sim/block_executor.h"

namespace tilegen::sim {

// Warp-wide statements need all lanes.
bool BlockExecutor::converged(Warp& w, const Step& s, FindingKind kind) {
  if (w.mask == w.all) return true;
  step_finding(kind, s.stmt, first_thread(w, w.mask),
               "only " + std::to_string(__builtin_popcount(w.mask)) + " of " +
                   std::to_string(__builtin_popcount(w.all)) + " lanes of the warp reach it");
  return false;
}

void BlockExecutor::step_finding(FindingKind kind, uint32_t stmt, int thread, std::string detail) {
  Event e;
  e.kind = kind;
  e.stmt = stmt;
  e.block = block_;
  e.thread = thread;
  e.detail = std::move(detail);
  report(std::move(e));
}

// Threads are numbered through a cluster's blocks here; to the reader each block has its own.
void BlockExecutor::report(Event e) {
  if (program_.cluster > 1) {
    const int64_t threads = block_threads();
    e.block = block_ + e.thread / threads;
    if (e.other_block == block_) e.other_block += e.other_thread / threads;
    e.thread %= threads;
    if (e.other_thread >= 0) e.other_thread %= threads;
  }
  findings_.report(std::move(e));
}

// The value of the first lane that runs.
int64_t BlockExecutor::same_for_lanes(Warp& w, const Step& s, Ref r, const char* what) {
  const Operand value = w.values.operand(r);
  const int first = __builtin_ctz(w.mask);
  for (int l = first; r.stride() != 0 && l < kLanes; ++l)
    if ((w.mask >> l & 1) != 0 && value[l].i != value[first].i) {
      step_finding(FindingKind::divergent_operand, s.stmt, thread_of(w, l),
                   std::string(what) + " differs from that of lane " + std::to_string(first));
      break;
    }
  return value[first].i;
}

void BlockExecutor::barrier(Warp& w, const Step& s) {
  const auto& node = this->node<thread::Barrier>(s);
  converged(w, s, FindingKind::divergent_barrier);
  ++counters_.barriers;
  const size_t of_block = barriers_.size() / static_cast<size_t>(program_.cluster);
  const size_t number = static_cast<size_t>(w.rank) * of_block + static_cast<size_t>(node.id) % of_block;
  BarrierState& b = barriers_[number];
  const int64_t whole = (program_.threads + kLanes - 1) / kLanes * kLanes;
  const int64_t expected = node.threads == 0 ? whole : node.threads;
  const auto wrong_count = [&](std::string detail) {
    Event e;
    e.kind = FindingKind::barrier_count;
    e.stmt = s.stmt;
    e.other_stmt = b.first_stmt;
    e.block = block_;
    e.thread = first_thread(w, w.mask);
    e.detail = std::move(detail);
    report(std::move(e));
  };
  if (b.arrived == 0) {
    b.expected = expected;
    b.first_stmt = s.stmt;
    if (expected % kLanes != 0) {
      b.first_stmt = kNothing;
      wrong_count(std::to_string(expected) + " threads are no whole number of warps");
    }
  } else if (b.expected != expected) {
    wrong_count("it is for " + std::to_string(expected) + " threads, but warps that are there came for " +
                std::to_string(b.expected));
  }
  if ((b.here >> w.local & 1) != 0)
    step_finding(FindingKind::barrier_unclaimed, s.stmt, first_thread(w, w.mask),
                 "warp " + std::to_string(w.local) + " has arrived already, " + std::to_string(b.arrived) +
                     " of " + std::to_string(b.expected) + " threads are there");
  b.here |= uint32_t{1} << w.local;
  b.last_stmt = s.stmt;
  b.arrived += kLanes;
  release(w, b.clock);
  if (!node.arrive_only) {
    w.state = State::waiting;
    w.awaited = Awaited::barrier;
    w.barrier = static_cast<int>(number);
    b.waiting.push_back(w.index);
  }
  if (b.arrived >= b.expected) complete(b);
}

void BlockExecutor::cluster_barrier(Warp& w, const Step& s) {
  converged(w, s, FindingKind::divergent_barrier);
  ++counters_.barriers;
  BarrierState& b = cluster_barrier_;
  b.expected = (program_.threads + kLanes - 1) / kLanes * kLanes * program_.cluster;
  b.arrived += kLanes;
  release(w, b.clock);
  w.state = State::waiting;
  w.awaited = Awaited::cluster;
  b.waiting.push_back(w.index);
  if (b.arrived >= b.expected) complete(b);
}

// The block is over, and none of its warps waits.
void BlockExecutor::check_unclaimed() {
  const size_t of_block = barriers_.size() / static_cast<size_t>(program_.cluster);
  for (size_t number = 0; number < barriers_.size(); ++number) {
    const BarrierState& b = barriers_[number];
    if (b.arrived == 0) continue;
    const Warp& first = warps_[number / of_block * (warps_.size() / static_cast<size_t>(program_.cluster)) +
                               static_cast<size_t>(std::countr_zero(b.here))];
    step_finding(FindingKind::barrier_unclaimed, b.last_stmt, first_thread(first, first.all),
                 "the block ends with " + std::to_string(b.arrived) + " of " + std::to_string(b.expected) +
                     " threads at barrier " + std::to_string(number % of_block));
  }
}

void BlockExecutor::complete(BarrierState& b) {
  for (int index : b.waiting) {
    warps_[static_cast<size_t>(index)].state = State::ready;
    order_.acquire(index, 0, true, b.clock);
  }
  b = {};
}

std::string BlockExecutor::waiting_text(const Warp& w) const {
  if (w.awaited == Awaited::transaction)
    return " for phase parity " + std::to_string(w.parity) + " of " + transaction_text(w.barrier, w.place);
  if (w.awaited == Awaited::warpgroup)
    return " at a product of its warpgroup (" +
           std::to_string(__builtin_popcount(groups_[static_cast<size_t>(w.index / kGroupWarps)].here)) +
           " of 4 warps there)";
  const bool of_cluster = w.awaited == Awaited::cluster;
  const BarrierState& b = of_cluster ? cluster_barrier_ : barriers_[static_cast<size_t>(w.barrier)];
  const size_t of_block = barriers_.size() / static_cast<size_t>(program_.cluster);
  return (of_cluster ? std::string(" at the cluster's barrier")
                     : " at barrier " + std::to_string(static_cast<size_t>(w.barrier) % of_block)) +
         " (" + std::to_string(b.arrived) + " of " + std::to_string(b.expected) + " threads there)";
}

// No warp can run, some wait: they were left alone, or wait for each other.
void BlockExecutor::report_stuck() {
  Event e;
  e.block = block_;
  const Warp* first = nullptr;
  bool several = false;
  int exited = 0;
  for (size_t i = 0; i < warps_.size(); ++i) {
    const Warp& w = warps_[i];
    if (w.state == State::done && w.all != 0) ++exited;
    if (w.state != State::waiting) continue;
    several |= w.awaited != Awaited::barrier || (first != nullptr && first->barrier != w.barrier);
    const uint32_t stmt = code_.steps[w.pc - 1].stmt;
    if (first == nullptr) {
      first = &w;
      e.stmt = stmt;
      e.thread = first_thread(w, w.mask);
    } else if (stmt != e.stmt && e.other_stmt == kNothing) {
      e.other_stmt = stmt;
    }
    const std::string text = waiting_text(w);
    size_t last = i;
    while (w.awaited != Awaited::barrier && last + 1 < warps_.size() && warps_[last + 1].rank == w.rank &&
           warps_[last + 1].state == State::waiting &&
           waiting_text(warps_[last + 1]) == text)
      ++last;
    e.detail += (e.detail.empty() ? "" : ", ") + std::string(last > i ? "warps " : "warp ") +
                std::to_string(w.local) + (last > i ? " to " + std::to_string(warps_[last].local) : "") +
                (program_.cluster > 1 ? " of block " + std::to_string(block_ + w.rank) : "") +
                (last > i ? " wait" : " waits") + text;
    i = last;
  }
  if (exited > 0)
    e.detail += ", " + std::to_string(exited) + (exited == 1 ? " warp has exited" : " warps have exited");
  e.kind = several ? FindingKind::deadlock : FindingKind::barrier_abandoned;
  report(std::move(e));
  abandoned_ = true;
}

}  // namespace tilegen::sim
