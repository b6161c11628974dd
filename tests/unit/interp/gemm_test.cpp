// gemm against a naive product: every transpose, type row and way of accumulating.

#include "run_text.h"

namespace tilegen::interp {
namespace {

using ir::DType;

struct TypeCase {
  DType a, b, c;
};
constexpr TypeCase kCases[] = {
    {DType::f16, DType::f16, DType::f16},   {DType::f16, DType::f16, DType::f32},
    {DType::bf16, DType::bf16, DType::f32}, {DType::f32, DType::f32, DType::f32},
    {DType::f64, DType::f64, DType::f64},   {DType::i8, DType::i8, DType::i32},
    {DType::i8, DType::u8, DType::i32},     {DType::u8, DType::i8, DType::i32},
    {DType::u8, DType::u8, DType::i32},     {DType::e4m3, DType::e4m3, DType::f32},
    {DType::e4m3, DType::e5m2, DType::f32}, {DType::e5m2, DType::e4m3, DType::f32},
    {DType::e5m2, DType::e5m2, DType::f32}, {DType::e4m3fnuz, DType::e5m2fnuz, DType::f32},
};
constexpr int kM = 5, kN = 7, kK = 6;

std::string shape(int rows, int cols, bool transposed) {
  return "[" + std::to_string(transposed ? cols : rows) + ", " + std::to_string(transposed ? rows : cols) +
         "]";
}

std::string program_text(const TypeCase& t, bool ta, bool tb, bool clear) {
  const std::string a = ir::dtype_name(t.a), b = ir::dtype_name(t.b), c = ir::dtype_name(t.c);
  const std::string sa = shape(kM, kK, ta), sb = shape(kK, kN, tb), sc = shape(kM, kN, false);
  std::string attrs;
  for (const auto& [on, name] : {std::pair(ta, "transpose_a"), {tb, "transpose_b"}, {clear, "clear"}})
    if (on) attrs += (attrs.empty() ? "" : ", ") + std::string(name);
  return "tl 1 program t tensor A: " + a + sa + " tensor B: " + b + sb + " tensor C: " + c + sc +
         " kernel k grid(x: 1) { alloc As: shared " + a + sa + " alloc Bf: fragment " + b + sb +
         " alloc Cf: fragment " + c + sc + " copy A -> As copy B -> Bf copy C -> Cf gemm As, Bf -> Cf" +
         (attrs.empty() ? "" : " {" + attrs + "}") + " copy Cf -> C }";
}

// Products of the operands in Real, summed from the old C with k ascending.
template <class Real>
double naive(const Tensor& a, const Tensor& b, double old, bool ta, bool tb, int m, int n) {
  Real sum = static_cast<Real>(old);
  for (int k = 0; k < kK; ++k) {
    const Real x = static_cast<Real>(a.at(ta ? k * kM + m : m * kK + k));
    const Real y = static_cast<Real>(b.at(tb ? n * kK + k : k * kN + n));
    const Real product = x * y;
    sum = sum + product;
  }
  return static_cast<double>(sum);
}

void fill_pattern(Tensor* t, int seed) {
  for (size_t i = 0; i < t->size(); ++i) {
    const double v = static_cast<double>((i * 37 + seed * 11) % 101);
    if (ir::is_float(t->type()))
      t->set(i, (v - 50) / 7);
    else
      t->set(i, t->type() == DType::u8 ? v * 2 : v - 50);
  }
}

TEST(Gemm, MatchesTheNaiveProduct) {
  for (const TypeCase& t : kCases) {
    for (int bits = 0; bits < 8; ++bits) {
      const bool ta = bits & 1, tb = bits & 2, clear = bits & 4;
      Tensor a(t.a, kM * kK), b(t.b, kK * kN), c(t.c, kM * kN);
      fill_pattern(&a, 1);
      fill_pattern(&b, 2);
      fill_pattern(&c, 3);
      const Tensor old = c;
      const std::string text = program_text(t, ta, tb, clear);
      run_text(text, {a.slot(), b.slot(), c.slot()});
      for (int m = 0; m < kM; ++m) {
        for (int n = 0; n < kN; ++n) {
          const double start = clear ? 0 : old.at(m * kN + n);
          double expected = naive<double>(a, b, start, ta, tb, m, n);
          if (ir::is_float(t.c) && t.c != DType::f64)
            expected = ir::round_to(t.c, naive<float>(a, b, start, ta, tb, m, n));
          ASSERT_EQ(c.at(m * kN + n), expected) << text << " at " << m << ", " << n;
        }
      }
    }
  }
}

TEST(Gemm, SixteenBitResultIsRoundedOncePerOp) {
  // 2048 + 1 + 1 in f16 steps stays 2048; with one rounding at the end it is 2050.
  Tensor a(DType::f16, 3, 1), b(DType::f16, 3, 1), c(DType::f16, 1, 0);
  a.set(0, 2048);
  run_text(
      "tl 1 program t tensor A: f16[1, 3] tensor B: f16[3, 1] tensor C: f16[1, 1] kernel k grid(x: 1) {"
      " alloc As: shared f16[1, 3] alloc Bs: shared f16[3, 1] alloc Cf: fragment f16[1, 1]"
      " copy A -> As copy B -> Bs gemm As, Bs -> Cf {clear} copy Cf -> C }",
      {a.slot(), b.slot(), c.slot()});
  EXPECT_EQ(c.at(0), 2050);
}

TEST(Gemm, Tf32RoundsTheOperandsAndSumsInSingle) {
  Tensor a(DType::f32, 2, 1), b(DType::f32, 2, 1), c(DType::f32, 1, 0);
  a.set(0, 1 + 0x1p-11);  // a tie: away from zero
  b.set(1, 1 + 0x1p-12);  // to 1
  const std::string text =
      "tl 1 program t tensor A: f32[1, 2] tensor B: f32[2, 1] tensor C: f32[1, 1] kernel k grid(x: 1) {"
      " alloc As: shared f32[1, 2] alloc Bs: shared f32[2, 1] alloc Cf: fragment f32[1, 1]"
      " copy A -> As copy B -> Bs gemm As, Bs -> Cf {clear";
  run_text(text + ", tf32} copy Cf -> C }", {a.slot(), b.slot(), c.slot()});
  EXPECT_EQ(c.at(0), 2 + 0x1p-10);
  run_text(text + "} copy Cf -> C }", {a.slot(), b.slot(), c.slot()});
  EXPECT_EQ(c.at(0), 2 + 0x1p-11 + 0x1p-12);
}

TEST(Gemm, IntegerSumsWrapInTheAccumulator) {
  Tensor a(DType::i8, 1, -128), b(DType::i8, 1, -128), c(DType::i32, 1, 2147483647);
  run_text(
      "tl 1 program t tensor A: i8[1, 1] tensor B: i8[1, 1] tensor C: i32[1, 1] kernel k grid(x: 1) {"
      " alloc As: shared i8[1, 1] alloc Bs: shared i8[1, 1] alloc Cf: fragment i32[1, 1]"
      " copy A -> As copy B -> Bs copy C -> Cf gemm As, Bs -> Cf copy Cf -> C }",
      {a.slot(), b.slot(), c.slot()});
  EXPECT_EQ(c.at(0), 2147483647.0 + 16384 - 4294967296.0);
}

TEST(Gemm, TilesWithDroppedDimensionsAndSlices) {
  // Rows 1..2 of slot 1 of A times a slice of B.
  Tensor a(DType::f32, 2 * 3 * 4), b(DType::f32, 4 * 6), c(DType::f32, 2 * 5, 100);
  fill_pattern(&a, 4);
  fill_pattern(&b, 5);
  run_text(
      "tl 1 program t tensor A: f32[2, 3, 4] tensor B: f32[4, 6] tensor C: f32[2, 5] kernel k grid(x: 1) {"
      " alloc As: shared f32[2, 3, 4] alloc Bs: shared f32[4, 6] alloc Cf: fragment f32[2, 5]"
      " copy A -> As copy B -> Bs copy C -> Cf"
      " gemm As[1 :+ 1, 1 :+ 2, 0 :+ 4], Bs[0 :+ 4, 1 :+ 5] -> Cf copy Cf -> C }",
      {a.slot(), b.slot(), c.slot()});
  for (int m = 0; m < 2; ++m) {
    for (int n = 0; n < 5; ++n) {
      float sum = 100;
      for (int k = 0; k < 4; ++k)
        sum += static_cast<float>(a.at(12 + (1 + m) * 4 + k)) * static_cast<float>(b.at(k * 6 + 1 + n));
      EXPECT_EQ(c.at(m * 5 + n), sum);
    }
  }
}

TEST(Gemm, TiledLoopOverARaggedProblem) {
  constexpr int64_t m = 40, n = 21, k = 19;
  Tensor a(DType::f32, m * k), b(DType::f32, k * n), c(DType::f32, m * n, 7);
  fill_pattern(&a, 1);
  fill_pattern(&b, 2);
  run_text(
      "tl 1 program t dim M dim N dim K tensor A: f32[M, K] readonly tensor B: f32[K, N] readonly tensor C: "
      "f32[M, N]"
      " kernel gemm grid(by: (M + 15) // 16, bx: (N + 15) // 16) threads 128 {"
      " alloc As: shared f32[16, 8] alloc Bs: shared f32[8, 16] alloc Cf: fragment f32[16, 16]"
      " fill Cf, 0.0f32"
      " pipelined ko in 0 .. (K + 7) // 8 stages 2 {"
      "  copy A[by * 16 :+ 16, ko * 8 :+ 8] -> As copy B[ko * 8 :+ 8, bx * 16 :+ 16] -> Bs gemm As, Bs -> Cf "
      "}"
      " copy Cf -> C[by * 16 :+ 16, bx * 16 :+ 16] }",
      {m, n, k, a.slot(), b.slot(), c.slot()});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t x = 0; x < k; ++x)
        sum += static_cast<float>(a.at(i * k + x)) * static_cast<float>(b.at(x * n + j));
      ASSERT_EQ(c.at(i * n + j), sum) << i << ", " << j;
    }
  }
}

}  // namespace
}  // namespace tilegen::interp
