// Jumps and switches: which loop they leave, by what the condition is made of, for a whole block and for
// single points of parallel loops, and what stands around them.
#include <algorithm>

#include "matrix.h"

namespace tilegen::differential {
namespace {

// Three loops inside each other: the jump leaves the one it stands in, and no other. Every trip is counted,
// with work of tiles in front of the jump and behind it.
TEST(Control, JumpsLeaveTheirOwnLoop) {
  const char* text = R"(tl 1 program jumps
dim n
tensor X: i32[n, 24] readonly
tensor Y: i32[n, 24]
tensor Trips: i32[ceildiv(n, 8), 4]

kernel k grid (b: ceildiv(n, 8)) threads $threads {
  alloc x: shared i32[8, 24]
  alloc sum: fragment i32[8, 24]
  alloc trips: local i32[4]
  alloc left: local i64[1]
  fill sum, 0i32
  fill trips, 0i32
  serial i in 0 .. 4 {
    copy X[b * 8 + i :+ 8, i :+ 24] -> x
    trips[0] += 1i32
    left[0] = 3
    $middle {
      left[0] -= 1
      trips[1] += 1i32
      serial j in 0 .. 3 {
        if ($condition) == 0 {
          $inner
        }
        trips[2] += cast(i32, j + 1)
        parallel u, v in 8, 24 { sum[u, v] = sum[u, v] * 3i32 + x[u, v] }
      }
      if ($condition) == 1 {
        $outer
      }
      trips[3] += cast(i32, left[0] + i)
      parallel u, v in 8, 24 { sum[u, v] = sum[u, v] ^ x[7 - u, v] }
    }
    copy sum -> Y[b * 8 :+ 8, 0 :+ 24]
  }
  copy trips -> Trips[b :+ 1, 0 :+ 4]
}
)";
  // By the block alone, by what is in memory, in a tile, and in what the loops count.
  static constexpr const char* kConditions[] = {"(b + left[0]) % 3", "cast(i64, X[b * 8, i] % 4i32) - i % 2",
                                                "cast(i64, x[i, 3] ^ trips[1]) % 3",
                                                "cast(i64, trips[2] + trips[1]) % 4"};
  static constexpr const char* kMiddles[] = {"while left[0] > 0", "serial m in 0 .. 3",
                                             "serial m in 0 .. 9 while left[0] > 0"};
  int at = 0;
  for (const char* condition : kConditions)
    for (const char* middle : kMiddles)
      for (const auto& [inner, outer] : {std::pair<const char*, const char*>{"break", "continue"},
                                         {"continue", "break"},
                                         {"return", "break"}}) {
        ++at;
        if (!long_run() && at % 3 != (at / 9) % 3) continue;
        expect_agree(replaced(text, {{"condition", condition},
                                     {"middle", middle},
                                     {"inner", inner},
                                     {"outer", outer},
                                     {"threads", std::to_string(64 << at % 3)}}),
                     launches_of_n({0, 5, 43}));
        if (HasFailure()) return;
      }
}

// A product that ends by its own result: what is in the accumulator then is stored, whatever ended the loop.
TEST(Control, ProductsUntilTheDataSaysSo) {
  for (const std::string jump : {"break", "continue", "return"}) {
    Launch few;
    few.dims = {{"n", 70}, {"limit", 40}};
    Launch all = few;
    all.dims["limit"] = 1000000;
    Launch none = few;
    none.dims["limit"] = -1000000;
    expect_agree(replaced(R"(tl 1 program p
dim n
scalar limit: i64
tensor A: f16[n, 96] readonly
tensor B: f16[96, 32] readonly
tensor C: f32[n, 32]
kernel k grid (b: ceildiv(n, 32)) threads 64 {
  alloc a: shared f16[32, 16]
  alloc bt: shared f16[16, 32]
  alloc c: fragment f32[32, 32]
  alloc row: fragment f32[32]
  alloc most: shared f32[32]
  fill c, 0.0f32
  serial ko in 0 .. 6 {
    copy A[b * 32 :+ 32, ko * 16 :+ 16] -> a
    copy B[ko * 16 :+ 16, 0 :+ 32] -> bt
    gemm a, bt -> c
    reduce c -> row {kind=max, axis=1}
    copy row -> most
    if most[3] > cast(f32, limit) {
      $jump
    }
    copy c -> C[b * 32 :+ 32, 0 :+ 32]
  }
  parallel i, j in 32, 32 { C[b * 32 + i, j] = C[b * 32 + i, j] * 2.0f32 + c[i, j] }
}
)",
                          {{"jump", jump}}),
                 {few, all, none});
    if (HasFailure()) return;
  }
}

// Each point of a parallel loop leaves the loops in it by itself.
TEST(Control, PointsLeaveByThemselves) {
  int at = 0;
  for (const std::string scope : {"fragment", "shared"})
    for (const std::string first : {"break", "continue"})
      for (const std::string second : {"break", "continue"})
        expect_agree(replaced(R"(tl 1 program points
dim n
tensor X: i32[n, 20] readonly
tensor Y: i32[n, 20]
tensor Z: i32[n, 20]
kernel k grid (b: ceildiv(n, 16)) threads $threads {
  alloc x: $scope i32[16, 20]
  alloc z: $scope i32[16, 20]
  copy X[b * 16 :+ 16, 0 :+ 20] -> x
  parallel i, j in 16, 20 {
    var v = x[i, j]
    var steps = 0i32
    serial t in 0 .. 5 {
      if v % 7 == 0 { $first }
      steps += 1
      serial u in 0 .. 3 {
        if (v + cast(i32, u)) % 3 == 1 {
          v += cast(i32, t + 1)
          $second
        }
        steps += cast(i32, 10 * u)
        v = v * 5 - cast(i32, i)
      }
      if steps > 60 { break }
      v = v ^ cast(i32, j)
    }
    z[i, j] = v
    Y[b * 16 + i, j] = steps
  }
  copy z -> Z[b * 16 :+ 16, 0 :+ 20]
}
)",
                              {{"scope", scope},
                               {"first", first},
                               {"second", second},
                               {"threads", std::to_string(64 << at++ % 3)}}),
                     launches_of_n({1, 37}));
}

// Each integer type, at its ends, by element and for the block.
TEST(Control, SwitchesOnEveryInteger) {
  for (DType t :
       {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64}) {
    // Cases are numbers of i64.
    const bool is_signed = ir::dtype_kind(t) == ir::DTypeKind::signed_int;
    const int digits = std::min(ir::dtype_bits(t) - (is_signed ? 1 : 0), 63);
    const std::string largest = std::to_string((uint64_t{1} << digits) - 1);
    const std::string smallest = is_signed ? "-" + std::to_string(uint64_t{1} << digits) : "0";
    expect_agree(replaced(R"(tl 1 program p
dim n
tensor X: $t[n] readonly
tensor Y: i32[n]
tensor Z: $t[n]
tensor W: $t[n, 8]
kernel points grid (b: ceildiv(n, 64)) {
  parallel i in 64 {
    let v = select(i % 9 == 0, $most$t, select(i % 9 == 1, $least$t, X[b * 64 + i] % 5$t))
    switch v {
      case 1, 2 { Y[b * 64 + i] = 12 }
      case $most { Y[b * 64 + i] = 3 }
      case 2, 3 + 1 {
        Y[b * 64 + i] = 24
        Z[b * 64 + i] = v
      }
      case $least { Z[b * 64 + i] = v + 1$t }
      else { Y[b * 64 + i] = 5 }
    }
  }
}
kernel blocks grid (b: n) {
  alloc z: fragment $t[8]
  fill z, 1$t
  switch X[b] % 6$t {
    case 0 { }
    case 1, 4 { fill z, 4$t }
    case 5 {
      parallel i in 8 { z[i] = cast($t, i) }
      switch Z[b] { case 0 { fill z, 9$t } case $most { fill z, $most$t } }
    }
    case 2 { fill z, 2$t }
  }
  copy z -> W[b :+ 1, 0 :+ 8]
}
)",
                          {{"t", ir::dtype_name(t)}, {"most", largest}, {"least", smallest}}),
                 launches_of_n({1, 70}));
    if (HasFailure()) return;
  }
}

// The value of a switch is taken once, jumps in its cases are those of the loop around, and operations of
// tiles stand in cases.
TEST(Control, SwitchesInLoops) {
  for (const auto& [one, two] : {std::pair<const char*, const char*>{"break", "continue"},
                                 {"continue", "return"},
                                 {"return", "break"}})
    expect_agree(replaced(R"(tl 1 program p
dim n
tensor X: f32[n, 32] readonly
tensor Op: i32[n] readonly
tensor Y: f32[n, 32]
tensor R: f32[n, 8]
kernel machine grid (b: ceildiv(n, 8)) threads 64 {
  alloc x: shared f32[8, 32]
  alloc y: fragment f32[8, 32]
  alloc r: fragment f32[8]
  alloc state: local i32[2]
  copy X[b * 8 :+ 8, 0 :+ 32] -> x
  copy x -> y
  fill r, 0.0f32
  fill state, 0i32
  serial step in 0 .. 12 {
    state[1] = (Op[b * 8 + step % 8] + state[0]) % 7
    switch state[1] {
      case 0 {
        state[1] = 1
        parallel i, j in 8, 32 { y[i, j] = max(min(y[i, j] + x[i, j], 64.0f32), -64.0f32) }
      }
      case 1 { reduce y -> r {kind=max, axis=1} }
      case 2 {
        copy y -> Y[b * 8 :+ 8, 0 :+ 32]
        if step > 5 { $one }
      }
      case 3, 4 {
        state[0] += 2
        copy r -> R[b * 8 :+ 8, step % 8 :+ 1]
        $two
      }
      else { parallel i, j in 8, 32 { y[i, j] = x[7 - i, j] - r[i] } }
    }
    state[0] += 1
  }
  copy y -> Y[b * 8 :+ 8, 0 :+ 32]
}
)",
                          {{"one", one}, {"two", two}}),
                 launches_of_n({0, 3, 41}));
}

// A block that returns does nothing more in its kernel, others go on, and so do later kernels.
TEST(Control, ReturnsOfSomeBlocks) {
  for (const std::string where : {"if b % 3 == 1 { return }", "if X[b * 16, 0] > 1 { if n > 20 { return } }",
                                  "switch b % 4 { case 0, 3 { return } case 1 { m[0] += 1 } }",
                                  "serial i in 0 .. 4 { if x[i, i] < 0.0f32 { return } m[0] += i }",
                                  "while m[0] < 9 { m[0] += 2 if m[0] + b > 9 { return } }"})
    expect_agree(replaced(R"(tl 1 program p
dim n
tensor X: f32[n, 24] readonly
tensor Y: f32[n, 24]
tensor M: i64[ceildiv(n, 16)]
kernel first grid (b: ceildiv(n, 16)) threads 128 {
  alloc x: shared f32[16, 24]
  alloc r: fragment f32[24]
  alloc m: local i64[1]
  m[0] = 0
  copy X[b * 16 :+ 16, 0 :+ 24] -> x
  parallel i, j in 16, 24 { Y[b * 16 + i, j] = x[15 - i, j] }
  $where
  reduce x -> r {kind=min, axis=0}
  parallel i, j in 16, 24 { Y[b * 16 + i, j] = r[j] }
  M[b] = m[0]
}
kernel second grid (b: n) {
  parallel j in 24 { Y[b, j] = Y[b, j] + 1.0f32 }
}
)",
                          {{"where", where}}),
                 launches_of_n({0, 17, 100}));
}

// Threads step through a loop that ends for each by itself; what they hand to each other stands behind.
TEST(Control, JumpsOfThreads) {
  for (const std::string jump : {"break", "continue"})
    expect_agree(replaced(R"(tl 1 program p
dim n
tensor X: i32[n, 128] readonly
tensor Y: i32[n, 128]
kernel k grid (b: n) threads 128 {
  alloc s: shared i32[128]
  threads warp, lane in 4, 32 {
    var v = X[b, warp * 32 + lane]
    serial t in 0 .. 6 {
      if v % 5 == 2 { $jump }
      v = v * 3 + cast(i32, t + lane)
    }
    v += shuffle_xor(v, 5)
    s[warp * 32 + lane] = v
    barrier
    switch v % 4 {
      case 0, 2 { v = s[(warp * 32 + lane + 33) % 128] }
      case 3 { v += s[lane] }
    }
    Y[b, warp * 32 + lane] = v
  }
}
)",
                          {{"jump", jump}}),
                 launches_of_n({1, 3}));
}

}  // namespace
}  // namespace tilegen::differential
