// Products of operands that threads write to shared memory: elements that are made of others or unpacked on
// the way.
#include <algorithm>
#include <tuple>

#include "written_operand.h"

namespace tilegen::differential {
namespace {

// C = A B over tiles of k, operands made of what `fill` copies.
struct Written {
  std::string a = "f16", b = "f16", sum = "f32", tensor_a = "f16[m, k]", tensor_b = "f16[n, k]",
              attrs = " {transpose_b}";
  std::string allocs, fill;
  std::string shape_a = "$M, $K", shape_b = "$N, $K", begin = "fill c, $zero";
  int64_t m = 128, n = 64, k = 64;
  int threads = 256;
};

std::string text_of(const Written& w) {
  return replaced(R"(tl 1 program gemm
dim m
dim n
dim k
tensor A: $ta readonly
tensor B: $tb readonly
tensor C: $sum[m, n]
kernel gemm grid (by: ceildiv(m, $M), bx: ceildiv(n, $N)) threads $T {
  alloc a: shared $A[$sa]
  alloc b: shared $B[$sb]
  alloc c: fragment $sum[$M, $N]
  $allocs
  $begin
  pipelined ko in 0 .. ceildiv(k, $K) stages 2 {
    $fill
    gemm a, b -> c$attrs
  }
  copy c -> C[by * $M :+ $M, bx * $N :+ $N]
}
)",
                  {{"ta", w.tensor_a},
                   {"tb", w.tensor_b},
                   {"sa", w.shape_a},
                   {"sb", w.shape_b},
                   {"sum", w.sum},
                   {"allocs", w.allocs},
                   {"begin", w.begin},
                   {"fill", w.fill},
                   {"attrs", w.attrs},
                   {"A", w.a},
                   {"B", w.b},
                   {"zero", w.sum == "i32" ? "0i32" : "0.0f32"},
                   {"M", std::to_string(w.m)},
                   {"N", std::to_string(w.n)},
                   {"K", std::to_string(w.k)},
                   {"T", std::to_string(w.threads)}});
}

// Whole numbers, whose sums every type holds: 0, 1, 2, 3 and 7 steps, ragged tiles.
void run(const Written& w, const std::string& written, On on = On::hopper) {
  const std::string text = text_of(w);
  if (!take_case) {
    ASSERT_EQ(products_refusal(text, written), "") << text;
  }
  Subject subject(text, covering(targets(on), text));
  ASSERT_EQ(subject.invalid(), "") << text;
  uint64_t seed = 1;
  for (const auto& [m, n, steps] : {std::array<int64_t, 3>{2 * w.m, 2 * w.n, 2},
                                    {w.m + 8, w.n - 8, 7},
                                    {w.m - 1, w.n, 1},
                                    {3, 2 * w.n + 16, 3},
                                    {w.m, w.n, 0}}) {
    Launch l;
    l.dims = {{"m", m}, {"n", n}, {"k", steps * w.k - (steps > 2 ? 16 : 0)}};
    l.seed = seed++;
    l.magnitude = 4;
    expect_agree(subject, text, l);
    if (testing::Test::HasFailure()) return;
  }
}

constexpr const char* kCopyA = "copy A[by * $M :+ $M, ko * $K :+ $K] -> a";
constexpr const char* kCopyB = "copy B[bx * $N :+ $N, ko * $K :+ $K] -> b";

Written dequantised(int64_t m, int threads) {
  Written w;
  w.tensor_b = "i8[n, k]";
  w.m = m, w.threads = threads;
  w.allocs = "alloc raw: shared i8[$N, $K]";
  w.fill = std::string(kCopyA) + R"(
    copy B[bx * $N :+ $N, ko * $K :+ $K] -> raw
    parallel i, j in $N, $K {
      b[i, j] = cast($B, raw[i, j])
    })";
  return w;
}

TEST(ThreadWrittenOperand, SecondOperandOfBytes) {
  run(dequantised(128, 256), kByAll, On::all);
  run(dequantised(64, 128), kByWarpgroup);
  Written w = dequantised(128, 256);
  w.a = w.b = "bf16";
  w.tensor_a = "bf16[m, k]";
  w.n = 128;
  run(w, kByAll);
}

// Along n, as it lies in the tensor.
TEST(ThreadWrittenOperand, SecondOperandOfBytesInRows) {
  Written w = dequantised(128, 256);
  w.tensor_b = "i8[k, n]";
  w.shape_b = "$K, $N";
  w.attrs = "";
  w.allocs = "alloc raw: shared i8[$K, $N]";
  w.fill = std::string(kCopyA) + R"(
    copy B[ko * $K :+ $K, bx * $N :+ $N] -> raw
    parallel i, j in $K, $N {
      b[i, j] = cast(f16, raw[i, j])
    })";
  run(w, kByAll);
}

// Two numbers of four bits in a byte.
TEST(ThreadWrittenOperand, SecondOperandOfHalfBytes) {
  for (const int threads : {128, 256}) {
    Written w = dequantised(threads / 2, threads);
    w.tensor_b = "u8[n, k // 2]";
    w.allocs = "alloc raw: shared u8[$N, 32]";
    w.fill = std::string(kCopyA) + R"(
    copy B[bx * $N :+ $N, ko * 32 :+ 32] -> raw
    parallel i, j in $N, $K {
      b[i, j] = cast(f16, ((cast(i32, raw[i, j // 2]) >> cast(i32, j % 2 * 4)) & 15i32) - 8i32)
    })";
    run(w, threads == 128 ? kByWarpgroup : kByAll);
    if (HasFailure()) return;
  }
}

TEST(ThreadWrittenOperand, FirstOperandOfAFunction) {
  Written w;
  w.allocs = "alloc raw: shared f16[$M, $K]";
  w.fill = std::string(kCopyB) + R"(
    copy A[by * $M :+ $M, ko * $K :+ $K] -> raw
    parallel i, j in $M, $K {
      a[i, j] = max(raw[i, j], 0.0f16) * 0.5f16
    })";
  run(w, kByAll, On::all);
  // In place.
  w.allocs = "";
  w.fill = std::string(kCopyB) + "\n    " + kCopyA + R"(
    parallel i, j in $M, $K {
      a[i, j] = max(a[i, j], 0.0f16)
    })";
  run(w, kByAll);
  // Both.
  w.fill = std::string(kCopyA) + R"(
    copy B[bx * $N :+ $N, ko * $K :+ $K] -> b
    parallel i, j in $M, $K {
      a[i, j] = max(a[i, j], 0.0f16)
    })";
  w.m = 64, w.threads = 128;
  run(w, kByAll);
}

// A copy that casts is the threads'.
TEST(ThreadWrittenOperand, CopiesThatCast) {
  Written w;
  w.tensor_a = "f32[m, k]";
  w.fill = std::string(kCopyA) + "\n    " + kCopyB;
  run(w, kByAll);
}

// Tiles that threads alone read: scales of groups, in a branch, beside products that lag.
TEST(ThreadWrittenOperand, TilesThatThreadsRead) {
  Written w = dequantised(128, 256);
  w.allocs += "\n  alloc s: shared f32[$N]";
  w.tensor_b += " readonly\ntensor S: f32[ceildiv(k, $K), n]";
  w.fill = std::string(kCopyA) + R"(
    copy B[bx * $N :+ $N, ko * $K :+ $K] -> raw
    copy S[ko :+ 1, bx * $N :+ $N] -> s
    parallel i, j in $N, $K {
      b[i, j] = cast($B, cast(f32, raw[i, j]) * s[i])
    })";
  run(w, kByAll);
  if (HasFailure()) return;
  w = Written();
  w.tensor_b += " readonly\ntensor V: f16[k, n] readonly\ntensor X: f16[m, k]";
  w.shape_a = "$M, $K", w.shape_b = "$K, $N", w.attrs = "";
  w.allocs = R"(alloc q: shared f16[$M, $K]
  alloc r: shared f16[$K, $K]
  alloc x: shared f16[$M, $K]
  alloc p: fragment f32[$M, $K])";
  w.tensor_a = "f16[m, k]",
  w.tensor_b = "f16[k, 64] readonly\ntensor V: f16[k, n] readonly\ntensor X: f16[m, k]";
  w.begin = "fill c, $zero\n  copy A[by * $M :+ $M, 0 :+ $K] -> q";
  w.fill = R"(copy B[ko * $K :+ $K, 0 :+ $K] -> r
    copy X[by * $M :+ $M, ko * $K :+ $K] -> x
    gemm q, r -> p {transpose_b, clear}
    if ko % 2 == 0 {
      parallel i, j in $M, $K {
        p[i, j] = max(p[i, j], -8.0f32) + cast(f32, x[i, j])
      }
    }
    parallel i, j in $M, $K {
      a[i, j] = cast(f16, min(p[i, j], 8.0f32))
    }
    copy V[ko * $K :+ $K, bx * $N :+ $N] -> b)";
  run(w, kByWarpgroup);
}

// Instructions that read along k only: as the tile lies, and turned by the product.
TEST(ThreadWrittenOperand, BytesThatThreadsWrite) {
  Written w;
  w.a = w.b = "e4m3";
  w.tensor_a = "f16[m, k]", w.tensor_b = "e4m3[n, k]";
  w.k = 128;
  w.fill = std::string(kCopyA) + "\n    " + kCopyB;
  run(w, kByAll);
  w.a = w.b = "i8", w.sum = "i32";
  w.tensor_a = "i8[m, k]", w.tensor_b = "i8[n, k]";
  w.allocs = "alloc raw: shared i8[$M, $K]";
  w.fill = std::string(kCopyB) + R"(
    copy A[by * $M :+ $M, ko * $K :+ $K] -> raw
    parallel i, j in $M, $K {
      a[i, j] = raw[i, j] + 1i8
    })";
  run(w, kByAll);
}

// Written before the loop as well as in it, by some of the iterations, and in parts.
TEST(ThreadWrittenOperand, PlacesOfWriters) {
  Written w;
  w.begin = "fill c, $zero\n  fill a, 1.0f16";
  w.fill = std::string(kCopyB) + R"(
    if ko % 2 == 1 {
      parallel i, j in $M, $K {
        a[i, j] = cast(f16, i % 4) - cast(f16, ko)
      }
    })";
  run(w, kByAll);
  w.fill = std::string(kCopyB) + R"(
    parallel i, j in 64, $K {
      a[i, j] = cast(f16, i % 4 + ko)
    }
    parallel i, j in 64, $K {
      a[i + 64, j] = a[i, j] + 1.0f16
    })";
  run(w, kByAll);
}

}  // namespace
}  // namespace tilegen::differential
