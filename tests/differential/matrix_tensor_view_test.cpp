// Views of tensors: heads of rows, batches as one matrix, transposed, ragged groups, other types, packed;
// views of views; sizes that end within tiles.
#include "matrix.h"

namespace tilegen::differential {
namespace {

Launch sizes(std::initializer_list<std::pair<const std::string, int64_t>> dims, uint64_t seed) {
  Launch l;
  l.dims = dims;
  l.seed = seed;
  return l;
}

TEST(TensorViews, HeadsInProducts) {
  const char* text = R"(tl 1 program heads
dim m
dim n
dim h
tensor Q: f16[m, h * $D] readonly
tensor K: f16[n, h * $D] readonly
tensor S: f32[m, h * n]

kernel k grid (by: ceildiv(m, 64), bx: ceildiv(n, 32), g: h) threads 128 {
  alloc q: shared f16[64, 32]
  alloc k: shared f16[32, 32]
  alloc s: fragment f32[64, 32]
  view qs = reshape(Q, [m, h, $D])
  view ks = reshape(K, [n, h, $D])
  view scores = reshape(S, [m, h, n])
  fill s, 0
  pipelined ko in 0 .. $D // 32 {
    copy qs[by * 64 :+ 64, g :+ 1, ko * 32 :+ 32] -> q
    copy ks[bx * 32 :+ 32, g :+ 1, ko * 32 :+ 32] -> k
    gemm q, k -> s {transpose_b}
  }
  copy s -> scores[by * 64 :+ 64, g :+ 1, bx * 32 :+ 32]
}
)";
  for (const std::string d : {"32", "64"}) {
    expect_agree(replaced(text, {{"D", d}}),
                 {sizes({{"m", 64}, {"n", 32}, {"h", 2}}, 1), sizes({{"m", 70}, {"n", 37}, {"h", 3}}, 2),
                  sizes({{"m", 1}, {"n", 5}, {"h", 1}}, 3)});
    if (HasFailure()) return;
  }
}

// Rows of a batch as one matrix, whose tiles reach over the ends of its parts; read and written.
TEST(TensorViews, BatchesAsOne) {
  expect_agree(
      R"(tl 1 program batches
dim b
dim s
tensor X: f32[b, s, 24] readonly
tensor Y: f32[b, 24, s]
tensor Z: f32[b * s, 4, 6]

kernel k grid (t: ceildiv(b * s, 16)) threads 64 {
  alloc x: shared f32[16, 24]
  view rows = reshape(X, [b * s, 24])
  view columns = transpose(Y, [0, 2, 1])
  view of_columns = reshape(columns, [b * s, 24])
  view flat = reshape(Z, [b * s, 24])
  copy rows[t * 16 :+ 16, 0 :+ 24] -> x
  parallel i, j in 16, 24 { of_columns[t * 16 + i, j] = x[i, j] + rows[t * 16 + i + 1, j - 1] }
  copy x -> flat[t * 16 :+ 16, 0 :+ 24]
}
)",
      {sizes({{"b", 3}, {"s", 10}}, 1), sizes({{"b", 2}, {"s", 16}}, 2), sizes({{"b", 5}, {"s", 1}}, 3)});
}

// Groups of rows that a tensor tells; what a tile has beyond its group is another's.
TEST(TensorViews, RaggedGroups) {
  std::vector<Launch> launches;
  for (const std::vector<int64_t>& first :
       std::vector<std::vector<int64_t>>{{0, 5, 5, 41}, {3, 20, 36, 41}, {0, 41, 41, 41}}) {
    launches.push_back(sizes({{"m", 41}}, static_cast<uint64_t>(first[1])));
    launches.back().whole["First"] = first;
  }
  expect_agree(R"(tl 1 program groups
dim m
tensor X: f32[m, 32] readonly
tensor First: i64[4] readonly
tensor Sum: f32[3, 32]
tensor Y: f32[m, 32]

kernel k grid (g: 3) threads 64 {
  alloc x: fragment f32[16, 32]
  alloc s: fragment f32[32]
  let first = First[g]
  let rows = First[g + 1] - first
  view group = X[first :+ rows, 0 :+ 32]
  view out = Y[first :+ rows, 0 :+ 32]
  fill s, 0
  serial t in 0 .. ceildiv(rows, 16) {
    copy group[t * 16 :+ 16, 0 :+ 32] -> x
    reduce x -> s {axis = 0, accumulate}
    parallel i, j in 16, 32 { x[i, j] = x[i, j] * 2 + group[t * 16 + i - 1, j] }
    copy x -> out[t * 16 :+ 16, 0 :+ 32]
  }
  copy s -> Sum[g :+ 1, 0 :+ 32]
}
)",
               launches);
}

// Indices beyond the view's extents are outside, whatever lies there in the tensor; atomic operations too.
TEST(TensorViews, BeyondTheirExtents) {
  expect_agree(R"(tl 1 program beyond
dim m
tensor X: i32[m, 24] readonly
tensor Y: i32[m, 24]
tensor Old: i32[m, 4, 8]

kernel k grid (b: m) threads 64 {
  alloc old: shared i32[4, 8]
  view x = reshape(X, [m, 4, 6])
  view y = reshape(Y, [m, 3, 8])
  view part = y[0 :+ m, 1 :+ 2, 2 :+ 4]
  parallel i, j in 4, 8 {
    let was = atomic_add(part[b, i, j - 1], x[b, i, j - 1])
    old[i, j] = was
  }
  copy old -> Old[b :+ 1, 0 :+ 4, 0 :+ 8]
}
)",
               {sizes({{"m", 1}}, 1), sizes({{"m", 9}}, 2)});
}

// Which elements of its tensor a view's are, and that it has no others.
TEST(TensorViews, AssertTheirElements) {
  expect_agree(R"(tl 1 program elements
dim m
dim h
dim s
tensor Q: f32[m, h * 32] readonly
tensor B: f32[3, s, 8] readonly
tensor C: f32[m, 24] readonly
kernel k grid (r: ceildiv(m, 16), g: h) threads 64 {
  alloc q: shared f32[16, 32]
  view qs = reshape(Q, [m, h, 32])
  copy qs[r * 16 :+ 16, g :+ 1, 0 :+ 32] -> q
  parallel i, j in 16, 32 {
    assert q[i, j] == select(r * 16 + i < m, Q[r * 16 + i, g * 32 + j], 0), "heads"
    assert qs[r * 16 + i, g + 1, j] == select(g + 1 < h, Q[r * 16 + i, (g + 1) * 32 + j], 0), "next head"
    assert qs[r * 16 + i, g - 1, j] == select(g > 0, Q[r * 16 + i, (g - 1) * 32 + j], 0), "last head"
    assert qs[r * 16 + i, g, j + 1] == select(j < 31, Q[r * 16 + i, g * 32 + j + 1], 0), "beyond head"
  }
  view rows = reshape(B, [3 * s, 8])
  view t = transpose(B, [1, 2, 0])
  parallel i, j in 16, 8 {
    assert rows[i, j] == B[i // s, i % s, j], "rows"
    assert t[i, j, 2] == B[2, i, j], "turned"
    assert rows[i, j + 1] == select(j < 7, B[i // s, i % s, j + 1], 0), "beyond row"
  }
  view part = C[2 :+ 5, 4 :+ 12]
  parallel i, j in 16, 24 {
    assert part[i - 1, j - 2] == select(i >= 1 and i < 6 and j >= 2 and j < 14, C[i + 1, j + 2], 0), "part"
  }
  view odd = reshape(C, [m, 2, 3, 4])
  parallel i, a, b, c in 4, 4, 4, 8 {
    assert odd[i, a - 1, b - 1, c - 1] == select(a >= 1 and a < 3 and b >= 1 and b < 4 and c >= 1 and c < 5, C[i, (a - 1) * 12 + (b - 1) * 4 + c - 1], 0), "odd"
  }
}
)",
               {sizes({{"m", 5}, {"h", 3}, {"s", 5}}, 1), sizes({{"m", 33}, {"h", 1}, {"s", 1}}, 2)});
}

TEST(TensorViews, BitsAndPackedTypes) {
  expect_agree(R"(tl 1 program bits
dim m
tensor X: f16[m, 32] readonly
tensor W: u4[m, 64] readonly
tensor Y: u16[m, 32]
tensor Z: i32[64, m]

kernel k grid (b: ceildiv(m, 16)) threads 64 {
  alloc x: shared u16[16, 32]
  view u = reinterpret(X, u16)
  view i4s = reinterpret(W, i4)
  view by_half = reshape(i4s, [m, 2, 32])
  copy u[b * 16 :+ 16, 0 :+ 32] -> x
  copy x -> Y[b * 16 :+ 16, 0 :+ 32]
  view columns = transpose(Z)
  parallel i, h, j in 16, 2, 32 { columns[b * 16 + i, h * 32 + j] = cast(i32, by_half[b * 16 + i, h, j]) }
}
)",
               {sizes({{"m", 16}}, 1), sizes({{"m", 21}}, 2)});
}

}  // namespace
}  // namespace tilegen::differential
