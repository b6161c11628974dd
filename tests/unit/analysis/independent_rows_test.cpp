// Along which block indices a kernel's tiles may begin at any row, and the reasons why along others they may
// not.
#include "analysis/independent_rows.h"

#include <gtest/gtest.h>

#include "analysis/shared_rows.h"
#include "check/check_program.h"
#include "ir/text.h"

namespace tilegen::analysis {
namespace {

constexpr const char* kHeader = R"(tl 1 program p
dim m
dim n divisible 8
tensor A: f16[m, 256] readonly
tensor B: f16[n, 256] readonly
tensor T: f16[256, m] readonly
tensor D: f32[m, n] readonly
tensor R: f32[m] readonly
tensor S: f32[n] readonly
tensor C: f32[m, n]
tensor L: f32[m, 2]
kernel k grid (by: ceildiv(m, 64), bx: ceildiv(n, 32)) threads 128 {
  alloc a: shared f16[64, 64]
  alloc b: shared f16[32, 64]
  alloc t: shared f16[64, 64]
  alloc c: fragment f32[64, 32]
  alloc d: fragment f32[64, 32]
  alloc r: fragment f32[64]
  alloc s: fragment f32[32]
  alloc q: shared i32[64]
)";
constexpr const char* kProduct = R"(  fill c, 0.0f32
  pipelined ko in 0 .. 4 {
    copy A[by * 64 :+ 64, ko * 64 :+ 64] -> a
    copy B[bx * 32 :+ 32, ko * 64 :+ 64] -> b
    gemm a, b -> c {transpose_b}
  }
)";
constexpr const char* kStore = "  copy c -> C[by * 64 :+ 64, bx * 32 :+ 32]\n";

// The refusal, or "rows of <tile>".
std::string rows(const std::string& body, const std::string& index = "by") {
  auto p = ir::parse_program(kHeader + body + "}\n", "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  if (!p) return "";
  for (const Diagnostic& d : check::check_program(*p, Limits{})) ADD_FAILURE() << d.to_text();
  const IndependentRows found = independent_rows(*p, 0, *block_index(*p, p->kernels[0], index));
  if (!found.refusal.empty()) return found.refusal;
  EXPECT_FALSE(found.rows.empty());
  return "rows of " + std::to_string(found.tile);
}
std::string product(const std::string& between, const std::string& index = "by") {
  return rows(kProduct + between + kStore, index);
}

TEST(IndependentRows, OfProducts) {
  EXPECT_EQ(product(""), "rows of 64");
  EXPECT_EQ(product("", "bx"), "rows of 32") << "n is a multiple of 8, as a tile of 16 bytes wants";
  EXPECT_EQ(product("parallel i, j in 64, 32 { c[i, j] = max(c[i, j], 0.0f32) * 2.0f32 }\n"), "rows of 64");
  EXPECT_EQ(product("parallel i, j in 64, 32 { c[i, j] = c[i, j] + S[bx * 32 + j] }\n"), "rows of 64");
  EXPECT_EQ(product("parallel i, j in 64, 32 { c[i, j] = c[i, j] + S[bx * 32 + j] }\n", "bx"), "rows of 32");
}

TEST(IndependentRows, InOtherWords) {
  EXPECT_EQ(rows(std::string(kProduct) + "  copy c -> C[64 * by + 0 :+ 64, bx * 32 :+ 32]\n"), "rows of 64");
  EXPECT_EQ(
      rows(std::string(kProduct) + "  parallel j, i in 32, 64 { C[i + by * 64, j + bx * 32] = c[i, j] }\n"),
      "rows of 64");
  EXPECT_EQ(rows(std::string(kProduct) +
                 "  parallel i, j in 64, 32 {\n    if by * 64 + i < m and bx * 32 + j < n {\n"
                 "      C[by * 64 + i, bx * 32 + j] = c[i, j]\n    }\n  }\n"),
            "rows of 64");
  EXPECT_EQ(product("  copy c -> d\n  copy d -> c\n"), "rows of 64");
}

TEST(IndependentRows, ReductionsOfOtherDimensions) {
  EXPECT_EQ(product("  reduce c -> r {kind = max, axis = 1}\n"
                    "  parallel i, j in 64, 32 { c[i, j] = c[i, j] - r[i] }\n"),
            "rows of 64");
  EXPECT_EQ(product("  reduce c -> s {kind = max, axis = 0}\n"
                    "  parallel i, j in 64, 32 { c[i, j] = c[i, j] - s[j] }\n"),
            "k/reduce#0: it combines the rows of a tile");
  EXPECT_EQ(product("  reduce c -> s {kind = max, axis = 0}\n"
                    "  parallel i, j in 64, 32 { c[i, j] = c[i, j] - s[j] }\n",
                    "bx"),
            "rows of 32");
  EXPECT_EQ(product("  cumsum c -> d {axis = 0}\n  copy d -> c\n"),
            "k/cumsum#0: it combines the rows of a tile");
}

TEST(IndependentRows, NumbersOfRowsButNotOfPlacesInATile) {
  EXPECT_EQ(product("  parallel i, j in 64, 32 { if by * 64 + i < 100 { c[i, j] = 0.0f32 } }\n"),
            "rows of 64");
  EXPECT_EQ(product("  parallel i, j in 64, 32 { c[i, j] = c[i, j] + cast(f32, by * 64 + i) }\n"),
            "rows of 64");
  EXPECT_EQ(product("  parallel i, j in 64, 32 { c[i, j] = c[i, j] + cast(f32, i) }\n"),
            "k/i.j: 'i' tells rows of a tile apart");
  EXPECT_EQ(product("  parallel i, j in 64, 32 { c[i, j] = c[i, j] + cast(f32, by) }\n"),
            "k/i.j: 'by' tells rows of a tile apart");
  EXPECT_EQ(product("  parallel i in 64 { q[i] = cast(i32, i) }\n"
                    "  parallel i, j in 64, 32 { c[i, j] = c[i, j] + cast(f32, q[i]) }\n"),
            "k/i.j: 'i' tells rows of a tile apart");
  EXPECT_EQ(product("  copy R[0 :+ 64] -> r\n  parallel i, j in 64, 32 { c[i, j] = c[i, j] + r[i] }\n"),
            "k/i.j: 'i' tells rows of a tile apart");
  EXPECT_EQ(product("  copy c -> d\n  parallel i, j in 64, 32 { c[i, j] = c[i, j] + d[i // 2, j] }\n"),
            "k/i.j: it reads other rows of 'd' than its own");
  EXPECT_EQ(product("  parallel j in 32 { c[3, j] = 0.0f32 }\n"), "k/j: it makes one row of 'c' of several");
  EXPECT_EQ(product("  parallel i, j in 32, 32 { c[i, j] = 0.0f32 }\n"), "k/i.j: it writes some rows of 'c'");
  EXPECT_EQ(product("  fill c[0 :+ 32, 0 :+ 32], 0.0f32\n"), "k/fill#1: it writes some rows of 'c'");
}

TEST(IndependentRows, NotWhatDecidesWhetherWorkIsDone) {
  EXPECT_EQ(product("  if by > 1 { fill c, 0.0f32 }\n"), "k/if#0: 'by' tells rows of a tile apart");
  EXPECT_EQ(product("  serial x in 0 .. by { fill c, 0.0f32 }\n"), "k/x: 'by' tells rows of a tile apart");
  EXPECT_EQ(product("  if bx > 1 { fill c, 0.0f32 }\n"), "rows of 64");
}

TEST(IndependentRows, NotWhereRowsLieBesideEachOther) {
  EXPECT_EQ(
      rows("  fill c, 0.0f32\n  pipelined ko in 0 .. 4 {\n    copy T[ko * 64 :+ 64, by * 64 :+ 64] -> t\n"
           "    copy B[bx * 32 :+ 32, ko * 64 :+ 64] -> b\n    gemm t, b -> c {transpose_a, transpose_b}\n  "
           "}\n" +
           std::string(kStore)),
      "k/ko/copy#0: rows of 'T' lie beside each other in memory and may begin at no multiple of 16 bytes");
  EXPECT_EQ(product("  parallel i, j in 64, 32 { c[i, j] = c[i, j] * R[by * 64 + i] }\n"),
            "k/i.j: rows of 'R' lie beside each other in memory and may begin at no multiple of 16 bytes");
}

TEST(IndependentRows, NotWhereABlockMayWorkInPlace) {
  EXPECT_EQ(product("  copy D[by * 64 :+ 64, bx * 32 :+ 32] -> d\n"
                    "  parallel i, j in 64, 32 { c[i, j] = c[i, j] + d[i, j] }\n"),
            "k/copy#0: a launch may pass one tensor as 'D' and 'C'");
  EXPECT_EQ(product("  copy C[by * 64 :+ 64, bx * 32 :+ 32] -> d\n"
                    "  parallel i, j in 64, 32 { c[i, j] = c[i, j] + d[i, j] }\n"),
            "k/copy#0: it reads 'C', which is written");
}

TEST(IndependentRows, NotWhatIsWrittenInOtherParts) {
  EXPECT_EQ(rows(std::string(kProduct) + "  atomic c -> C[by * 64 :+ 64, bx * 32 :+ 32] {kind = add}\n"),
            "k/atomic#0: what it combines in memory would be combined twice");
  EXPECT_EQ(rows(std::string(kProduct) +
                 "  parallel i, j in 64, 32 { atomic_add(C[by * 64 + i, bx * 32 + j], c[i, j]) }\n"),
            "k/i.j: what it combines in memory would be combined twice");
  EXPECT_EQ(product("  parallel i in 1 { L[0, 1] = 1.0f32 }\n"),
            "k/i: 'L' is written where 'by' tells no row of it");
  EXPECT_EQ(rows(std::string(kProduct) + "  copy c[0 :+ 32, 0 :+ 32] -> C[by * 64 :+ 32, bx * 32 :+ 32]\n"),
            "k/copy#0: 'C' is written in other parts than tiles of 64 rows");
  EXPECT_EQ(rows(std::string(kProduct) + "  copy c -> C[by * 64 + 1 :+ 64, bx * 32 :+ 32]\n"),
            "k/copy#0: 'C' is written in other parts than tiles of 64 rows");
  EXPECT_EQ(rows(std::string(kProduct) + "  copy c -> C[by * 32 :+ 64, bx * 32 :+ 32]\n"),
            "k/copy#0: 'by' tells rows of another number");
}

}  // namespace
}  // namespace tilegen::analysis
