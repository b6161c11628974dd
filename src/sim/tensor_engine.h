// The copy engine: tensor maps as a launch sees them, and copies under way.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "layout/tensor_tile.h"
#include "sim/bytecode.h"

namespace tilegen::sim {

struct ClusterRun;
struct Warp;

constexpr int kMaxDims = 5;

// A tensor map with the numbers of a launch.
struct TensorMapView {
  int rank = 0;
  int element = 1;                                            // bytes
  std::array<int64_t, kMaxDims> extents{}, strides{}, box{};  // strides[0]: the element
  int swizzle = 0;
  int64_t box_elements = 1;
  std::string problem;  // why the engine would not take it; empty when it does

  int64_t row_bytes() const { return box[0] * element; }
  int64_t box_bytes() const { return box_elements * element; }
  int64_t alignment() const { return swizzle == 0 ? layout::kBoxAlignment : layout::kSwizzleRows * swizzle; }
  // What is left of a row of the box at these coordinates once it is clipped, [first, end) in elements of the
  // row; and where it begins, in bytes from the tensor's address.
  struct Row {
    int64_t number = 0;  // within the box
    int64_t first = 0, end = 0;
    int64_t offset = 0;  // of element `first`
    bool empty() const { return first >= end; }
  };
  void for_each_row(const std::array<int64_t, kMaxDims>& at, const std::function<void(const Row&)>& f) const;
};

// The byte address within shared memory where a byte of a swizzled tile lies: 16-byte units are XORed by
// their row.
inline int64_t swizzled(int64_t address, int swizzle) {
  const int64_t units = swizzle / layout::kSwizzleUnit - 1;  // 7, 3, 1; none: -1
  return swizzle == 0 ? address : address ^ ((address >> 7 & units) << 4);
}

// A box on its way.
struct TensorCopy {
  const Step* step = nullptr;
  int map = -1;
  std::array<int64_t, kMaxDims> at{};
  int64_t place = -1;  // arena byte; -1: there is no such place, and nothing is moved
  int barriers = -1;   // load
  int64_t barrier = 0;
  // store: who issued it, its group, its number among the warp's, and how far it is
  int lane = 0;
  uint32_t group = 0, work = 0;
  bool moved = false, read = false;
};

void tensor_load(ClusterRun& run, Warp& w, const Step& s);
void tensor_store(ClusterRun& run, Warp& w, const Step& s);
void bulk_commit(Warp& w);
void bulk_wait(ClusterRun& run, Warp& w, const Step& s);
// The bytes arrive, and are reported.
void land(ClusterRun& run, const TensorCopy& c);
// The bytes of a store are written.
void move_out(ClusterRun& run, TensorCopy& c);

}  // namespace tilegen::sim
