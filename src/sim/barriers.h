// Barriers of a block, and of a cluster: meeting, and the ways in which warps fail to meet.
#pragma once

#include "sim/cluster_run.h"

namespace tilegen::sim {

void barrier(ClusterRun& run, Warp& w, const Step& s);
void cluster_barrier(ClusterRun& run, Warp& w, const Step& s);
// Lanes that run now know of what each of them did (bar.warp.sync).
void meet_in_warp(ClusterRun& run, Warp& w);
// What the warp did becomes known to who acquires `clock`. Some lanes alone release it when no other lane did
// anything.
void release(ClusterRun& run, Warp& w, Ordering::Clock& clock);

// The block is over, and none of its warps waits.
void check_unclaimed(ClusterRun& run);
// No warp can run, some wait: they were left alone, or wait for each other.
void report_stuck(ClusterRun& run);

}  // namespace tilegen::sim
