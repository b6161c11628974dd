// Blocks of threads: exchanges between lanes over types, sizes of groups and targets, and what meets around.
#include "matrix.h"

namespace tilegen::differential {
namespace {

constexpr DType kNumbers[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::u8,
                              DType::i16, DType::u16,  DType::i32, DType::u32, DType::i64, DType::u64};

std::vector<Launch> launches() {
  std::vector<Launch> all = seeds({1, 2});
  all[0].dims = {{"m", 128}};
  all[1].dims = {{"m", 300}};
  for (Launch& l : all) l.magnitude = 30;
  return all;
}

// With the instructions of AMD targets on their interpreter.
void expect_agree_everywhere(const std::string& text) {
  expect_agree(text, launches());
  if (take_case) return;
  Subject subject(text, {"gfx942", "gfx90a", "sim:gfx942"});
  ASSERT_EQ(subject.invalid(), "") << text;
  for (const Launch& l : launches()) expect_agree(subject, text, l);
}

TEST(Threads, Exchanges) {
  const std::pair<int, int> shapes[] = {{4, 32}, {8, 16}, {64, 2}};
  size_t next = 0;
  for (DType t : kNumbers)
    for (const std::string exchange : {"shuffle(x, 1)", "shuffle(x, at)", "shuffle_xor(x, 1)",
                                       "shuffle_up(x, 1)", "shuffle_down(x, at)"}) {
      const auto& [groups, lanes] = shapes[next++ % 3];
      expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: $t[m] readonly
tensor I: i32[m] readonly
tensor Y: $t[m]
kernel k grid (g: ceildiv(m, 128)) threads 128 {
  threads w, l in $groups, $lanes {
    let i = g * 128 + w * $lanes + l
    let x = X[i]
    let at = cast(i64, I[i]) % $lanes
    Y[i] = x - $exchange
  }
}
)",
                                       {{"t", ir::dtype_name(t)},
                                        {"groups", std::to_string(groups)},
                                        {"lanes", std::to_string(lanes)},
                                        {"exchange", exchange}}));
    }
}

TEST(Threads, Votes) {
  for (const int lanes : {2, 8, 32})
    expect_agree_everywhere(
        replaced(R"(tl 1 program p
dim m
tensor X: i32[m] readonly
tensor Y: u32[m]
kernel k grid (g: ceildiv(m, 128)) threads 128 {
  threads w, l in $groups, $lanes {
    let i = g * 128 + w * $lanes + l
    let low = X[i] < 3
    var word = ballot(low)
    if any(X[i] > 20) and not(all(low)) { word = word ^ 65536u32 }
    Y[i] = word
  }
}
)",
                 {{"groups", std::to_string(128 / lanes)}, {"lanes", std::to_string(lanes)}}));
}

// Lanes of one value find each other; the first lane that a condition holds for is told, once for each group.
TEST(Threads, MatchesAndElections) {
  const DType types[] = {DType::i8, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64};
  for (const int lanes : {2, 8, 32})
    for (const DType t : types)
      expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: $t[m] readonly
tensor Y: u32[m]
tensor First: i32[m]
kernel k grid (g: ceildiv(m, 128)) threads 128 {
  threads w, l in $groups, $lanes {
    let i = g * 128 + w * $lanes + l
    let x = X[i] // 4
    let peers = match_any(x)
    let leads = elect(x == X[0] // 4)
    Y[i] = peers
    First[i] = select(leads, cast(i32, l), -1)
    if any(elect(peers > 3)) { Y[i] = peers + popcount(match_any(l % 3)) * 1000 }
  }
}
)",
                                       {{"t", ir::dtype_name(t)},
                                        {"groups", std::to_string(128 / lanes)},
                                        {"lanes", std::to_string(lanes)}}));
}

// In warps with tasks of their own, in loops, and written by hand; what is not one beside them.
TEST(Threads, VotesInTasks) {
  for (const int lanes : {4, 16, 32})
    expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: i32[m] readonly
tensor Y: u32[m]
kernel k grid (g: ceildiv(m, 128)) threads 128 {
  threads w, l in $groups, $lanes {
    let i = g * 128 + w * $lanes + l
    let x = X[i]
    var word = 0u32
    serial r in 0 .. 3 {
      if w % 3 == 1 {
        let low = ballot(x < cast(i32, r))
        if any(x == cast(i32, r) + 20) { word = word + low }
      } else {
        word = word * 3u32 + select(all(x > cast(i32, r) - 29), 1u32, 2u32)
      }
    }
    var own = select(x % 3 == 0, 1u32 << cast(u32, l), 0u32)
    var five = select(x > 25, 5i32, 0i32)
    var bits = cast(u32, x)
    unroll d in 0 .. $steps {
      own = own | shuffle_xor(own, 1 << d)
      five = shuffle_xor(five, 1 << d) | five
      bits = bits | shuffle_xor(bits, 1 << d)
    }
    Y[i] = word * 7u32 + own + cast(u32, five) * 11u32 + bits
  }
}
)",
                                     {{"groups", std::to_string(128 / lanes)},
                                      {"lanes", std::to_string(lanes)},
                                      {"steps", std::to_string(lanes == 4    ? 2
                                                               : lanes == 16 ? 4
                                                                             : 5)}}));
}

// Blocks of threads that no lanes are counted in.
TEST(Threads, TasksOfWarpsByNumbers) {
  for (const std::string first : {"warp_id() < 2", "t < 64", "63 >= t", "t // 64 == 0 and m > 0"})
    expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: i32[m] readonly
tensor Y: i32[m]
kernel k grid (g: ceildiv(m, 128)) threads 128 {
  alloc s: shared i32[128]
  threads t in 128 {
    let i = g * 128 + t
    var r = X[i]
    if $first {
      s[t] = r
      barrier
      r += s[63 - t]
    } else {
      serial d in 0 .. 2 {
        if warp_id() == 3 {
          s[t] = r - cast(i32, d)
          barrier
          r += s[96 + (t + 5) % 32]
        }
      }
    }
    Y[i] = r
  }
}
)",
                                     {{"first", first}}));
}

// Lanes go on together by what they voted for, and by what one of them has.
TEST(Threads, TasksByVotes) {
  for (const int lanes : {8, 32})
    expect_agree_everywhere(
        replaced(R"(tl 1 program p
dim m
tensor X: i32[m] readonly
tensor Y: i32[m]
kernel k grid (g: ceildiv(m, 128)) threads 128 {
  alloc s: shared i32[128]
  threads w, l in $groups, $lanes {
    let i = g * 128 + w * $lanes + l
    let x = X[i]
    var sum = x
    let some = any(x > 27)
    if some and w % 2 == 0 {
      unroll d in 0 .. 3 { sum += shuffle_xor(sum, 1 << d) }
      if ballot(sum > 0) > 7u32 { sum = sum * 2 - shuffle(sum, 1) } else { sum = shuffle_up(sum, 1) }
    } else {
      let first = shuffle(x, 2)
      serial r in 0 .. 2 {
        if first > cast(i32, r) {
          s[w * $lanes + l] = sum
          barrier
          sum += s[w * $lanes + (l + 1) % $lanes]
        }
      }
    }
    if not(all(sum > -20)) { sum += shuffle(sum, cast(i64, x) & 3) }
    Y[i] = sum
  }
}
)",
                 {{"groups", std::to_string(128 / lanes)}, {"lanes", std::to_string(lanes)}}));
}

// Copies of 4, 8 and 16 bytes in a ring of groups, for any number of rows.
TEST(Threads, AsynchronousCopies) {
  const std::pair<const char*, int> kinds[] = {{"f32", 1}, {"f32", 4}, {"f16", 2}, {"f16", 8},
                                               {"u8", 8},  {"i64", 1}, {"i64", 2}, {"i32", 2}};
  for (const auto& [type, elements] : kinds)
    for (const std::string condition : {"r + 2 < m // 20", "r < 5 and w != 1", "l < 20"})
      expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: $t[m, 2040] readonly
tensor Y: $t[2040]
kernel k grid (g: ceildiv(2040, 128 * $e)) threads 128 {
  alloc ring: shared $t[3, 128 * $e]
  threads w, l in 4, 32 {
    let at = (w * 32 + l) * $e
    unroll r in 0 .. 3 { unroll e in 0 .. $e { ring[r, at + e] = 1 } }
    barrier
    unroll r in 0 .. 2 {
      copy_async X[r, g * 128 * $e + at :+ $e] -> ring[r, at :+ $e]
      commit_group
    }
    var sum = ring[2, 0]
    serial r in 0 .. m // 20 {
      wait_group 1
      sum += ring[r % 3, 128 * $e - 1 - at]
      if $c {
        copy_async X[r + 2, g * 128 * $e + at :+ $e] -> ring[(r + 2) % 3, at :+ $e]
      }
      commit_group
    }
    Y[g * 128 * $e + at] = sum
  }
}
)",
                                       {{"t", type}, {"e", std::to_string(elements)}, {"c", condition}}));
}

// Warps that bring and warps that take, through rings of one to four slots, for any number of rounds; a third
// set of warps may pass on what it takes.
TEST(Threads, TransactionBarriers) {
  for (const std::string type : {"f32", "i64", "u8", "f16"})
    for (const std::string slots : {"1", "2", "3", "4"})
      expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: $t[m] readonly
tensor Y: $t[m]
kernel k grid (g: ceildiv(m, 64)) threads 192 {
  alloc ring: shared $t[$s, 64]
  alloc full: shared u64[$s] {arrivals = 64}
  alloc empty: shared u64[$s] {arrivals = 128}
  threads w, l in 6, 32 {
    var r = X[g * 64 + (w * 32 + l) % 64]
    serial k in 0 .. m // 20 {
      if w > 3 {
        mbarrier_wait empty[k % $s], (k // $s + 1) % 2
        ring[k % $s, (w - 4) * 32 + l] = X[k * 64 + (w - 4) * 32 + l] + r
        mbarrier_arrive full[k % $s]
      } else {
        mbarrier_wait full[k % $s], k // $s % 2
        r += ring[k % $s, 63 - (w * 32 + l) % 64]
        mbarrier_arrive empty[k % $s]
      }
    }
    if w < 2 { Y[g * 64 + w * 32 + l] = r }
  }
}
)",
                                       {{"t", type}, {"s", slots}}));
  for (const std::string type : {"f32", "i32"})
    expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: $t[m] readonly
tensor Y: $t[m]
kernel k grid (g: ceildiv(m, 64)) threads 192 {
  alloc raw: shared $t[2, 64]
  alloc made: shared $t[3, 64]
  alloc last: shared $t[64]
  alloc full: shared u64[2] {arrivals = 64}
  alloc empty: shared u64[2] {arrivals = 64}
  alloc ready: shared u64[3] {arrivals = 64}
  alloc taken: shared u64[3] {arrivals = 64}
  threads w, l in 6, 32 {
    let at = w % 2 * 32 + l
    var r = X[g * 64 + at]
    if w < 2 { last[at] = 0 }
    barrier
    serial k in 0 .. m // 20 {
      if w < 2 {
        mbarrier_wait empty[k % 2], (k // 2 + 1) % 2
        raw[k % 2, at] = X[k * 64 + at]
        mbarrier_arrive full[k % 2]
      }
      if w >= 2 and w < 4 {
        mbarrier_wait full[k % 2], k // 2 % 2
        mbarrier_wait taken[k % 3], (k // 3 + 1) % 2
        made[k % 3, 63 - at] = raw[k % 2, (at + 5) % 64] + r
        mbarrier_arrive empty[k % 2]
        mbarrier_arrive ready[k % 3]
      }
      if w >= 4 {
        mbarrier_wait ready[k % 3], k // 3 % 2
        r += made[k % 3, (at + 1) % 64]
        mbarrier_arrive taken[k % 3]
        last[at] = r
        barrier
        r += last[(at + 40) % 64]
        barrier
      }
    }
    if w > 3 { Y[g * 64 + at] = r }
  }
}
)",
                                     {{"t", type}}));
}

// Warps that copy asynchronously, and arrive when that is done.
TEST(Threads, CopiesThatArrive) {
  const std::pair<const char*, int> kinds[] = {{"f32", 4}, {"i64", 1}, {"i32", 2}};
  for (const auto& [type, elements] : kinds)
    for (const std::string condition : {"k + 2 < m // 20", "l < 20"})
      expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: $t[m, 2048] readonly
tensor Y: $t[256]
kernel k grid (g: 4) threads 192 {
  alloc ring: shared $t[3, 64 * $e]
  alloc full: shared u64[3] {arrivals = 64}
  alloc empty: shared u64[3] {arrivals = 128}
  threads w, l in 6, 32 {
    var sum = X[0, g * 64 + l]
    let at = (w - 4) * 32 + l
    if w >= 4 { unroll s in 0 .. 3 { unroll e in 0 .. $e { ring[s, at * $e + e] = 1 } } }
    barrier
    serial k in 0 .. m // 20 {
      if w >= 4 {
        mbarrier_wait empty[k % 3], (k // 3 + 1) % 2
        if $c { copy_async X[k, g * 64 * $e + at * $e :+ $e] -> ring[k % 3, at * $e :+ $e] }
        mbarrier_arrive full[k % 3] {copies}
      } else {
        mbarrier_wait full[k % 3], k // 3 % 2
        sum += ring[k % 3, 64 * $e - 1 - (w * 32 + l) % (64 * $e)]
        mbarrier_arrive empty[k % 3]
      }
    }
    if w < 2 { Y[g * 64 + w * 32 + l] = sum }
  }
}
)",
                                       {{"t", type}, {"e", std::to_string(elements)}, {"c", condition}}));
}

// Warps that wait for each other and for no others, in branches and in loops.
TEST(Threads, WarpsMeetAmongThemselves) {
  for (const std::string type : {"f32", "i64", "u8"})
    expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: $t[m] readonly
tensor Y: $t[m]
kernel k grid (g: ceildiv(m, 128)) threads 128 {
  alloc s: shared $t[64]
  alloc u: shared $t[2, 32]
  threads w, l in 4, 32 {
    let i = g * 128 + w * 32 + l
    var r = X[i]
    if w < 2 {
      s[w * 32 + l] = r
      barrier
      r += s[63 - w * 32 - l]
    } else {
      serial d in 0 .. m // 100 {
        if w == 2 { u[d % 2, l] = r }
        barrier
        if w == 3 { r += u[d % 2, 31 - l] }
      }
    }
    Y[i] = r
  }
}
)",
                                     {{"t", type}}));
}

// Tile operations before and behind the block, shared tiles and fragments of the program in it, loops and ifs
// that all threads take alike.
TEST(Threads, BesideTileOperations) {
  for (const std::string type : {"f32", "i64"})
    expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: $t[m, 32] readonly
tensor Y: $t[m, 32]
kernel k grid (g: ceildiv(m, 8)) threads 128 {
  alloc x: shared $t[8, 32]
  alloc row: fragment $t[8]
  alloc most: shared $t[8]
  copy X[g * 8 :+ 8, 0 :+ 32] -> x
  serial r in 0 .. 2 {
    threads w, l in 4, 32 {
      serial h in 0 .. g % 2 + 1 {
        let at = (h + r) % 2 * 4 + w
        var best = x[at, l]
        unroll d in 0 .. 5 {
          let other = shuffle_xor(best, 16 >> d)
          best = max(best, other)
        }
        barrier
        if l == 0 { most[at] = best }
        x[at, l] = select(l % 2 == 0, x[at, l], shuffle(best, l // 2))
      }
      if w == 2 or w == g % 4 {
        let own = x[w, l]
        var high = own
        serial d in 0 .. 5 { high = max(high, shuffle_xor(high, 16 >> d)) }
        if w == 2 { x[w, l] = own - shuffle_up(high, 3) } else { x[w, l] = high }
      }
      if g % 3 == 0 {
        barrier
        if l > 5 { x[w, l] = x[w, l] + cast($t, r) }
      }
    }
  }
  reduce x -> row {kind = sum, axis = 1}
  parallel i, j in 8, 32 { x[i, j] = x[i, j] - row[i] }
  copy x -> Y[g * 8 :+ 8, 0 :+ 32]
}
)",
                                     {{"t", type}}));
}

// Behind a product that a producer feeds where there is one: the row maxima of what it gives.
TEST(Threads, BesideProducts) {
  const std::string text = R"(tl 1 program p
dim k <= 4096 divisible 32
tensor A: f16[128, k] readonly
tensor B: f16[k, 64] readonly
tensor C: f32[128, 64]
tensor M: f32[128]
kernel gemm grid(by: 2) threads 128 {
  alloc As: shared f16[64, 32]
  alloc Bs: shared f16[32, 64]
  alloc Cs: shared f32[64, 64]
  alloc acc: fragment f32[64, 64]
  fill acc, 0
  pipelined ko in 0 .. k // 32 stages 3 {
    copy A[by * 64 :+ 64, ko * 32 :+ 32] -> As
    copy B[ko * 32 :+ 32, 0 :+ 64] -> Bs
    gemm As, Bs -> acc
  }
  copy acc -> Cs
  threads w, l in 4, 32 {
    serial r in 0 .. 16 {
      var m = max(Cs[w * 16 + r, l], Cs[w * 16 + r, l + 32])
      unroll d in 0 .. 5 { m = max(m, shuffle_xor(m, 16 >> d)) }
      if l == r { M[by * 64 + w * 16 + r] = m }
    }
  }
  copy Cs -> C[by * 64 :+ 64, 0 :+ 64]
}
)";
  std::vector<Launch> all = seeds({1, 2});
  all[0].dims = {{"k", 32}};
  all[1].dims = {{"k", 160}};
  for (Launch& l : all) l.magnitude = 4;
  expect_agree(text, all);
  if (take_case) return;
  Subject subject(text, {"sim:sm_80", "sim:sm_90a", "gfx942"});
  ASSERT_EQ(subject.invalid(), "");
  for (const Launch& l : all) expect_agree(subject, text, l);
}

// Numbers of threads in groups of any size, and of blocks in grids of several indices.
TEST(Threads, Numbers) {
  for (const std::string extents : {"128", "4, 32", "32, 4", "2, 64", "2, 8, 8"})
    expect_agree_everywhere(replaced(R"(tl 1 program p
dim m
tensor X: i32[m] readonly
tensor Y: i32[2, m]
kernel k grid (h: 2, g: ceildiv(m, 128)) threads 128 {
  alloc s: shared i32[4]
  threads $v in $e {
    let i = g * 128 + thread_id()
    if lane_id() == 5 { s[warp_id()] = X[i] }
    barrier
    let other = s[(warp_id() + 1) % 4]
    if warp_id() == 1 or warp_id() == 2 {
      Y[h, i] = X[i] - other + cast(i32, lane_id() * 2 + block_id() * 100)
    } else {
      Y[h, i] = other * cast(i32, warp_id() + warpgroup_id() + cluster_rank() + cluster_blocks())
    }
  }
}
)",
                                     {{"e", extents},
                                      {"v", extents == "128"       ? "t"
                                            : extents == "2, 8, 8" ? "a, b, c"
                                                                   : "a, b"}}));
}

// Blocks of a cluster know their number in it; tiles do not divide into clusters.
TEST(Threads, NumbersInClusters) {
  const std::string text = R"(tl 1 program p
dim k <= 4096 divisible 32
tensor A: f16[128, k] readonly
tensor B: f16[k, 320] readonly
tensor C: f32[128, 320]
tensor R: i64[2, 5, 128]
kernel gemm grid(by: 2, bx: 5) threads 128 with {cluster = 2, cluster_along = bx} {
  alloc As: shared f16[64, 32]
  alloc Bs: shared f16[32, 64]
  alloc acc: fragment f32[64, 64]
  fill acc, 0
  pipelined ko in 0 .. k // 32 stages 3 {
    copy A[by * 64 :+ 64, ko * 32 :+ 32] -> As
    copy B[ko * 32 :+ 32, bx * 64 :+ 64] -> Bs
    gemm As, Bs -> acc
  }
  copy acc -> C[by * 64 :+ 64, bx * 64 :+ 64]
  threads w, l in 4, 32 {
    R[by, bx, thread_id()] = block_id() * 10000 + cluster_rank() * 1000 + cluster_blocks() * 100 + warp_id()
  }
}
)";
  std::vector<Launch> all = seeds({1, 2});
  all[0].dims = {{"k", 32}};
  all[1].dims = {{"k", 160}};
  for (Launch& l : all) l.magnitude = 4;
  if (take_case) return;
  Subject subject(text, {"sim:sm_90a"});
  ASSERT_EQ(subject.invalid(), "");
  for (const Launch& l : all) expect_agree(subject, text, l);
}

}  // namespace
}  // namespace tilegen::differential
