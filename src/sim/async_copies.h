// cp.async: copies in flight, their groups, and who touches their bytes meanwhile.
#pragma once

#include "sim/cluster_run.h"

namespace tilegen::sim {

void async_copy(ClusterRun& run, Warp& w, const Step& s);
void async_commit(Warp& w);
// Those of the warp's running lanes are done.
void land_copies(ClusterRun& run, Warp& w);
void async_wait(ClusterRun& run, Warp& w, const Step& s);
// An access to global memory, for the history of it and for the copies that read it.
void global_access(ClusterRun& run, const Warp& w, uint32_t access, int lane, uint64_t address, int64_t bytes,
                   bool write);
void global_access(ClusterRun& run, const SharedHistory::Actor& by, uint64_t address, int64_t bytes,
                   bool write);

}  // namespace tilegen::sim
