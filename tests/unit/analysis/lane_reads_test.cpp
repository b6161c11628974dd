// Which loads of a fragment lanes of the own warp serve: against who holds the elements, point by point.
#include "analysis/lane_reads.h"

#include <gtest/gtest.h>

namespace tilegen::analysis {
namespace {

using layout::Fragment;

Fragment fragment(const std::string& text) {
  auto f = Fragment::from_text(text);
  EXPECT_TRUE(f) << text;
  return *f;
}

ops::ElementAccess access(std::vector<int> dim_of) {
  ops::ElementAccess a;
  a.offset.assign(dim_of.size(), 0);
  a.dim_of = std::move(dim_of);
  return a;
}

constexpr int kAny = ops::kIrregularIndex;
const char* const kInOrder = "threads 128 : (4,32) -> [0: d0/1%4*32 + d1/1%32*1; 1: 0]";

bool held(const std::string& layout, const ops::ElementAccess& a, const char* target = "sm_80",
          ir::DType type = ir::DType::f32) {
  const Fragment f = fragment(layout);
  return held_by_lanes(f, f, a, type, *target::find_target(target));
}

TEST(LaneReads, AnyLaneOfTheOwnWarp) {
  for (const char* target : {"sm_80", "sm_90a", "gfx942"}) {
    EXPECT_TRUE(held(kInOrder, access({0, kAny}), target));
    EXPECT_TRUE(held(kInOrder, access({0, ops::kUniformIndex}), target));
    EXPECT_TRUE(held("threads 128 : (2,8,8) -> [0: d0/1%2*64 + d1/1%8*8 + d2/1%8*1; 1: 0]",
                     access({0, 1, kAny}), target));
  }
  // Whoever a lane of the warp asks is of the warp.
  const Fragment f = fragment(kInOrder);
  for (int64_t group = 0; group < 4; ++group)
    for (int64_t lane = 0; lane < 32; ++lane) {
      const std::vector<int64_t> element = {group, lane};
      EXPECT_EQ(f.holders(element), std::vector<int64_t>{group * 32 + lane});
    }
}

TEST(LaneReads, NotBeyond) {
  EXPECT_FALSE(held(kInOrder, access({kAny, 1})));  // of another warp
  EXPECT_FALSE(held(kInOrder, access({kAny, kAny})));
  EXPECT_FALSE(held(kInOrder, access({0, kAny}), "host"));
  EXPECT_FALSE(held(kInOrder, access({0, kAny}), "sm_80", ir::DType::boolean));
  // the last dimension is spread over two warps, or over registers, or lies across
  EXPECT_FALSE(held("threads 128 : (2,64) -> [0: d0/1%2*64 + d1/1%64*1; 1: 0]", access({0, kAny})));
  EXPECT_TRUE(held("threads 128 : (2,64) -> [0: d0/1%2*64 + d1/1%64*1; 1: 0]", access({0, kAny}), "gfx942"));
  EXPECT_FALSE(held("threads 64 : (4,32) -> [0: d0/1%4*16 + d1/2%16*1; 1: d1/1%2*1]", access({0, kAny})));
  EXPECT_FALSE(held("threads 128 : (4,32) -> [0: d0/1%4*1 + d1/1%32*4; 1: 0]", access({0, kAny})));
  // threads beyond the tile, and a form that differs from the iteration's
  EXPECT_FALSE(held("threads 256 : (4,32) -> [0: d0/1%4*32 + d1/1%32*1; 1: 0]", access({0, kAny})));
  const Fragment swapped = fragment("threads 128 : (4,32) -> [0: d0/1%4*32 + d1/1%16*2 + d1/16%2*1; 1: 0]");
  EXPECT_FALSE(held_by_lanes(fragment(kInOrder), swapped, access({0, kAny}), ir::DType::f32,
                             *target::find_target("sm_80")));
  ops::ElementAccess written = access({0, kAny});
  written.write = true;
  EXPECT_FALSE(held(kInOrder, written));
}

}  // namespace
}  // namespace tilegen::analysis
