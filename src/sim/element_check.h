// Elements that are taken for others of their tile (SimOptions::places).
#pragma once

#include "sim/cluster_run.h"
#include "sim/element_places.h"

namespace tilegen::sim {

// What is known of the statement; null: nothing.
const StatementPlaces* statement_places(const ClusterRun& run, uint32_t stmt);
// The element of a tile at `index` of a memory, as the thread sees it; -1: none is known.
int64_t tile_element(const ClusterRun& run, thread::MemoryId id, int thread, int64_t index);
// Which element of which tile a lane holds in a register; 0: unknown.
uint64_t origin_of(const ClusterRun& run, const Warp& w, thread::MemoryId id, int lane, int64_t index);
void set_origins(ClusterRun& run, Warp& w, LaneMask lanes, thread::MemoryId id, int64_t index,
                 const Origins& origins);

// One warp's part of a copy: the distance between where elements come from and where they go is the same for
// all.
void check_copy(ClusterRun& run, Warp& w, uint32_t access, const StatementPlaces& s, LaneMask lanes,
                thread::MemoryId from, const std::array<int64_t, kMaxLanes>& from_index, thread::MemoryId to,
                const std::array<int64_t, kMaxLanes>& to_index);
// A store whose value is an element as it lies in a memory: judged when it is part of a copy; which elements
// of a tile registers hold now is noted for products.
void note_move(ClusterRun& run, Warp& w, const Step& s, LaneMask lanes, Operand index, Origins& origins);
void check_product(ClusterRun& run, Warp& w, const Step& s);
// A product of plain numbers: one element of each tile.
void check_multiply_add(ClusterRun& run, Warp& w, const Step& s, LaneMask lanes, Operand index);
// An operand whose elements the hardware finds for itself: next to each other in its tile, along rows and
// along k.
void check_order(ClusterRun& run, uint32_t access, int thread, const std::vector<uint64_t>& elements,
                 size_t rows, size_t columns);

}  // namespace tilegen::sim
