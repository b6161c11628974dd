// What is found while the blocks of a cluster run, with the numbers of the warp that it is found of.
#pragma once

#include "sim/cluster_run.h"

namespace tilegen::sim {

// Threads of the event are numbered through the cluster's blocks.
void report(ClusterRun& run, Event e);
void step_finding(ClusterRun& run, FindingKind kind, uint32_t stmt, int thread, std::string detail);
void access_finding(ClusterRun& run, FindingKind kind, uint32_t access, int thread, int64_t element,
                    std::string detail, uint32_t other = kNothing, int64_t other_thread = -1);
// What was held back of a store that these lanes make.
void settle_reads(ClusterRun& run, LaneMask lanes);
// Trouble that the history of shared memory tells of byte `at`.
void report_shared(ClusterRun& run, const Trouble& t, uint32_t access, int thread, int64_t at);

// Warp-wide statements need all lanes. False, and a finding, where some are missing.
bool converged(ClusterRun& run, Warp& w, const Step& s, FindingKind kind);
// The value of the first lane that runs. A finding where another lane has another.
int64_t same_for_lanes(ClusterRun& run, Warp& w, const Step& s, Ref r, const char* what);

}  // namespace tilegen::sim
