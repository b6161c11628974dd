// Transactions of a tile's accesses: as if every request were counted by itself.
#include "schedule/memory/tile_conflicts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "schedule/memory/tile_layouts.h"

namespace tilegen::schedule {
namespace {

using layout::Layout;

TileTransactions one_by_one(const TileAccesses& accesses, const Layout& l, size_t rank, int element_bytes,
                            const layout::BankModel& banks) {
  TileTransactions c;
  for (const TileRequest& r : accesses.requests) {
    std::vector<int64_t> addresses;
    for (size_t at = 0; at < r.indices.size(); at += rank)
      addresses.push_back(l.offset({r.indices.data() + at, rank}) * element_bytes);
    const int bytes = static_cast<int>(r.elements) * element_bytes;
    const int64_t taken = layout::wavefronts(addresses, bytes, banks);
    c.weighed += r.weight * static_cast<double>(taken);
    c.conflicts = c.conflicts || taken > layout::least_wavefronts(addresses, bytes, banks);
  }
  return c;
}

// Warps that walk along a line of the tile, from somewhere in it; some of them in no order.
TileAccesses random_accesses(const std::vector<int64_t>& shape, int64_t widest, std::mt19937& random) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint32_t>(std::max<int64_t>(1, n)));
  };
  TileAccesses accesses;
  accesses.widest = widest;
  for (int i = 0; i < 40; ++i) {
    TileRequest r;
    r.elements = below(3) == 0 ? 1 : widest;
    r.weight = static_cast<double>(1 + below(4)) / 3;
    const int64_t step_rows = below(3), step_columns = r.elements * below(3), lanes = 1 + below(32);
    const bool scattered = below(8) == 0;
    const int64_t row = below(shape[0]), column = below(shape[1] / r.elements) * r.elements;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      r.indices.push_back(scattered ? below(shape[0]) : (row + lane * step_rows) % shape[0]);
      r.indices.push_back(scattered ? below(shape[1] / r.elements) * r.elements
                                    : (column + lane * step_columns) % (shape[1] / r.elements * r.elements));
    }
    accesses.requests.push_back(r);
    if (below(2)) accesses.requests.push_back(std::move(r));
  }
  return accesses;
}

TEST(TileConflicts, CountAsRequestsOneByOne) {
  std::mt19937 random(7);
  bool differ = false, conflicts = false;
  for (const layout::BankModel banks : {layout::BankModel{32, 4}, layout::BankModel{24, 4}})
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{64, 64}, {32, 24}, {16, 256}, {8, 2048}, {48, 40}})
      for (const int bytes : {1, 2, 4, 8}) {
        const int64_t widest = std::max<int64_t>(1, 8 / bytes);
        const TileAccesses accesses = random_accesses(shape, widest, random);
        TileConflicts counter(accesses, shape, bytes, banks);
        std::vector<Layout> layouts = tile_layout_candidates(shape, bytes, widest);
        // Columns side by side, and a swizzle of less than what a lane accesses.
        layouts.push_back(*Layout::make(shape, {{0, shape[0], 1, 0, 1}, {1, shape[1], 1, 0, shape[0]}}, 1));
        if (auto fine = Layout::row_major(shape).with_swizzle({2, 2, 3}, bytes))
          layouts.push_back(std::move(*fine));
        double before = 0;
        for (const Layout& l : layouts) {
          const TileTransactions want = one_by_one(accesses, l, shape.size(), bytes, banks),
                                 got = counter.count(l, INFINITY);
          EXPECT_EQ(got.weighed, want.weighed) << l.to_text();
          EXPECT_EQ(got.conflicts, want.conflicts) << l.to_text();
          EXPECT_GE(counter.count(l, want.weighed).weighed, want.weighed * (1 - 1e-12)) << l.to_text();
          differ = differ || (before != 0 && before != got.weighed);
          conflicts = conflicts || got.conflicts;
          before = got.weighed;
        }
      }
  EXPECT_TRUE(differ && conflicts);
}

}  // namespace
}  // namespace tilegen::schedule
