// Views of tiles: reshaped, transposed and cut, of every memory, in copies, loops and products.
#include "matrix.h"

namespace tilegen::differential {
namespace {

std::vector<Launch> sizes(std::initializer_list<std::pair<int64_t, int64_t>> list) {
  std::vector<Launch> launches;
  for (const auto& [m, n] : list) {
    Launch l;
    l.dims = {{"m", m}, {"n", n}};
    l.seed = static_cast<uint64_t>(m * 100 + n);
    launches.push_back(l);
  }
  return launches;
}

// What a product has summed up, and what loops make, seen as rows of a box and as parts of columns.
TEST(Views, SumsOfProductsInOtherShapes) {
  const char* text = R"(tl 1 program sums
dim m
dim n
tensor A: f16[m, 32] readonly
tensor B: f16[n, 32] readonly
tensor P: f32[m] readonly
tensor Y: f32[m, n]
tensor Z: f32[ceildiv(m, 64) * 4, 16, n]

kernel k grid (by: ceildiv(m, 64), bx: ceildiv(n, $N)) threads 128 {
  alloc a: shared f16[64, 32]
  alloc b: shared f16[$N, 32]
  alloc c: fragment f32[64, $N]
  alloc s: $s f32[64]
  view rows = reshape(c, [4, 16, $N])
  view columns = reshape(c, [64, $N // 8, 8])
  view scale = reshape(s, [4, 16])
  view kn = transpose(b)
  copy A[by * 64 :+ 64, 0 :+ 32] -> a
  copy B[bx * $N :+ $N, 0 :+ 32] -> b
  copy P[by * 64 :+ 64] -> s
  fill c, 0
  gemm a, kn -> c
  parallel i, j, q in 4, 16, $N {
    rows[i, j, q] = rows[i, j, q] * scale[i, j] + cast(f32, i)
  }
  parallel i, q, e in 64, $N // 8, 8 {
    columns[i, q, e] = columns[i, q, e] - cast(f32, q * 3 + e)
  }
  copy rows -> Z[by * 4 :+ 4, 0 :+ 16, bx * $N :+ $N]
  parallel i, j in 64, $N { c[i, j] = c[i, j] + 1 }
  copy c -> Y[by * 64 :+ 64, bx * $N :+ $N]
}
)";
  for (const std::string scope : {"fragment", "shared"})
    for (const std::string n : {"32", "64"}) {
      expect_agree(replaced(text, {{"s", scope}, {"N", n}}), sizes({{64, 64}, {65, 33}, {1, 8}, {130, 100}}));
      if (HasFailure()) return;
    }
}

// Operations on elements of another type, of other widths and in other shapes, of every memory.
TEST(Views, OperandsOfOtherTypesAndShapes) {
  const char* text = R"(tl 1 program operands
dim m
tensor A: u16[m, 32] readonly
tensor B: $t[32, 32] readonly
tensor P: i32[m, 16] readonly
tensor Y: f32[m, 32]
tensor Z: u32[m]
tensor S: f32[m, 8]
tensor T: i32[m, 32]
tensor Q: u32[m, 16]
tensor R: i32[m, 64]

kernel k grid (by: ceildiv(m, 32)) threads $N {
  alloc a: $s u16[32, 32]
  alloc w: $s i16[32, 32]
  alloc b: $f $t[32, 32]
  alloc p: $s i32[32, 16]
  alloc c: fragment f32[1024]
  alloc most: fragment u32[32]
  alloc sums: $f f32[256]
  alloc run: fragment i32[512]
  alloc bytes: fragment i32[32, 64]
  view af = reinterpret(a, $t)
  view wf = reinterpret(w, $t)
  view cv = reshape(c, [32, 32])
  view parts = reshape(cv, [32, 8, 4])
  view into = reshape(sums, [32, 8])
  view pu = reinterpret(p, u32)
  view pairs = reinterpret(a, u32)
  view pb = reinterpret(p, i8)
  view rows = reshape(p, [64, 8])
  view runs = reshape(run, [64, 8])
  copy A[by * 32 :+ 32, 0 :+ 32] -> a
  copy B[0 :+ 32, 0 :+ 32] -> b
  copy P[by * 32 :+ 32, 0 :+ 16] -> p
  parallel i, j in 32, 32 { a[i, j] = bitcast(u16, cast($t, cast(f32, a[i, j] % 5) - 2)) }
  parallel i, j in 32, 32 { w[i, j] = bitcast(i16, b[j, i]) }
  fill c, 1
  gemm af, b -> cv
  serial n in 0 .. 2 { gemm af, wf -> cv {transpose_b} }
  reduce parts -> into {kind = sum, axis = 2}
  reduce parts -> into {kind = max, axis = 2, accumulate}
  reduce pu -> most {kind = max, axis = 1}
  atomic pu -> Q[by * 32 :+ 32, 0 :+ 16] {kind = xor}
  reduce pairs -> most {kind = xor, axis = 1, accumulate}
  scan rows -> runs {kind = sum, axis = 1}
  scan runs -> runs {kind = max, axis = 0, reverse}
  cumsum pb -> bytes {axis = 1}
  copy cv -> Y[by * 32 :+ 32, 0 :+ 32]
  copy most -> Z[by * 32 :+ 32]
  copy into -> S[by * 32 :+ 32, 0 :+ 8]
  parallel i, j in 32, 16 { T[by * 32 + i, j] = run[i * 16 + j] }
  copy bytes -> R[by * 32 :+ 32, 0 :+ 64]
}
)";
  for (const std::string type : {"f16", "bf16"})
    for (const std::string scope : {"shared", "fragment"})
      for (const std::string other : {"fragment", "shared"})
        for (const std::string threads : {"32", "128"}) {
          if (!long_run() && (type == "bf16") != (scope == other)) continue;
          expect_agree(replaced(text, {{"t", type}, {"s", scope}, {"f", other}, {"N", threads}}),
                       sizes({{32, 0}, {33, 0}, {1, 0}}));
          if (HasFailure()) return;
        }
}

// Elements of more bits are written in every memory, by stores that read them, copies and fills; beyond
// tensors nothing is. No part is a NaN.
TEST(Views, WrittenInOtherWidths) {
  const char* text = R"(tl 1 program widths
dim m
tensor X: u32[m, 8] readonly
tensor Y: $t[m, 8 * $n]
tensor Z: $t[m, 8 * $n]
tensor W: $t[m, 8 * $n]
kernel k grid (by: ceildiv(m, 16)) threads $N {
  alloc a: $s $t[16, 8 * $n]
  alloc b: $s $t[8 * $n, 16]
  alloc x: fragment u32[16, 8]
  view words = reinterpret(a, u32)
  view turned = transpose(b)
  view columns = reinterpret(turned, i32)
  view out = reinterpret(Z, u32)
  view half = out[by * 16 :+ 16, 2 :+ 4]
  copy X[by * 16 :+ 16, 0 :+ 8] -> x
  parallel i, j in 16, 8 { x[i, j] = x[i, j] & 3217014719u32 }
  copy x -> words
  parallel i, j in 16, 8 { words[i, j] = (words[i, j] * 2654435761u32 + words[i, j] // 65536u32) & 3217014719u32 }
  copy a -> Y[by * 16 :+ 16, 0 :+ 8 * $n]
  fill columns, 16909060
  parallel i, j in 16, 4 { columns[i, 2 * j] = bitcast(i32, x[i, j] ^ 50462976u32) }
  parallel i, j in 16, 8 * $n { W[by * 16 + i, j] = b[j, i] }
  fill half, 7
  parallel i in 16 { if by * 16 + i < m { out[by * 16 + i, 0] = x[i, 0]   out[by * 16 + i, 7] = x[i, 7] } }
}
)";
  for (const auto& [type, parts] : {std::pair("u8", "4"), {"f16", "2"}, {"i16", "2"}, {"e4m3", "4"}})
    for (const std::string scope : {"shared", "fragment"})
      for (const std::string threads : {"32", "128"}) {
        if (!long_run() && (scope == "shared") != (threads == "32")) continue;
        expect_agree(replaced(text, {{"t", type}, {"n", parts}, {"s", scope}, {"N", threads}}),
                     sizes({{32, 0}, {33, 0}, {1, 0}}));
        if (HasFailure()) return;
      }
}

// Elements of fewer bits are written in every memory: beside each other, in loops of an iteration, under
// conditions and alone; packed ones, and parts of them.
TEST(Views, WrittenInPartsOfElements) {
  const char* text = R"(tl 1 program parts
dim m
tensor X: u8[m, 64] readonly
tensor Y: $t[m, 128 // $n]
tensor Z: $t[m, 64 // $n]
tensor W: u4[m, 64]
tensor S: u16[m, 16]
tensor V: $t[m, 64 // $n]
kernel k grid (by: ceildiv(m, 16)) threads $N {
  alloc a: $s $t[16, 128 // $n]
  alloc b: $s $t[16, 64 // $n]
  alloc w: shared u4[16, 64]
  view parts = reinterpret(a, u8)
  view out = reinterpret(Z, u8)
  view words = reinterpret(w, u32)
  view crumbs = reinterpret(S, i2)
  view quarters = reinterpret(b, u4)
  parallel i, j in 16, 64 { parts[i, 64 + j] = X[by * 16 + i, j] + 1 }
  copy X[by * 16 :+ 16, 0 :+ 64] -> parts[0 :+ 16, 0 :+ 64]
  parallel i, j in 16, 64 { if j % 3 == 1 { parts[i, j] = parts[i, j + 64] * 3 } }
  parallel i in 16 { parts[i, 77] = 9 }
  serial k in 2 .. 7 { parallel i, j in 16, 2 { parts[i, j * 32 + k] = cast(u8, k + j) } }
  copy a -> Y[by * 16 :+ 16, 0 :+ 128 // $n]
  parallel i, j in 16, 64 // $n { unroll q in 0 .. $n {
    let at = $n * j
    out[by * 16 + i, at + q] = X[by * 16 + i, at + $n - 1 - q]
  } }
  fill quarters, 5
  parallel i, j in 16, 128 { quarters[i, j] = cast(u4, X[by * 16 + i, j // 2] >> cast(u8, j % 2 * 3)) }
  parallel i, j in 16, 8 { words[i, j] = cast(u32, X[by * 16 + i, j * 8]) * 16843009u32 }
  copy w -> W[by * 16 :+ 16, 0 :+ 64]
  parallel i, j in 16, 128 { crumbs[by * 16 + i, j] = cast(i2, X[by * 16 + i, j // 2]) }
  parallel i, j in 16, 64 // $n { if by * 16 + i < m { V[by * 16 + i, j] = b[i, j] } }
}
)";
  for (const auto& [type, parts] : {std::pair("u32", "4"), {"i16", "2"}, {"u64", "8"}})
    for (const std::string scope : {"shared", "fragment"})
      for (const std::string threads : {"32", "128"}) {
        if (!long_run() && (scope == "shared") != (threads == "32")) continue;
        const std::string program = replaced(text, {{"t", type}, {"n", parts}, {"s", scope}, {"N", threads}});
        expect_agree(program, sizes({{32, 0}, {33, 0}, {1, 0}}));
        if (HasFailure()) return;
      }
}

// Bits are exchanged and combined by operations of another type of as many.
TEST(Views, AtomicsOfOtherTypes) {
  for (const auto& [type, seen] : {std::pair("i32", "u32"), {"u32", "i32"}, {"u64", "i64"}, {"i16", "u16"}})
    expect_agree(replaced(R"(tl 1 program p
dim m
tensor X: $v[m] readonly
tensor Y: $t[32]
tensor Z: f32[m]
tensor Old: $v[m]
tensor Bits: u32[m]
kernel k grid (b: ceildiv(m, 64)) threads 64 {
  alloc s: shared $t[64]
  alloc x: fragment $v[64]
  view y = reinterpret(Y, $v)
  view z = reinterpret(Z, u32)
  view sv = reinterpret(s, $v)
  fill s, 1
  copy X[b * 64 :+ 64] -> x
  parallel i in 64 {
    atomic_add(y[i % 16], x[i])
    atomic_xor(y[i % 8 + 16], x[i])
    let before = atomic_or(sv[i], x[i])
    let again = atomic_compare_exchange(sv[i], before, x[i])
    Old[b * 64 + i] = before ^ again
    let bits = atomic_exchange(z[b * 64 + i], 1065353216)
    Bits[b * 64 + i] = bits
  }
  atomic sv -> y[24] {kind = and}
}
)",
                          {{"t", type}, {"v", seen}}),
                 sizes({{128, 0}, {70, 0}}));
}

TEST(Views, OfEveryMemory) {
  const char* text = R"(tl 1 program views
dim m
dim n
tensor X: $t[m, n] readonly
tensor Y: $t[n, m]
tensor Z: $t[m, n]
tensor U: $t[ceildiv(m, 12), ceildiv(n, 8), 4]

kernel k grid (by: ceildiv(m, 12), bx: ceildiv(n, 8)) {
  alloc t: $s $t[12, 8]
  alloc u: $f $t[3, 4, 8]
  alloc v: $f $t[96]
  view t3 = reshape(t, [3, 4, 8])
  view tt = transpose(t)
  view u2 = reshape(u, [12, 8])
  view flat = reshape(u2, [96])
  view swapped = transpose(u, [1, 0, 2])
  view pairs = reshape(v, [48, 2])
  copy X[by * 12 :+ 12, bx * 8 :+ 8] -> t
  copy t3 -> u
  copy tt -> Y[bx * 8 :+ 8, by * 12 :+ 12]
  parallel i, j, q in 4, 3, 8 {
    if i % 2 == 0 { swapped[i, j, q] = t3[j, i, 7 - q] }
  }
  copy flat -> v
  parallel p in 48 {
    let first = pairs[p, 0]
    pairs[p, 0] = pairs[p, 1]
    pairs[p, 1] = first
  }
  serial r in 0 .. 3 {
    view row = u[r :+ 1, 0 :+ 4, 0 :+ 8]
    view part = t[r * 4 :+ 2, 2 :+ 4]
    fill part, 1
    if r == 1 { copy row -> v[32 :+ 32] }
  }
  copy v[0 :+ 4] -> U[by :+ 1, bx :+ 1, 0 :+ 4]
  copy u2 -> Z[by * 12 :+ 12, bx * 8 :+ 8]
  copy tt[2 :+ 4, 0 :+ 12] -> Y[bx * 8 + 2 :+ 4, by * 12 :+ 12]
}
)";
  for (const std::string type : {"f32", "f16", "i8", "f64"})
    for (const std::string scope : {"shared", "fragment"})
      for (const std::string other : {"fragment", "shared"}) {
        if (!long_run() && type != "f32" && scope == other) continue;
        expect_agree(replaced(text, {{"t", type}, {"s", scope}, {"f", other}}),
                     sizes({{12, 8}, {25, 17}, {1, 1}, {40, 64}}));
        if (HasFailure()) return;
      }
}

}  // namespace
}  // namespace tilegen::differential
