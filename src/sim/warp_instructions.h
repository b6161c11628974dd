// Instructions that all lanes of a warp execute together, and the fetch of a tile.
#pragma once

#include "sim/cluster_run.h"

namespace tilegen::sim {

void shuffle(ClusterRun& run, Warp& w, const Step& s);
void vote(ClusterRun& run, Warp& w, const Step& s);
void fetch_tile(ClusterRun& run, Warp& w, const Step& s);
void cluster_load(ClusterRun& run, Warp& w, const Step& s);
void lane_reduce(ClusterRun& run, Warp& w, const Step& s);
void matrices(ClusterRun& run, Warp& w, const Step& s, bool load);
void mma(ClusterRun& run, Warp& w, const Step& s);

}  // namespace tilegen::sim
