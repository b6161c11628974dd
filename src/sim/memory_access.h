// Loads and stores of a warp, with the checks on each.
#pragma once

#include "sim/cluster_run.h"

namespace tilegen::sim {

// Addresses of an access: arena bytes or absolute addresses, of the lanes in `lanes`.
struct Addresses {
  LaneMask lanes = 0;
  std::array<int64_t, kMaxLanes> at;
};

// Expressions of a step; what they load is checked.
void run_segment(ClusterRun& run, Warp& w, uint32_t segment);
void store(ClusterRun& run, Warp& w, const Step& s);
void wide_store(ClusterRun& run, Warp& w, const Step& s);
// An atomic operation on an element of global memory. Blocks run side by side: one at a time.
// Gives the old value.
Cell combine_one(ir::DType type, ir::AtomicKind kind, Cell value, std::byte* at, Cell expected = {});
void write_lanes(ClusterRun& run, Warp& w, uint32_t access, LaneMask lanes, Operand index, Operand value,
                 bool check);

// Parts of an access to global or shared memory.
// Addresses of the lanes that stay within bounds; the others are reported.
Addresses locate(ClusterRun& run, Warp& w, uint32_t access, LaneMask lanes, Operand index, bool check);
void check_alignment(ClusterRun& run, Warp& w, uint32_t access, const Addresses& a, int64_t bytes);
void count_access(ClusterRun& run, uint32_t access, const MemoryView& m, const Addresses& a, int64_t bytes);
void check_history(ClusterRun& run, Warp& w, uint32_t access, const MemoryView& m, const Addresses& a,
                   int64_t bytes, bool whole_warp);
SharedHistory::Actor actor(const ClusterRun& run, const Warp& w, int lane, uint32_t access);

// Registers, by index in their memory.
bool register_range(ClusterRun& run, Warp& w, uint32_t access, const MemoryView& m, int64_t index,
                    int64_t count);
const Cell* read_register(ClusterRun& run, Warp& w, uint32_t access, LaneMask lanes, const MemoryView& m,
                          int64_t index);
Cell* write_register(ClusterRun& run, Warp& w, uint32_t access, LaneMask lanes, const MemoryView& m,
                     int64_t index);

}  // namespace tilegen::sim
