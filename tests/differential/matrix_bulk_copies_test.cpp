// Boxes that warps copy together for others: by the copy engine, by asynchronous copies of threads, and by
// stores where a machine has neither.
#include <algorithm>
#include <map>

#include "matrix_barriers.h"

namespace tilegen::differential {
namespace {

// $n columns of X, of which a block takes $c; $r rows a round; warps from $first on copy.
std::string ring(const std::map<std::string, std::string>& words) {
  std::map<std::string, std::string> all = {{"t", "f32"},   {"n", "512"},     {"c", "128"},     {"r", "4"},
                                            {"slots", "3"}, {"copying", "1"}, {"at", "g * 128"}};
  for (const auto& [word, text] : words) all[word] = text;
  const int warps = std::stoi(all["copying"]);
  all["threads"] = std::to_string(128 + 32 * warps);
  all["all"] = std::to_string(4 + warps);
  all["arrive"] = std::to_string(32 * warps);
  std::vector<std::pair<std::string, std::string>> longest_first(all.begin(), all.end());
  std::sort(longest_first.begin(), longest_first.end(),
            [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  return replaced(R"(tl 1 program p
dim m
tensor X: $t[m, $n] readonly
tensor Y: $t[512]
kernel k grid (g: 4) threads $threads {
  alloc ring: shared $t[$slots, $r, $c]
  alloc full: shared u64[$slots] {arrivals = $arrive}
  alloc empty: shared u64[$slots] {arrivals = 4}
  threads w, l in $all, 32 {
    var sum = X[0, l]
    serial k in 0 .. ceildiv(m, $r) {
      if w > 3 {
        mbarrier_wait empty[k % $slots], (k // $slots + 1) % 2
        copy_bulk X[k * $r :+ $r, $at :+ $c] -> ring[k % $slots, 0 :+ $r, 0 :+ $c]
        mbarrier_arrive full[k % $slots] {copies}
      } else {
        mbarrier_wait full[k % $slots], k // $slots % 2
        unroll r in 0 .. $r { sum += ring[k % $slots, r, (w * 32 + l) % $c] }
        if l == 0 { mbarrier_arrive empty[k % $slots] }
      }
    }
    if w < 4 { Y[g * 128 + w * 32 + l] = sum }
  }
}
)",
                  longest_first);
}

TEST(BulkCopies, BoxesOfTypesWarpsAndSlots) {
  for (const std::string type : {"f32", "f16", "i64", "u8", "i32"})
    for (const std::string copying : {"1", "2"}) {
      const std::string slots = copying == "1" ? "3" : "2";
      expect_agree_everywhere(ring({{"t", type}, {"copying", copying}, {"slots", slots}}), {37, 64});
    }
  expect_agree_everywhere(ring({{"r", "1"}}), {9});
  expect_agree_everywhere(ring({{"r", "8"}, {"slots", "1"}}), {37});
}

// Beyond the tensor zeros are copied: below its last row, and right of its last column.
TEST(BulkCopies, BoxesHangOverTheEdge) {
  expect_agree_everywhere(ring({{"n", "432"}}), {5, 37});
  expect_agree_everywhere(ring({{"at", "g * 128 - 64"}}), {37});
}

// Rows, places and layouts that the engine does not take are copied by threads.
TEST(BulkCopies, WhatTheEngineDoesNotTake) {
  expect_agree_everywhere(ring({{"c", "36"}, {"t", "i32"}, {"at", "g * 36"}}), {37});
  expect_agree_everywhere(ring({{"c", "34"}, {"t", "i32"}, {"at", "g * 34"}}), {37});
  expect_agree_everywhere(ring({{"n", "510"}, {"t", "i32"}}), {37});
  expect_agree_everywhere(ring({{"at", "g * 126"}, {"t", "i32"}}), {37});
}

// Boxes of three dimensions, several in front of one arrival, and with groups in its place.
TEST(BulkCopies, SeveralBoxesOfAPhase) {
  for (const std::string type : {"f32", "u8"})
    expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: $t[m, 4, 64] readonly
tensor Z: $t[64, 64] readonly
tensor Y: $t[128]
kernel k grid (g: 1) threads 160 {
  alloc a: shared $t[2, 2, 4, 64]
  alloc b: shared $t[2, 8, 64]
  alloc full: shared u64[2] {arrivals = 32}
  alloc empty: shared u64[2] {arrivals = 128}
  threads w, l in 5, 32 {
    let at = w * 32 + l
    var sum = Z[0, l]
    serial k in 0 .. ceildiv(m, 2) {
      if w == 4 {
        mbarrier_wait empty[k % 2], (k // 2 + 1) % 2
        copy_bulk X[k * 2 :+ 2, 0 :+ 4, 0 :+ 64] -> a[k % 2, 0 :+ 2, 0 :+ 4, 0 :+ 64]
        copy_bulk Z[k :+ 8, 0 :+ 64] -> b[k % 2, 0 :+ 8, 0 :+ 64]
        mbarrier_arrive full[k % 2] {copies}
      }
      if w < 4 {
        mbarrier_wait full[k % 2], k // 2 % 2
        sum += a[k % 2, at % 2, at // 32, at % 64] + b[k % 2, at // 16, 63 - at % 64]
        mbarrier_arrive empty[k % 2]
      }
    }
    if w < 4 { Y[at] = sum }
  }
}
)",
                                     {{"t", type}}),
                            {13, 20});
  expect_agree_everywhere(R"(tl 1 program p
dim m
tensor X: f32[m, 128] readonly
tensor Y: f32[128]
kernel k grid (g: 1) threads 128 {
  alloc s: shared f32[2, 2, 128]
  threads t in 128 {
    var sum = 0.0f32
    copy_bulk X[0 :+ 2, 0 :+ 128] -> s[0, 0 :+ 2, 0 :+ 128]
    commit_group
    serial k in 0 .. m // 2 {
      wait_group 0
      copy_bulk X[k * 2 + 2 :+ 2, 0 :+ 128] -> s[(k + 1) % 2, 0 :+ 2, 0 :+ 128]
      commit_group
      sum += s[k % 2, 0, 127 - t] + s[k % 2, 1, t]
    }
    wait_group 0
    Y[t] = sum
  }
}
)",
                          {1, 9, 20});
}

// $last: how long the takers go on. A tile that is written behind the ring waits for all boxes.
std::string written_behind(const std::string& last) {
  return replaced(R"(tl 1 program p
dim m
tensor X: f32[m, 128] readonly
tensor Y: f32[128]
tensor Z: f32[2, 128]
kernel k grid (g: 1) threads 128 {
  alloc ring: shared f32[2, 1, 128]
  alloc full: shared u64[2] {arrivals = 32}
  alloc behind: shared u64[1] {arrivals = 32}
  alloc empty: shared u64[2] {arrivals = 96}
  threads w, l in 4, 32 {
    var sum = 0.0f32
    serial k in 0 .. m {
      if w == 0 {
        mbarrier_wait empty[k % 2], (k // 2 + 1) % 2
        copy_bulk X[k :+ 1, 0 :+ 128] -> ring[k % 2, 0 :+ 1, 0 :+ 128]
        mbarrier_arrive full[k % 2] {copies}
      } else {
        mbarrier_wait full[k % 2], k // 2 % 2
        sum += ring[k % 2, 0, w * 32 + l] + ring[k % 2, 0, l]
        mbarrier_arrive empty[k % 2]
      }
    }
    barrier
    if w == 3 {
      copy_bulk X[0 :+ 1, 0 :+ 128] -> ring[1, 0 :+ 1, 0 :+ 128]
      mbarrier_arrive behind[0] {copies}
    }
    $last
    Y[w * 32 + l] = sum
  }
  fill ring, 3
  copy ring[0 :+ 2, 0 :+ 1, 0 :+ 128] -> Z
}
)",
                  {{"last", last}});
}

TEST(BulkCopies, BehindTheLastBoxTheTileIsFree) {
  for (const std::string wait : {"mbarrier_wait behind[0], 0", "if w == 1 { mbarrier_wait behind[0], 0 }"})
    expect_agree_everywhere(written_behind(wait), {1, 9});
  if (take_case) return;
  for (const std::string target : {"sim:sm_80", "sim:sm_90"}) {
    Subject subject(written_behind(""), {target});
    const Outcome o = subject.compile();
    EXPECT_NE(o.text.find("may still be under way"), std::string::npos) << target << ": " << o.text;
  }
}

}  // namespace
}  // namespace tilegen::differential
