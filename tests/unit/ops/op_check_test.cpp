// What each tile op accepts and the exact words in which it refuses.
#include <gtest/gtest.h>

#include "../check/diagnose.h"

namespace tilegen::check {
namespace {

TEST(OpCheck, Accepts) {
  for (const char* body : {"fill S, 1.0f32 copy S[0 :+ 32] -> S[32 :+ 32] }"})
    EXPECT_EQ(diagnose(body), "") << body;
}

TEST(OpCheck, CopyShape) {
  EXPECT_EQ(
      diagnose("copy A[0 :+ 32, 0 :+ 64] -> As }"),
      "t.tl:6:2: error [shape_mismatch] k/copy#0: src A[32, 64] (f16, global) and dst As[64, 64] (f16,"
      " shared) have different extents (give both regions the same extents; when the ranks differ, "
      "dimensions of extent 1 may be left out, and neighbouring dimensions of one region may be one of the "
      "other)");
}

// One dimension of a region may be neighbouring ones of the other, in row-major order.
TEST(OpCheck, CopyOfDimensionsTogether) {
  for (const char* body :
       {"copy C[0 :+ 4, 0 :+ 16] -> S }", "fill S, 0.0f32 copy S -> C[3 :+ 32, 8 :+ 2] }",
        "fill S, 0.0f32 atomic S -> C[0 :+ 1, 0 :+ 64] }", "fill S, 0.0f32 atomic S -> C[0 :+ 16, 0 :+ 4] }"})
    EXPECT_EQ(diagnose(body), "") << body;
  for (const char* body : {"copy C[0 :+ 4, 0 :+ 15] -> S }", "copy C[0 :+ 8, 0 :+ 16] -> S }",
                           "copy C[0 :+ 8, 0 :+ 16] -> Cf[0 :+ 16, 0 :+ 8] }",
                           "copy C[0 :+ 1, 0 :+ 64] -> Cf[0 :+ 64, 0 :+ 1] }"})
    EXPECT_NE(diagnose(body).find("[shape_mismatch] k/copy#0"), std::string::npos) << body;
}

TEST(OpCheck, CopyOverlap) {
  EXPECT_EQ(diagnose("copy S[0 :+ 32] -> S[31 :+ 32] }"),
            "t.tl:6:2: error [parallel_race] k/copy#0: dst S[31 :+ 32] overlaps src S[0 :+ 32]; the elements"
            " of one copy have no order (write to a buffer of its own and copy it back)");
}

TEST(OpCheck, FillType) {
  EXPECT_EQ(diagnose("fill As, 0.0f32 }"),
            "t.tl:6:2: error [dtype_mismatch] k/fill#0: the value is f32, dst As[64, 64] (f16, shared) needs"
            " f16 (cast the value to f16)");
}

TEST(OpCheck, GemmScopeA) {
  EXPECT_EQ(diagnose("fill Cf, 0.0f32 fill Bs, 0.0f16 gemm A[0 :+ 64, 0 :+ 64], Bs -> Cf }"),
            "t.tl:6:34: error [scope_not_allowed] k/gemm#0: a A[64, 64] (f16, global): expected a shared or"
            " fragment buffer (copy it into a shared buffer first)");
}

TEST(OpCheck, GemmScopeC) {
  EXPECT_EQ(diagnose("fill As, 0.0f16 fill Bs, 0.0f16 gemm As, Bs -> C }"),
            "t.tl:6:34: error [scope_not_allowed] k/gemm#0: c C[64, 64] (f32, global): expected a fragment"
            " buffer (accumulate in a fragment and copy it out after the loop)");
}

TEST(OpCheck, GemmTypes) {
  EXPECT_EQ(diagnose("fill As, 0.0f16 fill Cf, 0.0f32 gemm As, Cf -> Cf }"),
            "t.tl:6:34: error [dtype_mismatch] k/gemm#0: no gemm of f16 x f32 into f32 (legal: f16 x f16"
            " into f16 or f32, bf16 x bf16 into f32, f32 x f32 into f32, f64 x f64 into f64, i8 or u8 x i8"
            " or u8 into i32, e4m3 or e5m2 x e4m3 or e5m2 into f32, "
            "e4m3fnuz or e5m2fnuz x e4m3fnuz or e5m2fnuz into f32)\n"
            "t.tl:6:34: error [parallel_race] k/gemm#0: c Cf overlaps b Cf; the elements of one gemm have no"
            " order (write to a buffer of its own and copy it back)");
}

TEST(OpCheck, GemmK) {
  EXPECT_EQ(diagnose("fill As, 0.0f16 fill Bs, 0.0f16 fill Cf, 0.0f32 gemm As[0 :+ 64, 0 :+ 32], Bs -> Cf }"),
            "t.tl:6:50: error [shape_mismatch] k/gemm#0: a As[64, 32], b Bs[64, 64], c Cf[64, 64]: k is 32"
            " in a and 64 in b (a is m x k, b is k x n, c is m x n; transpose_a and transpose_b say that a"
            " or b is stored transposed)");
}

TEST(OpCheck, GemmMn) {
  EXPECT_EQ(
      diagnose(
          "fill As, 0.0f16 fill Bs, 0.0f16 fill Cf, 0.0f32 gemm As[0 :+ 32, 0 :+ 64], Bs[0 :+ 64, 0 :+ 16]"
          " -> Cf }"),
      "t.tl:6:50: error [shape_mismatch] k/gemm#0: a As[32, 64], b Bs[64, 16], c Cf[64, 64]: m is 32"
      " in a and 64 in c (a is m x k, b is k x n, c is m x n; transpose_a and transpose_b say that a"
      " or b is stored transposed)\n"
      "t.tl:6:50: error [shape_mismatch] k/gemm#0: a As[32, 64], b Bs[64, 16], c Cf[64, 64]: n is 16"
      " in b and 64 in c (a is m x k, b is k x n, c is m x n; transpose_a and transpose_b say that a"
      " or b is stored transposed)");
}

TEST(OpCheck, GemmRank) {
  EXPECT_EQ(diagnose("fill S, 0.0f32 fill Cf, 0.0f32 gemm S, S -> Cf }"),
            "t.tl:6:33: error [rank_mismatch] k/gemm#0: a S[64] (f32, shared) is not a matrix (pass a region"
            " with two dimensions, all others of extent 1)");
}

TEST(OpCheck, ReduceScope) {
  EXPECT_EQ(diagnose("reduce C -> V }"),
            "t.tl:6:2: error [scope_not_allowed] k/reduce#0: src C[64, 64] (f32, global): expected an"
            " on-chip buffer (reduce in a fragment and copy from or to global memory)");
}

TEST(OpCheck, ReduceAxis) {
  EXPECT_EQ(diagnose("fill Cf, 0.0f32 reduce Cf -> V {axis=2} }"),
            "t.tl:6:18: error [bad_attribute] k/reduce#0: axis 2 is outside src Cf[64, 64] of 2 dimensions"
            " (axes count from 0)");
}

TEST(OpCheck, ReduceShape) {
  EXPECT_EQ(diagnose("fill Cf, 0.0f32 reduce Cf -> V[0 :+ 32] {axis=1} }"),
            "t.tl:6:18: error [shape_mismatch] k/reduce#0: dst V[32] (f32, fragment) does not fit src Cf[64,"
            " 64] (f32, fragment) without axis 1 (dst has src's extents without the axis, or with extent 1"
            " there)");
}

TEST(OpCheck, ReduceTypes) {
  EXPECT_EQ(diagnose("fill As, 0.0f16 reduce As -> L {axis=1} }"),
            "t.tl:6:18: error [dtype_mismatch] k/reduce#0: src As[64, 64] (f16, shared) cannot be reduced"
            " into dst L[4] (i64, local) (dst has src's type, or f32 for f16 and bf16, or i32 for i8 and"
            " u8)\n"
            "t.tl:6:18: error [shape_mismatch] k/reduce#0: dst L[4] (i64, local) does not fit src As[64, 64]"
            " (f16, shared) without axis 1 (dst has src's extents without the axis, or with extent 1 there)");
}

TEST(OpCheck, ReduceBool) {
  EXPECT_EQ(diagnose("fill P, true reduce P -> Q {kind=sum} }"),
            "t.tl:6:15: error [dtype_mismatch] k/reduce#0: src P[64] (bool, shared): a bool has no sum (copy"
            " it into an i32 buffer first, or use max (any) or min (all))");
}

TEST(OpCheck, ReduceAbsmax) {
  EXPECT_EQ(diagnose("fill U, 1u8 reduce U -> W {kind=absmax, axis=1} }"),
            "t.tl:6:14: error [dtype_mismatch] k/reduce#0: src U[64, 2] (u8, shared): absmax is of signed or"
            " floating elements (use max for unsigned and bool elements)");
}

}  // namespace
}  // namespace tilegen::check
