// Runs blocks one after another on one thread of the host: which warp goes on, and for how long. The blocks
// of a cluster run together; findings name them as their blocks do.
#pragma once

#include <random>

#include "sim/cluster_run.h"

namespace tilegen::sim {

class BlockExecutor {
 public:
  explicit BlockExecutor(const Launch& launch);
  void run(int64_t cluster);

  const FindingSink& findings() const { return run_.findings; }
  // Something was found and nobody wants to know more.
  bool ended() const { return run_.options.first_finding_ends && !run_.findings.empty(); }
  // The caller gave up.
  bool stopped() { return stop_(); }
  const std::vector<AccessSum>& accesses() const { return run_.sums; }
  const Counters& counters() const { return run_.counters; }

 private:
  void begin_block(int64_t block);
  void begin_warp(Warp& w);
  void end_block();
  Warp* next_warp();
  void run_warp(Warp& w, int64_t quantum);

  ClusterRun run_;
  std::mt19937_64 random_;
  int turn_ = 0;
  StopCheck stop_;
};

}  // namespace tilegen::sim
