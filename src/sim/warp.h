// A warp while its block runs: lanes that run, values, registers, and what it waits for.
#pragma once

#include <array>
#include <bit>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/lanes.h"
#include "sim/loads_under_way.h"
#include "sim/tensor_engine.h"

namespace tilegen::sim {

// What a warp returns to after a loop or branch. `mask`: the lanes that entered; `other`: those of the
// else, or of a loop those that its condition ended it for.
struct Frame {
  LaneMask mask = 0, other = 0;
  int64_t iteration = 0;
  bool uniform = true;
  std::array<int64_t, kMaxLanes> extent;  // [0] when uniform
};

// How the tiles of a product lay to each other in its instructions so far.
struct ProductPlaces {
  uint32_t last = 0;  // statement: an instruction that comes again begins the product anew
  std::optional<int64_t> k, row, column;
  // row, column by accumulator
  std::map<std::pair<uint32_t, int64_t>, std::array<std::optional<int64_t>, 2>> sums;
};

enum class WarpState : uint8_t { ready, waiting, done };
enum class Awaited : uint8_t { barrier, transaction, warpgroup, cluster };

struct Warp {
  int index = 0, local = 0, rank = 0;  // in the cluster, in its block; its block in the cluster
  int lanes = 1;                       // of its program's warps
  LaneMask all = 0, mask = 0;          // lanes that exist; that run now
  uint32_t pc = 0;
  WarpState state = WarpState::ready;
  Awaited awaited = Awaited::barrier;  // when waiting:
  int barrier = 0;                     // the barrier, or the array of transaction barriers
  int64_t place = 0, parity = 0;       // of it
  LaneMask touched = 0;                // lanes that touched memory since the warp released what it did
  int64_t statements = 0;
  std::vector<Cell> uniform, kept, registers;
  std::vector<LaneMask> written;        // lanes by register
  std::vector<ProductPlaces> products;  // by operation, where places are known
  // by register and lane, where places are known: memory + 1 and element of it
  std::vector<uint64_t> origins;
  std::vector<Frame> frames;
  size_t depth = 0;
  std::array<uint32_t, kMaxLanes> commits{};
  std::vector<uint32_t> copies;  // into ClusterRun::copies, oldest first
  std::array<uint32_t, kMaxLanes> bulk_commits{};
  std::vector<TensorCopy> stores;  // oldest first
  // Of each register: the work of the product that has it, 0: none; 1 + the fences that it was touched
  // after.
  std::vector<uint32_t> in_product, touched_at;
  uint32_t fences = 0, product_commits = 0;
  bool has_products = false;  // some register may be in one
  LoadsUnderWay loads;
  int64_t matrix_instructions = 0;  // so far
  Values values;
  size_t width() const { return static_cast<size_t>(lanes); }
};

inline int thread_of(const Warp& w, int lane) { return w.index * w.lanes + lane; }
inline int thread_in_block(const Warp& w, int lane) { return w.local * w.lanes + lane; }
inline int first_thread(const Warp& w, LaneMask lanes) {
  return thread_of(w, lanes ? std::countr_zero(lanes) : 0);
}
inline int64_t scalar(const Warp& w, Ref r) { return w.values.at(r)->i; }
// Of the lanes `among`, those whose value is true.
LaneMask true_lanes(const Warp& w, Ref r, LaneMask among);

}  // namespace tilegen::sim
