// Products of a warpgroup under way.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/bytecode.h"

namespace tilegen::sim {

struct ClusterRun;
struct Warp;

constexpr int kGroupWarps = 4;

struct Product {
  const Step* step = nullptr;
  // First element: of A and B in the arena as bytes, of registers as an index.
  int64_t a = 0, b = 0, c = 0, places = 0;
  bool accumulate = true;
  uint32_t work = 0;                          // its number among the warpgroup's
  std::array<uint32_t, kGroupWarps> group{};  // of each warp
  std::array<bool, kGroupWarps> waited{};
  bool computed = false;
  bool sound = true;  // its operands and registers exist
};

// Warps meet at a product; the last to come issues it.
struct Warpgroup {
  uint32_t here = 0;  // warps that are there
  Product next;
  std::vector<Product> under_way;  // oldest first
};

void warpgroup_mma(ClusterRun& run, Warp& w, const Step& s);
void warpgroup_wait(ClusterRun& run, Warp& w, const Step& s);

// warpgroup_operands.cpp
// Bounds, form and history of an operand in shared memory. It is read from the product's issue until it is
// waited for.
void judge_operand(ClusterRun& run, int group, Product& p, bool of_a);
// The operand of one step, row-major: A as 64 x k, B as k x n.
void read_operand(const ClusterRun& run, const Product& p, bool of_a, size_t step, double* to);

}  // namespace tilegen::sim
