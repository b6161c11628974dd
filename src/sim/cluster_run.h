// State of the blocks of one cluster while they run, shared by the files that carry out statements. Threads,
// barriers and shared memory of all blocks are numbered through.
#pragma once

#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/engines.h"
#include "sim/findings.h"
#include "sim/launch.h"
#include "sim/matrix_places.h"
#include "sim/ordering.h"
#include "sim/shared_history.h"
#include "sim/transaction_barriers.h"
#include "sim/warp.h"
#include "sim/warpgroup_products.h"

namespace tilegen::sim {

// A barrier of a block, or the cluster's.
struct BarrierState {
  int64_t expected = 0, arrived = 0;
  uint32_t here = 0;  // warps of the block that have arrived
  std::vector<int> waiting;
  Ordering::Clock clock;
  uint32_t first_stmt = kNothing, last_stmt = kNothing;
};

// An asynchronous copy of a warp.
struct CopyInFlight {
  LaneMask pending = 0, fetched = 0;  // lanes: not yet waited for; with a true predicate
  uint32_t dst_access = 0, src_access = 0;
  uint32_t load = 0;  // its number among the warp's loads, where they are counted
  int bytes = 0;
  std::array<int64_t, kMaxLanes> to;  // arena bytes
  std::array<uint64_t, kMaxLanes> from;
  std::array<uint32_t, kMaxLanes> group;
};

// The newest arrival of a warp at a barrier of another block.
struct Reach {
  uint32_t epoch = 0, stmt = 0;
  int thread = 0;
};

// Which element of which tile each lane holds; 0: unknown.
using Origins = std::array<uint64_t, kMaxLanes>;

// One element of a wide store, computed before any is written.
struct WideElement {
  LaneMask lanes = 0;
  std::array<Cell, kMaxLanes> index, value;
  Origins origins;
};

struct ClusterRun {
  explicit ClusterRun(const Launch& launch);

  template <class Node>
  const Node& node(const Step& s) const {
    return std::get<Node>(program.stmts[s.stmt].node);
  }
  const MemoryView& memory(thread::MemoryId id) const { return launch.memories[id.value]; }
  std::byte* pointer(const MemoryView& m, int64_t at) {
    return m.space == thread::Space::global ? std::bit_cast<std::byte*>(at) : arena.data() + at;
  }
  size_t width() const { return static_cast<size_t>(lanes); }
  int block_threads() const { return engines.block_warps() * lanes; }
  // Where the arena of a block of the cluster begins.
  int64_t arena_begin(int64_t rank) const { return rank * arena_stride; }
  // A byte of some block's arena, from where that begins.
  int64_t in_arena(int64_t at) const { return at % arena_stride; }
  TransactionState& transaction_at(int array, int64_t at) {
    return transactions[static_cast<size_t>(array)][static_cast<size_t>(at)];
  }

  const Launch& launch;
  const Bytecode& code;
  const int lanes;  // of a warp
  const thread::ThreadProgram& program;
  const SimOptions& options;
  const Engines engines;
  const int64_t arena_stride;

  std::vector<Warp> warps;
  std::vector<Cell> temporaries;
  std::vector<std::byte> arena;
  int64_t block = 0;       // the cluster's first
  bool abandoned = false;  // nothing runs any more

  // Who waits for whom.
  std::vector<BarrierState> barriers;  // named ones of each block
  BarrierState cluster_barrier;
  std::map<std::pair<int, int>, Reach> reached;             // by party and block
  std::vector<std::vector<TransactionState>> transactions;  // by array and index

  // What is under way beside the warps.
  std::vector<CopyInFlight> copies;
  std::vector<uint32_t> free_copies;
  int64_t watched_sources = 0;    // async copies in flight from tensors that the kernel writes
  std::vector<TensorCopy> loads;  // of the copy engine, oldest first
  std::vector<Warpgroup> groups;

  // Who has touched what, and what was found.
  Ordering order;
  SharedHistory history;
  std::vector<int> asked_by;         // of each party: the thread that gave it its newest work
  std::vector<uint32_t> unit_marks;  // of 16-byte units of the arena
  uint32_t unit_mark = 0;
  FindingSink findings;
  std::vector<AccessSum> sums;
  Counters counters;

  // The store being carried out.
  int64_t lane_element = 0;      // of the vectorized loop
  bool guarded = false;          // a store with a predicate is evaluated: not all lanes may make it
  std::vector<Event> held_back;  // reads for it of what nothing has written, which matter where it is made
  std::vector<WideElement> wide;

  // Places of matrix operands that were looked at.
  std::set<std::tuple<const Step*, bool, int64_t>> checked_operands;  // of A?, by place in their slot
  std::unordered_map<MatrixSource, MatrixPlaces, MatrixSource::Hash> matrix_places;  // seen so far
  MatrixSource asked;  // room for what is looked up there
};

}  // namespace tilegen::sim
