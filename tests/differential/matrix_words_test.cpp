// Words that stand beside statements: how warps share a product, labels and prints, scales of blocks,
// cycles of an instruction of the program's own.
#include "matrix.h"

namespace tilegen::differential {
namespace {

std::vector<Launch> launches(std::initializer_list<int64_t> rows) {
  std::vector<Launch> all;
  for (const int64_t m : rows) {
    Launch l = seeds({all.size() + 1}).front();
    l.dims = {{"m", m}};
    all.push_back(std::move(l));
  }
  return all;
}

TEST(Words, WarpsShareProductsByPolicies) {
  const char* const text = R"(tl 1 program p
dim m
tensor A: f16[m, 64] readonly
tensor B: f16[64, 32] readonly
tensor C: f32[2, m, 32]
kernel k grid (b: ceildiv(m, 64)) threads $threads {
  alloc a: shared f16[64, 64]
  alloc values: shared f16[64, 32]
  alloc places: shared u8[64, 8]
  alloc Bs: shared f16[64, 32]
  alloc whole: fragment f32[64, 32]
  alloc half: fragment f32[64, 32]
  copy A[b * 64, 0] -> a
  copy B -> Bs
  compress a -> values, places
  fill whole, 3
  fill half, 5
  gemm a, Bs -> whole {policy = $policy$clear}
  gemm_sparse values, Bs, places -> half {policy = $policy$clear}
  copy whole -> C[0 :+ 1, b * 64 :+ 64, 0 :+ 32]
  copy half -> C[1 :+ 1, b * 64 :+ 64, 0 :+ 32]
}
)";
  for (const std::string policy : {"square", "full_row", "full_col"})
    for (const std::string clear : {"", ", clear"})
      for (const std::string threads : {"64", "128"})
        expect_agree(replaced(text, {{"threads", threads}, {"policy", policy}, {"clear", clear}}),
                     launches({64, 37}));
}

TEST(Words, LabelledStatementsTellWhatTheyCameTo) {
  for (const std::string scope : {"shared", "fragment"})
    expect_agree(replaced(R"(tl 1 program p
dim m
tensor X: i32[m, 8] readonly
tensor Y: i32[m]
kernel k grid (b: ceildiv(m, 4)) threads 64 {
  alloc x: $scope i32[4, 8]
  alloc s: fragment i32[4]
  label load: copy X[b * 4, 0] -> x
  label sum: reduce x -> s {axis = 1}
  print "sums" of s
  label rows: serial r in 0 .. 2 {
    parallel i in 4 {
      print "row", s[i], i + r
      assert s[i] // 65536 >= -65536, "$scope"
    }
  }
  label store: copy s -> Y[b * 4]
}
)",
                          {{"scope", scope}}),
                 launches({9, 4}));
}

TEST(Words, ScalesOfBlocks) {
  for (const std::string type : {"f32", "f16"})
    expect_agree(replaced(R"(tl 1 program p
dim m
tensor X: e2m1[m, 64] readonly
tensor S: e8m0[m, 2] readonly
tensor Y: $type[m, 64]
tensor Z: e8m0[m, 2]
kernel k grid (b: ceildiv(m, 8)) threads 64 {
  alloc x: shared e2m1[8, 64]
  alloc y: fragment $type[8, 64]
  copy X[b * 8, 0] -> x
  parallel i, j in 8, 64 {
    let code = bitcast(u8, S[b * 8 + i, j // 32]) % 7u8
    y[i, j] = cast($type, cast(f32, x[i, j]) * cast(f32, bitcast(e8m0, code + 124)))
  }
  copy y -> Y[b * 8, 0]
  parallel i, j in 8, 2 {
    Z[b * 8 + i, j] = cast(e8m0, cast(f32, i * 3 + j))
  }
}
)",
                          {{"type", type}}),
                 launches({8, 19}));
}

TEST(Words, InstructionsOfStatedCycles) {
  for (const std::string cycles : {"", "cycles 4 ", "cycles 64 "})
    expect_agree(replaced(R"(tl 1 program p
dim m
tensor A: i8[m, 32] readonly
tensor B: u8[32, 16] readonly
tensor C: i32[m, 16]
atom mul(a: i8[8, 16] at (i, k) -> (i * 4 + k // 4) * 4 + k % 4,
         b: u8[16, 8] at (k, j) -> (j * 4 + k // 4) * 4 + k % 4,
         c: i32[8, 8] at (i, j) -> (i * 4 + j // 2) * 2 + j % 2)
  $cycles asm ptx "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {$0, $1}, {$2}, {$3}, {$4, $5};"
kernel k grid (b: ceildiv(m, 32)) threads 64 {
  alloc As: shared i8[32, 32]
  alloc Bs: shared u8[32, 16]
  alloc acc: fragment i32[32, 16]
  copy A[b * 32, 0] -> As
  copy B -> Bs
  gemm As, Bs -> acc {clear, atom = mul}
  copy acc -> C[b * 32, 0]
}
)",
                          {{"cycles", cycles}}),
                 launches({32, 45}));
}

}  // namespace
}  // namespace tilegen::differential
