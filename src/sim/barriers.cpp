// Barriers of a block: meeting, and the ways in which warps fail to meet.
#include "sim/block_executor.h"

namespace tilegen::sim {

// Warp-wide statements need all lanes.
bool BlockExecutor::converged(Warp& w, const Step& s, FindingKind kind) {
  if (w.mask == w.all) return true;
  Event e;
  e.kind = kind;
  e.stmt = s.stmt;
  e.block = block_;
  e.thread = first_thread(w, w.mask);
  e.detail = "only " + std::to_string(__builtin_popcount(w.mask)) + " of " +
             std::to_string(__builtin_popcount(w.all)) + " lanes of the warp reach it";
  findings_.report(std::move(e));
  return false;
}

void BlockExecutor::barrier(Warp& w, const Step& s) {
  const auto& node = this->node<thread::Barrier>(s);
  converged(w, s, FindingKind::divergent_barrier);
  ++counters_.barriers;
  BarrierState& b = barriers_[static_cast<size_t>(node.id) % barriers_.size()];
  const int64_t whole = static_cast<int64_t>(warps_.size()) * kLanes;
  const int64_t expected = node.threads == 0 ? whole : node.threads;
  const auto wrong_count = [&](std::string detail) {
    Event e;
    e.kind = FindingKind::barrier_count;
    e.stmt = s.stmt;
    e.other_stmt = b.first_stmt;
    e.block = block_;
    e.thread = first_thread(w, w.mask);
    e.detail = std::move(detail);
    findings_.report(std::move(e));
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
  b.arrived += kLanes;
  order_.release(w.index, b.clock);
  if (!node.arrive_only) {
    w.state = State::waiting;
    w.barrier = node.id;
    b.waiting.push_back(w.index);
  }
  if (b.arrived >= b.expected) complete(b);
}

void BlockExecutor::complete(BarrierState& b) {
  for (int index : b.waiting) {
    warps_[static_cast<size_t>(index)].state = State::ready;
    order_.acquire(index, b.clock);
  }
  b = {};
}

// No warp can run, some wait: they were left alone, or wait for each other.
void BlockExecutor::report_stuck() {
  Event e;
  e.block = block_;
  int barrier = -1;
  bool several = false;
  int exited = 0;
  for (const Warp& w : warps_) {
    if (w.state == State::done) ++exited;
    if (w.state != State::waiting) continue;
    const BarrierState& b = barriers_[static_cast<size_t>(w.barrier)];
    several |= barrier >= 0 && barrier != w.barrier;
    if (barrier < 0) {
      barrier = w.barrier;
      e.stmt = code_.steps[w.pc - 1].stmt;
      e.thread = first_thread(w, w.mask);
    } else if (code_.steps[w.pc - 1].stmt != e.stmt && e.other_stmt == kNothing) {
      e.other_stmt = code_.steps[w.pc - 1].stmt;
    }
    e.detail += (e.detail.empty() ? "warp " : ", warp ") + std::to_string(w.index) + " waits at barrier " +
                std::to_string(w.barrier) + " (" + std::to_string(b.arrived) + " of " +
                std::to_string(b.expected) + " threads there)";
  }
  if (exited > 0)
    e.detail += ", " + std::to_string(exited) + (exited == 1 ? " warp has exited" : " warps have exited");
  e.kind = several ? FindingKind::deadlock : FindingKind::barrier_abandoned;
  findings_.report(std::move(e));
  abandoned_ = true;
}

}  // namespace tilegen::sim
