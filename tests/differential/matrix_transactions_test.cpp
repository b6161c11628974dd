// Transaction barriers that one lane of a warp arrives at, that stand under conditions of the launch, and of
// rings that a fact makes as long as the loop.
#include "matrix_barriers.h"

namespace tilegen::differential {
namespace {

// $in: around what brings and what takes; the lane that arrives for its warp.
std::string ring(const std::string& type, const std::string& lane, const std::string& head,
                 const std::string& in = "", const std::string& out = "") {
  return replaced(R"(tl 1 program p
$head
tensor X: $t[m] readonly
tensor Y: $t[m]
kernel k grid (g: ceildiv(m, 64)) threads 192 {
  alloc ring: shared $t[3, 64]
  alloc full: shared u64[3] {arrivals = 2}
  alloc empty: shared u64[3] {arrivals = 4}
  threads w, l in 6, 32 {
    var r = X[g * 64 + (w * 32 + l) % 64]
    serial k in 0 .. m // 20 {
      $in
      if w > 3 {
        mbarrier_wait empty[k % 3], (k // 3 + 1) % 2
        ring[k % 3, (w - 4) * 32 + l] = X[k * 64 + (w - 4) * 32 + l] + r
        if $lane { mbarrier_arrive full[k % 3] }
      } else {
        mbarrier_wait full[k % 3], k // 3 % 2
        r += ring[k % 3, 63 - (w * 32 + l) % 64]
        if l == 31 { mbarrier_arrive empty[k % 3] }
      }
      $out
    }
    if w < 2 { Y[g * 64 + w * 32 + l] = r }
  }
}
)",
                  {{"t", type}, {"lane", lane}, {"head", head}, {"in", in}, {"out", out}});
}

TEST(Transactions, OneLaneArrivesForItsWarp) {
  for (const std::string type : {"f32", "i64", "u8", "f16"})
    for (const std::string lane : {"l == 0", "lane_id() == 7", "thread_id() % 32 == w"})
      expect_agree_everywhere(ring(type, lane, "dim m"), {128, 300});
}

// What the lane's if holds besides the arrival stays the lane's; warps are numbered by hand.
TEST(Transactions, LanesThatArriveDoMore) {
  expect_agree_everywhere(R"(tl 1 program p
dim m
tensor X: i32[m] readonly
tensor Y: i32[m]
kernel k grid (g: ceildiv(m, 64)) threads 128 {
  alloc part: shared i32[2, 2]
  alloc full: shared u64[2] {arrivals = 2}
  alloc empty: shared u64[2] {arrivals = 64}
  threads t in 128 {
    var r = X[g * 64 + t % 64]
    serial k in 0 .. m // 20 {
      if t >= 64 {
        mbarrier_wait empty[k % 2], (k // 2 + 1) % 2
        if t % 32 == 0 {
          part[k % 2, t // 32 - 2] = X[k * 64 + t] + r
          mbarrier_arrive full[k % 2]
        }
      }
      if t < 64 {
        mbarrier_wait full[k % 2], k // 2 % 2
        r += part[k % 2, t % 2]
        mbarrier_arrive empty[k % 2]
      }
    }
    if t < 64 { Y[g * 64 + t] = r }
  }
}
)",
                          {128, 300});
}

// Outside of a block of threads the arrival says it.
TEST(Transactions, ElectedLanesOfLoopsOfThreads) {
  expect_agree_everywhere(R"(tl 1 program p
dim m
tensor X: f32[m] readonly
tensor Y: f32[m]
kernel k grid (g: ceildiv(m, 128)) threads 128 {
  alloc s: shared f32[128]
  alloc full: shared u64[1] {arrivals = 4}
  threads w, l in 4, 32 { s[w * 32 + l] = X[g * 128 + w * 32 + l] }
  mbarrier_arrive full[0] {elected}
  mbarrier_wait full[0], 0
  threads w, l in 4, 32 { Y[g * 128 + w * 32 + l] = s[127 - w * 32 - l] }
}
)",
                          {128, 300});
}

TEST(Transactions, UnderConditionsOfTheLaunch) {
  for (const std::string condition : {"m > 200", "m > 200 and m < 400", "g < 2"})
    expect_agree_everywhere(ring("f32", "l == 0", "dim m", "if " + condition + " {", "}"), {128, 300, 420});
  // An arrival and its wait stand in ifs of their own, of a condition and of its opposite.
  for (const std::string other :
       {"if m > 200 {", "if m <= 200 { r += 2 } else {", "if w < 6 and not (m <= 200) {"})
    expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: f32[m] readonly
tensor Y: f32[m]
kernel k grid (g: ceildiv(m, 64)) threads 192 {
  alloc s: shared f32[64]
  alloc full: shared u64[1] {arrivals = 64}
  threads w, l in 6, 32 {
    var r = X[g * 64 + (w * 32 + l) % 64]
    if m > 200 and w > 3 {
      s[(w - 4) * 32 + l] = r
      mbarrier_arrive full[0]
    }
    r += 1
    $other
      if w < 4 {
        mbarrier_wait full[0], 0
        r += s[63 - (w * 32 + l) % 64]
      }
    }
    if w < 2 { Y[g * 64 + w * 32 + l] = r }
  }
}
)",
                                     {{"other", other}}),
                            {128, 300});
}

// Sizes that a condition keeps from the wait are ordered by a barrier of the block.
TEST(Transactions, WaitsOfSomeLaunchesOrderNoOthers) {
  expect_agree_everywhere(R"(tl 1 program p
dim m
tensor X: f32[m] readonly
tensor Y: f32[m]
kernel k grid (g: ceildiv(m, 128)) threads 128 {
  alloc s: shared f32[128]
  alloc full: shared u64[1] {arrivals = 128}
  threads w, l in 4, 32 {
    s[w * 32 + l] = X[g * 128 + w * 32 + l]
    mbarrier_arrive full[0]
    if m > 200 { mbarrier_wait full[0], 0 }
    Y[g * 128 + w * 32 + l] = s[127 - w * 32 - l]
  }
}
)",
                          {128, 300});
}

// k % 4 is k where there are no more than four rounds.
TEST(Transactions, RingsAsLongAsTheirLoops) {
  const std::vector<int64_t> sizes = {10, 20, 64, 80};
  for (const std::string slot : {"k % 4", "k"})
    for (const std::string most : {"m <= 80", "m <= 80 divisible 2"})
      expect_agree_everywhere(replaced(R"(tl 1 program p
dim $most
tensor X: f32[m] readonly
tensor Y: f32[m]
kernel k grid (g: ceildiv(m, 64)) threads 192 {
  alloc ring: shared f32[4, 64]
  alloc full: shared u64[4] {arrivals = 2}
  alloc empty: shared u64[4] {arrivals = 128}
  threads w, l in 6, 32 {
    var r = X[g * 64 + (w * 32 + l) % 64]
    serial k in 0 .. m // 20 {
      if w > 3 {
        mbarrier_wait empty[$s], 1
        ring[$s, (w - 4) * 32 + l] = X[k * 64 + (w - 4) * 32 + l] + r
        if l == 0 { mbarrier_arrive full[$s] }
      } else {
        mbarrier_wait full[$s], 0
        r += ring[$s, 63 - (w * 32 + l) % 64]
        mbarrier_arrive empty[$s]
      }
    }
    if w < 2 { Y[g * 64 + w * 32 + l] = r }
  }
}
)",
                                       {{"most", most}, {"s", slot}}),
                              sizes);
}

}  // namespace
}  // namespace tilegen::differential
