// Copies that fill a tile in the order of lanes: which thread has which place.
#include "schedule/transport/lane_order_copies.h"

#include <gtest/gtest.h>

#include "plan_support.h"

namespace tilegen::schedule {
namespace {

using layout::Layout;

analysis::KernelOp copy_of(std::vector<int64_t> extents, std::vector<int64_t> offset = {0, 0},
                           std::vector<int> dims = {0, 1}) {
  analysis::KernelOp op;
  op.view.extents = std::move(extents);
  op.view.accesses.resize(2);
  op.view.accesses[1].write = true;
  op.view.accesses[1].dim_of = std::move(dims);
  op.view.accesses[1].offset = std::move(offset);
  op.view.accesses[1].unknown.resize(2);
  return op;
}

Layout rows(int64_t m, int64_t n, int element_bytes, layout::Swizzle swizzle = {}) {
  return *Layout::row_major(std::vector{m, n}).with_swizzle(swizzle, element_bytes);
}

const target::Target& machine() {
  static const target::Target t = *target::find_target("gfx942");
  return t;
}

// Of every tile, type and number of threads: the places of a round are those of the threads, in their order.
TEST(LaneOrderCopies, ThreadsFillWordsSideBySide) {
  for (int bytes : {1, 2, 4})
    for (int64_t n : {16, 32, 64, 128})
      for (int64_t threads : {64, 128, 256})
        for (layout::Swizzle swizzle : {layout::Swizzle{}, layout::Swizzle{2, 3, 3}}) {
          const int64_t m = 128, word = 4 / bytes;
          if (m * n % (word * threads) != 0) continue;
          const LaneOrderCopy c =
              lane_order_copy(copy_of({m, n}), rows(m, n, bytes, swizzle), bytes, threads, machine());
          ASSERT_TRUE(c.iteration) << c.why << " of " << bytes << " bytes, " << n << " columns, " << threads;
          EXPECT_EQ(c.vector, word);
          for (int64_t i = 0; i < m; i += 7)
            for (int64_t j = 0; j < n; ++j) {
              const int64_t at = i * n + j;  // without the swizzle
              const std::vector<int64_t> place = c.iteration->map().eval(std::vector{i, j});
              EXPECT_EQ(place[layout::kThread], at / word % threads);
              EXPECT_EQ(place[layout::kRegister], at / (word * threads) * word + at % word);
            }
        }
}

TEST(LaneOrderCopies, SaysWhyNot) {
  const auto why = [](const analysis::KernelOp& op, const Layout& tile, int bytes) {
    const LaneOrderCopy c = lane_order_copy(op, tile, bytes, 64, machine());
    EXPECT_FALSE(c.iteration);
    return c.why;
  };
  EXPECT_EQ(why(copy_of({64, 64}), rows(64, 64, 8), 8), "an element has 8 bytes, a lane moves 4");
  EXPECT_EQ(why(copy_of({64, 64}, {0, 64}), rows(64, 128, 2), 2), "it fills a part of its tile, or turns it");
  EXPECT_EQ(why(copy_of({64, 32}, {0, 0}, {1, 0}), rows(64, 32, 2), 2),
            "it fills a part of its tile, or turns it");
  EXPECT_EQ(why(copy_of({64, 64}), Layout::padded_row_major(std::vector<int64_t>{64, 64}, 8), 2),
            "the tile has gaps, and lanes fill words side by side");
  EXPECT_EQ(why(copy_of({64, 96}), rows(64, 96, 2), 2),
            "the tile's rows do not divide into the words of all threads");
  EXPECT_EQ(why(copy_of({8, 8}), rows(8, 8, 2), 2),
            "the tile's 32 words are no whole ones of each of 64 threads");
}

}  // namespace
}  // namespace tilegen::schedule
