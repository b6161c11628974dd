// Loops of every kind, nested pipelines, several kernels, local buffers.
#include <algorithm>
#include <array>

#include "matrix.h"

namespace tilegen::differential {
namespace {

TEST(Loops, EveryKindWithAnyTripCount) {
  const char* text = R"(tl 1 program loops
dim first
dim trips
tensor X: f32[64, 48] readonly
tensor Y: f32[64, 48]
tensor N: i32[8]

kernel k grid (b: 1) {
  alloc x: shared f32[16, 48]
  alloc y: fragment f32[16, 48]
  alloc n: local i32[4]
  fill y, 0.0f32
  fill n, 0i32
  $kind v in first :+ trips {
    copy X[v * 16 - 8 :+ 16, v :+ 48] -> x
    parallel i, j in 16, 48 {
      y[i, j] = y[i, j] + x[i, j]
    }
    n[0] = n[0] + 1i32
    unroll u in -1 .. 2 {
      $kind w in 0 .. v % 3 {
        n[1] = n[1] + cast(i32, u * w + v)
        pipelined z in v .. v + w stages 3 {
          n[2] = n[2] ^ cast(i32, z)
        }
      }
    }
    vectorized u in 0 .. 4 {
      N[u] = N[u] + n[u]
    }
    if n[0] % 2i32 == 0i32 {
      fill x, 1.0f32
    } else {
      copy y -> x
    }
    copy x -> Y[v * 16 :+ 16, 0 :+ 48]
  }
  N[4] = n[0]
  N[5] = n[1]
  N[6] = n[2]
}
)";
  for (const std::string kind : {"serial", "pipelined"}) {
    std::vector<Launch> launches;
    for (const auto& [first, trips] : {std::pair<int64_t, int64_t>{0, 0}, {0, 1}, {1, 2}, {0, 4}, {3, 3}}) {
      Launch l;
      l.dims = {{"first", first}, {"trips", trips}};
      launches.push_back(l);
    }
    expect_agree(replaced(text, {{"kind", kind}}), launches);
  }
}

TEST(Loops, NestedPipelines) {
  const char* text = R"(tl 1 program nested
dim n
dim k
tensor A: f16[n, k] readonly
tensor B: f16[k, 40] readonly
tensor C: f32[n, 40]
tensor R: f32[n]

kernel first grid (b: ceildiv(n, 32)) {
  alloc a: shared f16[16, 24]
  alloc bt: shared f16[24, 40]
  alloc c: fragment f32[16, 40]
  alloc r: fragment f32[16]
  pipelined half in 0 .. 2 stages $outer {
    fill c, 0.0f32
    pipelined ko in 0 .. ceildiv(k, 24) stages $inner {
      copy A[b * 32 + half * 16 :+ 16, ko * 24 :+ 24] -> a
      copy B[ko * 24 :+ 24, 0 :+ 40] -> bt
      gemm a, bt -> c
    }
    reduce c -> r {kind=absmax, axis=1}
    copy c -> C[b * 32 + half * 16 :+ 16, 0 :+ 40]
    copy r -> R[b * 32 + half * 16 :+ 16]
  }
}

kernel second grid (b: n) {
  parallel j in 40 {
    C[b, j] = C[b, j] + R[b] * 2.0f32
  }
}
)";
  for (const auto& [outer, inner] : {std::pair<int, int>{1, 1}, {2, 3}}) {
    std::vector<Launch> launches;
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{0, 5}, {1, 0}, {33, 25}, {100, 70}}) {
      Launch l;
      l.dims = {{"n", n}, {"k", k}};
      launches.push_back(l);
    }
    expect_agree(replaced(text, {{"outer", std::to_string(outer)}, {"inner", std::to_string(inner)}}),
                 launches);
  }
}

TEST(Kernels, RunInOrderOverGridsOfThreeDimensions) {
  const char* text = R"(tl 1 program kernels
dim a
dim b
dim c
scalar s: i32
tensor X: i32[a, b, c]
tensor Y: i32[c, a, b]
tensor S: i32[a]

kernel one grid (i: a, j: ceildiv(b, 3), l: ceildiv(c, 20)) {
  alloc t: fragment i32[3, 20]
  copy X[i :+ 1, j * 3 :+ 3, l * 20 :+ 20] -> t
  parallel u, v in 3, 20 {
    t[u, v] = t[u, v] * s + cast(i32, i * 100 + j * 10 + l)
  }
  copy t -> X[i :+ 1, j * 3 :+ 3, l * 20 :+ 20]
}

kernel two grid (l: c, i: a) {
  parallel u in 64 {
    Y[l, i, u] = X[i, u, l]
  }
}

kernel three grid (i: a) {
  alloc row: local i32[1]
  alloc t: shared i32[8, 8]
  alloc r: fragment i32[8]
  alloc q: fragment i32[1]
  fill row, 0i32
  serial l in 0 .. ceildiv(c, 8) {
    serial j in 0 .. ceildiv(b, 8) {
      copy X[i :+ 1, j * 8 :+ 8, l * 8 :+ 8] -> t
      reduce t -> r {axis=0}
      reduce r -> q
      copy q -> S[i :+ 1]
      row[0] = row[0] + S[i]
    }
  }
  S[i] = row[0]
}
)";
  std::vector<Launch> launches;
  for (const auto& d : {std::array<int64_t, 3>{2, 7, 45}, {1, 1, 1}, {3, 0, 5}, {0, 3, 3}, {4, 64, 20}}) {
    Launch l;
    l.dims = {{"a", d[0]}, {"b", d[1]}, {"c", d[2]}};
    l.seed = static_cast<uint64_t>(d[2]);
    launches.push_back(l);
  }
  expect_agree(text, launches);
}

TEST(Local, BuffersOfEveryType) {
  for (DType t : kStored)
    expect_agree(replaced(R"(tl 1 program locals
scalar s: $t
tensor X: $t[9] readonly
tensor Y: $t[6, 9]

kernel k grid (b: 6) {
  alloc a: local $t[9]
  alloc c: local $t[3, 3]
  fill a, s
  copy X[b :+ 5] -> a[2 :+ 5]
  fill c, s
  serial i in 0 .. 3 {
    c[i, 2 - i] = a[i * 2 + 1]
    if cast(bool, c[i, 2 - i]) {
      a[i] = c[0, 2]
    }
  }
  vectorized v in 0 .. 3 {
    a[v + 6] = c[v, v]
  }
  copy a -> Y[b :+ 1, 0 :+ 9]
}
)",
                          {{"t", ir::dtype_name(t)}}),
                 seeds({1, 2}));
}

}  // namespace
}  // namespace tilegen::differential
