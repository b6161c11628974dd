// Loops that move elements of a tensor to a tile, at places that an index names: rows of tokens, of a table,
// columns; ahead of the loop's other work and not.
#include "matrix.h"

namespace tilegen::differential {
namespace {

std::vector<Launch> launches(std::initializer_list<std::array<int64_t, 3>> sizes) {
  std::vector<Launch> list;
  for (const auto& [m, e, k] : sizes) {
    Launch l;
    l.dims = {{"m", m}, {"e", e}, {"k", k}};
    l.seed = static_cast<uint64_t>(m * 100 + e + k);
    list.push_back(l);
  }
  return list;
}

// Indices of both signs, some of them beyond the tensor's end: there it reads 0.
constexpr const char* kRows = R"(tl 1 program rows
dim m
dim e
dim k $fact
tensor A: $t[m, k] readonly
tensor W: $t[k, 64] readonly
tensor P: $i[e] readonly
tensor C: f32[e, 64]

kernel rows grid (b: ceildiv(e, 32)) threads 128 {
  alloc ids: $s $i[32]
  alloc a: shared $t[32, 32]
  alloc w: shared $t[32, 64]
  alloc acc: fragment f32[32, 64]
  copy P[b * 32 :+ 32] -> ids
  fill acc, 0
  pipelined ko in 0 .. ceildiv(k, 32) stages $d {
    parallel i, j in 32, 32 {
      a[i, j] = A[cast(i64, $at), ko * 32 + j]
    }
    copy W[ko * 32 :+ 32, 0 :+ 64] -> w
    gemm a, w -> acc
  }
  copy acc -> C[b * 32 :+ 32, 0 :+ 64]
}
)";

TEST(Gathers, RowsOfAProduct) {
  for (const std::string type : {"f16", "f32", "bf16"})
    for (const std::string fact : {"divisible 8", ""})
      for (const auto& [scope, at] : std::vector<std::pair<std::string, std::string>>{
               {"shared", "ids[i]"}, {"shared", "ids[31 - i] - 1"}, {"shared", "P[b * 32 + i]"}}) {
        if (!long_run() && type != "f16" && at != "ids[i]") continue;
        for (const std::string stages : {"1", "3"})
          expect_agree(replaced(kRows, {{"t", type},
                                        {"i", at == "ids[i]" ? "i32" : "i64"},
                                        {"fact", fact},
                                        {"s", scope},
                                        {"at", at},
                                        {"d", stages}}),
                       launches({{50, 40, 64}, {3, 33, 72}, {9, 1, 200}, {1, 64, 8}}));
        if (HasFailure()) return;
      }
}

// Rows of a table added up, those of the next steps on their way; an index tile of the loop's own holds them
// back.
TEST(Gathers, RowsOfATable) {
  const char* text = R"(tl 1 program bags
dim m
dim e
dim k divisible 4
tensor T: $t[m, k] readonly
tensor P: i64[k, e] readonly
tensor S: $t[e, k]

kernel bags grid (b: ceildiv(e, 16), c: ceildiv(k, 32)) threads 64 {
  alloc x: shared $t[16, 32]
  alloc sum: fragment $t[16, 32]
  $alloc
  fill sum, 0
  pipelined s in 0 .. k stages 3 {
    $load
    parallel i, j in 16, 32 { x[i, j] = T[$row, c * 32 + j] }
    parallel i, j in 16, 32 { sum[i, j] += x[i, j] }
  }
  copy sum -> S[b * 16 :+ 16, c * 32 :+ 32]
}
)";
  struct Form {
    std::string alloc, load, row;
  };
  for (const Form& f :
       {Form{"", "", "P[s, b * 16 + i]"},
        Form{"alloc own: shared i64[16]", "copy P[s :+ 1, b * 16 :+ 16] -> own", "own[i] % 40"},
        Form{"", "", "(b * 16 + i * 7 + s) % 40"}})
    for (const std::string type : {"f32", "i32", "i8", "f64"}) {
      expect_agree(
          replaced(text,
                   {{"t", type}, {"alloc", f.alloc}, {"load", f.load}, {"row", f.row}}),
          launches({{40, 20, 36}, {7, 5, 4}, {100, 16, 64}}));
      if (HasFailure()) return;
    }
}

// What is no plain row: columns, a tile that lies across, parts of a tile, a scatter back.
TEST(Gathers, OtherPlaces) {
  const char* text = R"(tl 1 program places
dim m
dim e
dim k divisible 4
tensor T: $t[m, k] readonly
tensor P: i32[e] readonly
tensor Q: i32[e] readonly
tensor S: $t[5, e, k]

kernel places grid (b: ceildiv(e, 8)) threads 64 {
  alloc x: shared $t[8, 16]
  alloc y: shared $t[16, 8]
  alloc z: shared $t[8, 16]
  pipelined s in 0 .. ceildiv(k, 16) stages 2 {
    parallel i, j in 8, 16 { x[i, j] = T[cast(i64, P[b * 8 + i]), s * 16 + j] }
    parallel i, j in 8, 16 { y[j, i] = T[cast(i64, P[b * 8 + i]) + 1, s * 16 + j] }
    parallel i, j in 8, 16 { z[i, j] = T[b * 8 + i, cast(i64, P[b * 8 + i]) + s * 16 + j] }
    copy x -> S[0 :+ 1, b * 8 :+ 8, s * 16 :+ 16]
    parallel i, j in 8, 16 { S[1, b * 8 + i, s * 16 + j] = y[j, i] }
    copy z -> S[2 :+ 1, b * 8 :+ 8, s * 16 :+ 16]
    parallel i, j in 8, 8 { z[i, j + 8] = T[cast(i64, P[b * 8 + i]), s * 16 + j] }
    copy z -> S[3 :+ 1, b * 8 :+ 8, s * 16 :+ 16]
    parallel i, j in 8, 16 {
      S[4, (b * 8 + i) ^ 1, s * 16 + j] = x[i, j]
    }
  }
}
)";
  for (const std::string type : {"f32", "f16", "i8", "i64"}) {
    expect_agree(replaced(text, {{"t", type}}), launches({{40, 24, 36}, {7, 5, 4}, {3, 16, 64}}));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tilegen::differential
