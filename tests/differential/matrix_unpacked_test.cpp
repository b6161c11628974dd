// Products of tiles that threads unpack between the copy and the product, over the sizes of tiles, the
// block's threads, the operand and the order of statements. Iterations over the tile leave points to no
// thread, and threads of one warpgroup unpack rows that others multiply.
#include "attention_program.h"

namespace tilegen::differential {
namespace {

struct Unpacked {
  bool first = false;  // the operand
  int64_t m = 64, n = 64, k = 64;
  int threads = 128, order = 0;
  std::string type;
  bool held = false;  // unpacked into registers
};

std::vector<Unpacked> all_unpacked() {
  std::vector<Unpacked> list;
  int types = 0;
  for (bool first : {false, true})
    for (int order = 0; order < 3; ++order)
      for (int64_t m : {64, 128, 192, 256})
        for (int64_t n : {32, 64, 96, 128, 160})
          for (int64_t k : {32, 64, 96})
            for (int threads : {128, 256, 384}) {
              const char* const type = (const char*[]){"u8", "i8", "f32"}[types % 3];
              list.push_back({first, m, n, k, threads, order, type, types++ % 2 == 1});
            }
  return list;
}

std::string text_of(const Unpacked& u) {
  const std::string raw =
      u.first ? "copy A[by * $M :+ $M, ko * $K :+ $K] -> raw" : "copy B[ko * $K :+ $K, bx * $N :+ $N] -> raw";
  const std::string other =
      u.first ? "copy B[ko * $K :+ $K, bx * $N :+ $N] -> b" : "copy A[by * $M :+ $M, ko * $K :+ $K] -> a";
  const std::string unpack = "parallel i, j in $rows {\n      $to[i, j] = cast(f16, raw[i, j])\n    }";
  const std::vector<std::string> orders[] = {
      {raw, other, unpack}, {other, raw, unpack}, {raw, unpack, other}};
  std::string body;
  for (const std::string& s : orders[u.order]) body += "    " + s + "\n";
  return replaced(R"(tl 1 program unpacked
dim m
dim n
dim k
tensor A: $ta[m, k] readonly
tensor B: $tb[k, n] readonly
tensor C: f32[m, n]
kernel gemm grid (by: ceildiv(m, $M), bx: ceildiv(n, $N)) threads $T {
  alloc a: $a_scope f16[$M, $K]
  alloc b: $b_scope f16[$K, $N]
  alloc raw: shared $type[$rows]
  alloc c: fragment f32[$M, $N]
  fill c, 0.0f32
  pipelined ko in 0 .. ceildiv(k, $K) stages 2 {
$body    gemm a, b -> c
  }
  copy c -> C[by * $M :+ $M, bx * $N :+ $N]
}
)",
                  {{"body", body},
                   {"ta", u.first ? u.type : "f16"},
                   {"tb", u.first ? "f16" : u.type},
                   {"type", u.type},
                   {"to", u.first ? "a" : "b"},
                   {"a_scope", u.held && u.first ? "fragment" : "shared"},
                   {"b_scope", u.held && !u.first ? "fragment" : "shared"},
                   {"rows", u.first ? "$M, $K" : "$K, $N"},
                   {"M", std::to_string(u.m)},
                   {"N", std::to_string(u.n)},
                   {"K", std::to_string(u.k)},
                   {"T", std::to_string(u.threads)}});
}

TEST(Unpacked, TilesThreadsAndOrders) {
  const std::vector<Unpacked> all = all_unpacked();
  const size_t step = take_case ? 211 : long_run() ? 1 : 89;  // prime to the lengths of the lists
  for (size_t i = 0; i < all.size(); i += step) {
    const std::string text = text_of(all[i]);
    Subject subject(text, targets(On::hopper));
    ASSERT_EQ(subject.invalid(), "") << text;
    Launch l;
    l.dims = {{"m", all[i].m + 8}, {"n", all[i].n}, {"k", 2 * all[i].k + 16}};
    l.seed = i + 1;
    l.magnitude = 4;
    expect_agree(subject, text, l);
    if (HasFailure()) return;
  }
}

// Codes of 4 bits, packed along k, become B in registers: the instructions' A, where its columns allow that.
TEST(Unpacked, CodesInRegisters) {
  const char* const kProgram = R"(tl 1 program codes
dim m
dim n
dim k divisible 32
tensor X: $t[m, k] readonly
tensor W: $word[n, k // $per] readonly
tensor S: $t[k // 32, n] readonly
tensor C: f32[m, n]
kernel gemm grid (by: ceildiv(m, $M), bx: ceildiv(n, $N)) threads $T {
  alloc x: shared $t[$M, $K]
  alloc packed: shared $word[$N, $K // $per]
  alloc scales: shared $t[$K // 32, $N]
  alloc w: fragment $t[$N, $K]
  alloc c: fragment f32[$M, $N]
  fill c, 0
  pipelined ko in 0 .. ceildiv(k, $K) stages 3 {
    copy X[by * $M :+ $M, ko * $K :+ $K] -> x
    copy W[bx * $N :+ $N, ko * ($K // $per) :+ $K // $per] -> packed
    copy S[ko * ($K // 32) :+ $K // 32, bx * $N :+ $N] -> scales
    parallel j, p in $N, $K {
      let q = (cast(i32, packed[j, p // $per]) >> cast(i32, p % $per * 4)) & 15
      w[j, p] = cast($t, q - 8) * scales[p // 32, j]
    }
    gemm x, w -> c {transpose_b}
  }
  copy c -> C[by * $M :+ $M, bx * $N :+ $N]
}
)";
  size_t at = 0;
  const size_t step = take_case ? 31 : long_run() ? 1 : 37;  // prime to the length of the list
  for (int64_t m : {8, 16, 40, 64, 128})
    for (int64_t n : {32, 64, 128, 192})
      for (int64_t k : {32, 64, 128})
        for (int threads : {128, 256})
          for (const std::string word : {"u8", "i32", "u16"})
            for (const std::string type : {"f16", "bf16"}) {
              if (at++ % step != 0) continue;
              const int64_t per = word == "u8" ? 2 : word == "u16" ? 4 : 8;
              const std::string text = replaced(kProgram, {{"per", std::to_string(per)},
                                                           {"word", word},
                                                           {"t", type},
                                                           {"M", std::to_string(m)},
                                                           {"N", std::to_string(n)},
                                                           {"K", std::to_string(k)},
                                                           {"T", std::to_string(threads)}});
              Subject subject(text, targets(On::hopper));
              ASSERT_EQ(subject.invalid(), "") << text;
              Launch l;
              l.dims = {{"m", m + 8}, {"n", n + 16}, {"k", 2 * k + 32}};
              l.seed = at;
              l.magnitude = 4;
              expect_agree(subject, text, l);
              if (HasFailure()) return;
            }
}

}  // namespace
}  // namespace tilegen::differential
