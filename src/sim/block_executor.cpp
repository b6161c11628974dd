#include "sim/block_executor.h"

#include <algorithm>

#include "sim/barriers.h"
#include "sim/execute_step.h"
#include "sim/memory_access.h"
#include "sim/run_findings.h"
#include "sim/tensor_engine.h"
#include "sim/transaction_barriers.h"

namespace tilegen::sim {

BlockExecutor::BlockExecutor(const Launch& launch) : run_(launch), stop_(launch.options->cancellation) {}

void BlockExecutor::begin_block(int64_t block) {
  run_.block = block;
  run_.abandoned = false;
  turn_ = 0;
  random_.seed(run_.options.seed + 0x9e3779b97f4a7c15ull * static_cast<uint64_t>(block + 1));
  run_.order.begin_block();
  run_.history.begin_block(run_.order);
  for (BarrierState& b : run_.barriers) b = {};
  run_.cluster_barrier = {};
  run_.reached.clear();
  for (auto& array : run_.transactions) std::fill(array.begin(), array.end(), TransactionState{});
  for (Warpgroup& g : run_.groups) g = {};
  run_.loads.clear();
  for (Warp& w : run_.warps) begin_warp(w);
}

void BlockExecutor::begin_warp(Warp& w) {
  int64_t rest = run_.block + w.rank;
  std::array<int64_t, 3> at{};
  for (size_t d = run_.launch.grid.size(); d-- > 0;) {
    at[d] = rest % run_.launch.grid[d];
    rest /= run_.launch.grid[d];
  }
  w.mask = w.all;
  w.pc = 0;
  w.state = w.all != 0 ? WarpState::ready : WarpState::done;
  w.statements = 0;
  w.depth = 0;
  w.commits.fill(0);
  for (ProductPlaces& p : w.products) p = {};
  w.copies.clear();
  w.bulk_commits.fill(0);
  w.stores.clear();
  w.touched = 0;
  w.fences = w.product_commits = 0;
  w.has_products = false;
  w.loads.begin();
  w.matrix_instructions = 0;
  std::fill(w.written.begin(), w.written.end(), 0);
  for (auto* by_register : {&w.in_product, &w.touched_at})
    std::fill(by_register->begin(), by_register->end(), 0);
  if (run_.program.launched_var.valid())
    w.uniform[run_.code.variables[run_.program.launched_var.value]].i = run_.launch.launched;
  for (size_t d = 0; d < run_.launch.grid.size(); ++d)
    w.uniform[run_.code.variables[run_.program.block_vars[d].value]].i = at[d];
  w.uniform[run_.code.first_thread].i = int64_t{w.local} * run_.lanes;
  for (int l = 0; l < run_.lanes; ++l)
    w.kept[size_t{run_.code.thread_value} * run_.width() + static_cast<size_t>(l)].i = thread_in_block(w, l);
  run_segment(run_, w, 0);
}

void BlockExecutor::run(int64_t cluster) {
  begin_block(cluster * run_.program.cluster);
  while (!run_.abandoned) {
    Warp* w = next_warp();
    if (w == nullptr) break;
    int64_t quantum = std::max<int64_t>(1, run_.options.switch_every);
    if (run_.options.order == WarpOrder::random)
      quantum = 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(quantum));
    run_warp(*w, quantum);
    run_.abandoned |= stop_();
  }
  end_block();
}

// The next ready warp in the order asked for; none when all are done or stuck.
Warp* BlockExecutor::next_warp() {
  const int n = static_cast<int>(run_.warps.size());
  int start = turn_;
  if (run_.options.order == WarpOrder::random) start = static_cast<int>(random_() % static_cast<uint64_t>(n));
  for (int i = 0; i < n; ++i) {
    const int position = (start + i) % n;
    Warp& w = run_.warps[static_cast<size_t>(run_.options.order == WarpOrder::reversed ? n - 1 - position
                                                                                       : position)];
    if (w.state != WarpState::ready) continue;
    turn_ = (position + 1) % n;
    return &w;
  }
  // The copy engine is late as can be: it moves when nobody else can.
  if (!run_.loads.empty()) {
    const TensorCopy c = run_.loads.front();
    run_.loads.erase(run_.loads.begin());
    land(run_, c);
    return next_warp();
  }
  bool waiting = false;
  for (const Warp& w : run_.warps) waiting |= w.state == WarpState::waiting;
  if (waiting) report_stuck(run_);
  return nullptr;
}

void BlockExecutor::end_block() {
  if (!run_.abandoned) {
    check_unfinished(run_);
    check_reached(run_);
    check_unclaimed(run_);
    if (run_.launch.tile_order) run_.launch.tile_order->block_ends();
  }
  for (Warp& w : run_.warps) {
    for (TensorCopy& c : w.stores)
      if (!run_.abandoned && !c.moved) move_out(run_, c);
    for (uint32_t id : w.copies) {
      CopyInFlight& c = run_.copies[id];
      for (int l = 0; l < run_.lanes; ++l)
        if (c.pending >> l & 1) run_.history.forget(c.to[l], c.bytes);
      run_.free_copies.push_back(id);
    }
    run_.counters.statements += w.statements;
  }
  run_.watched_sources = 0;
}

void BlockExecutor::run_warp(Warp& w, int64_t quantum) {
  while (quantum-- > 0 && w.state == WarpState::ready) {
    const Step& s = run_.code.steps[w.pc++];
    run_.guarded = s.z && (s.kind == StepKind::store || s.kind == StepKind::wide_store);
    if (s.segment != kNothing && s.kind != StepKind::end) run_segment(run_, w, s.segment);
    execute_step(run_, w, s);
    if (w.loads.fresh) use_loaded(run_, w);
    ++w.statements;
    if (ended()) {
      run_.abandoned = true;
      return;
    }
    if (run_.options.max_statements > 0 && w.statements > run_.options.max_statements) {
      Event e;
      e.kind = FindingKind::too_long;
      e.stmt = s.stmt;
      e.block = run_.block;
      e.thread = first_thread(w, w.mask);
      e.detail = "more than " + std::to_string(run_.options.max_statements) + " statements ran";
      report(run_, std::move(e));
      run_.abandoned = true;
      return;
    }
  }
}

}  // namespace tilegen::sim
