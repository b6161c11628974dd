// Copies with overhang and casts, loops, ifs, stores, strides, zero extents, and the faults the interpreter
// finds.
#include <cmath>
#include <limits>

#include "run_text.h"

namespace tilegen::interp {
namespace {

using ir::DType;
using Values = std::vector<double>;

Tensor counting(DType type, size_t n) {
  Tensor t(type, n);
  for (size_t i = 0; i < n; ++i) t.set(i, static_cast<double>(i));
  return t;
}

TEST(Copy, OverhangReadsZeroAndDropsWrites) {
  Tensor a = counting(DType::f32, 6), b(DType::f32, 9, -1);
  run_text(
      "tl 1 program t tensor A: f32[2, 3] tensor B: f32[3, 3] kernel k grid(x: 1) { alloc S: shared f32[4, 4]"
      " copy A[-1 :+ 4, 1 :+ 4] -> S copy S -> B[0 :+ 4, -1 :+ 4] }",
      {a.slot(), b.slot()});
  // S rows: zeros, (1 2 0 0), (4 5 0 0), zeros; B drops S's first column and last row.
  EXPECT_EQ(b.values(), (Values{0, 0, 0, 2, 0, 0, 5, 0, 0}));
}

TEST(Copy, CastsFollowTheNumericsContract) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const auto cast = [](DType from, Values v, DType to) {
    Tensor a(from, v.size()), b(to, v.size());
    for (size_t i = 0; i < v.size(); ++i) a.set(i, v[i]);
    const std::string n = "[" + std::to_string(v.size()) + "]";
    run_text(std::string("tl 1 program t tensor A: ") + ir::dtype_name(from) + n +
                 " tensor B: " + ir::dtype_name(to) + n + " kernel k grid(x: 1) { copy A -> B }",
             {a.slot(), b.slot()});
    return b.values();
  };
  EXPECT_EQ(cast(DType::f32, {1.9, -1.9, 300, -300, nan, inf}, DType::i8),
            (Values{1, -1, 127, -128, 0, 127}));
  EXPECT_EQ(cast(DType::f32, {1.9, -1.9, 300, nan}, DType::u8), (Values{1, 0, 255, 0}));
  EXPECT_EQ(cast(DType::i32, {300, -1, 128}, DType::i8), (Values{44, -1, -128}));
  EXPECT_EQ(cast(DType::i32, {0, 5, -1}, DType::boolean), (Values{0, 1, 1}));
  EXPECT_EQ(cast(DType::boolean, {0, 1}, DType::f16), (Values{0, 1}));
  EXPECT_EQ(cast(DType::f32, {2049, 2051, 65520, 65519}, DType::f16), (Values{2048, 2052, inf, 65504}));
  EXPECT_EQ(cast(DType::f32, {257, 259}, DType::bf16), (Values{256, 260}));
  EXPECT_EQ(cast(DType::i32, {16777217}, DType::f32), (Values{16777216}));
}

TEST(Copy, DropsDimensionsOfExtentOne) {
  Tensor a = counting(DType::i32, 24), b(DType::i32, 4);
  run_text(
      "tl 1 program t tensor A: i32[2, 3, 4] tensor B: i32[4] kernel k grid(x: 1) { alloc L: local i32[4]"
      " copy A[1 :+ 1, 2 :+ 1, 0 :+ 4] -> L copy L -> B }",
      {a.slot(), b.slot()});
  EXPECT_EQ(b.values(), (Values{20, 21, 22, 23}));
}

TEST(Copy, FollowsStrides) {
  // A is the transposed view of 3 x 2 data with a row pitch of 5.
  Tensor a = counting(DType::i32, 15), b(DType::i32, 6);
  run_text(
      "tl 1 program t dim P tensor A: i32[2, 3] strides [1, P] tensor B: i32[2, 3] kernel k grid(x: 1) { "
      "copy A -> B }",
      {5, a.slot(), b.slot()});
  EXPECT_EQ(b.values(), (Values{0, 5, 10, 1, 6, 11}));
}

TEST(Fill, WritesTheScalar) {
  Tensor b(DType::f16, 4, 3);
  run_text(
      "tl 1 program t scalar s: f32 tensor B: f16[4] kernel k grid(x: 1) { fill B[1 :+ 8], cast(f16, s * "
      "2.0f32) }",
      {std::bit_cast<uint32_t>(1.25f), b.slot()});
  EXPECT_EQ(b.values(), (Values{3, 2.5, 2.5, 2.5}));
}

TEST(Scalars, AreReadByTheirType) {
  Tensor b(DType::i64, 3);
  run_text(
      "tl 1 program t scalar a: i8 scalar b: u8 scalar c: bool tensor B: i64[3] kernel k grid(x: 1) {"
      " B[0] = cast(i64, a) B[1] = cast(i64, b) B[2] = cast(i64, c) }",
      {0xff, 0xff, 1, b.slot()});
  EXPECT_EQ(b.values(), (Values{-1, 255, 1}));
}

TEST(Loops, NestInProgramOrder) {
  Tensor b(DType::i64, 12, -1);
  run_text(
      "tl 1 program t dim N tensor B: i64[12] kernel k grid(x: 1) {"
      " alloc n: local i64[1] fill n, 0"
      " serial i in 2 .. N { unroll j in 0 .. 2 { B[i * 2 + j] = n[0] n[0] = n[0] + 1 } }"
      " serial e in 5 .. 3 { B[0] = 99 } }",
      {5, b.slot()});
  EXPECT_EQ(b.values(), (Values{-1, -1, -1, -1, 0, 1, 2, 3, 4, 5, -1, -1}));
}

TEST(Loops, ParallelWithIfsAndGlobalBounds) {
  Tensor a = counting(DType::f32, 6), b(DType::f32, 6, -1);
  run_text(
      "tl 1 program t dim N tensor A: f32[N] tensor B: f32[N] kernel k grid(x: 2) {"
      " parallel i in 4 { if A[x * 4 + i] < 3.0f32 { B[x * 4 + i] = A[x * 4 + i - 1] + 10.0f32 }"
      " else { B[x * 4 + i] = A[x * 4 + i] * A[x * 4 + i] } } }",
      {6, a.slot(), b.slot()});
  EXPECT_EQ(b.values(), (Values{10, 10, 11, 9, 16, 25}));
}

TEST(Expressions, RoundAfterEveryOperation) {
  // (x + y) - x in f16, where x + y is not representable; and f32 products next to a double's.
  Tensor a(DType::f16, 2), b(DType::f16, 1), c(DType::f32, 1);
  a.set(0, 2048);
  a.set(1, 1);
  run_text(
      "tl 1 program t tensor A: f16[2] tensor B: f16[1] tensor C: f32[1] kernel k grid(x: 1) {"
      " B[0] = A[0] + A[1] - A[0] C[0] = cast(f32, A[1]) / 3.0f32 * 3.0f32 - 0.1f32 }",
      {a.slot(), b.slot(), c.slot()});
  EXPECT_EQ(b.at(0), 0);
  EXPECT_EQ(c.at(0), 1.0f / 3.0f * 3.0f - 0.1f);
}

TEST(Expressions, SharedSubexpressionsCostOnce) {
  // Doubling 200 times by a shared operand: 2^200 evaluations without sharing.
  Tensor a(DType::f64, 1, 1), b(DType::f64, 1);
  ir::Program program =
      checked_program("tl 1 program t tensor A: f64[1] tensor B: f64[1] kernel k grid(x: 1) { B[0] = A[0] }");
  for (ir::Stmt& s : program.stmts)
    if (auto* store = std::get_if<ir::Store>(&s.node))
      for (int i = 0; i < 200; ++i)
        store->value = program.exprs.binary(ir::ExprOp::add, store->value, store->value);
  ASSERT_TRUE(interpret(program, std::vector<uint64_t>{a.slot(), b.slot()}));
  EXPECT_EQ(b.at(0), std::ldexp(1.0, 200));
}

TEST(ZeroExtents, EmptyTensorsAndGridsAreLegal) {
  Tensor b(DType::f32, 4, 7);
  run_text(
      "tl 1 program t dim N tensor A: f32[N, 4] tensor B: f32[4] kernel k grid(x: 1) { alloc S: shared "
      "f32[2, 4]"
      " alloc R: fragment f32[4] copy A[0 :+ 2, 0 :+ 4] -> S reduce S -> R copy R -> B }"
      " kernel none grid(x: N, y: 3) { fill B, 5.0f32 }",
      {0, 0, b.slot()});
  EXPECT_EQ(b.values(), (Values{0, 0, 0, 0}));
}

TEST(Kernels, RunInOrderAndBlocksInRowMajorOrder) {
  Tensor b(DType::i64, 7, 0);
  run_text(
      "tl 1 program t tensor B: i64[7] kernel one grid(y: 2, x: 3) { B[6] = B[6] + 1 B[y * 3 + x] = B[6] }"
      " kernel two grid(x: 6) { B[x] = B[x] * 10 }",
      {b.slot()});
  EXPECT_EQ(b.values(), (Values{10, 20, 30, 40, 50, 60, 6}));
}

TEST(Faults, UnwrittenElement) {
  Tensor b(DType::f32, 4);
  EXPECT_EQ(fault_of("tl 1 program t tensor B: f32[4]\nkernel k grid(x: 1) {\n alloc S: shared f32[4]\n"
                     " fill S[0 :+ 3], 1.0f32\n copy S -> B }",
                     {b.slot()}),
            "test.tl:5:2: error [uninitialised_read] k/copy#0: S[3] is read before anything wrote it "
            "(fill or copy into S first)");
  EXPECT_EQ(b.values(), (Values{1, 1, 1, 0}));
}

TEST(Faults, EveryBlockStartsUnwritten) {
  Tensor b(DType::f32, 4);
  const std::string fault = fault_of(
      "tl 1 program t tensor B: f32[4] kernel k grid(x: 2) { alloc S: shared f32[4]"
      " if x == 0 { fill S, 1.0f32 } copy S -> B }",
      {b.slot()});
  EXPECT_NE(fault.find("S[0] is read before anything wrote it"), std::string::npos) << fault;
}

TEST(Faults, OnChipIndexOutOfRange) {
  Tensor b(DType::f32, 1);
  EXPECT_EQ(fault_of("tl 1 program t dim N tensor B: f32[1]\nkernel k grid(x: 1) {\n alloc S: shared f32[4]\n"
                     " fill S, 1.0f32\n serial i in 0 .. N {\n B[0] = S[i] } }",
                     {5, b.slot()}),
            "test.tl:6:2: error [index_out_of_bounds] k/i/store#0: S[4] is outside the buffer's extents [4] "
            "(guard the access with an if, or make the buffer larger)");
}

TEST(Faults, OnlyWhatIsNeededIsEvaluated) {
  Tensor b(DType::f32, 6);
  run_text(
      "tl 1 program t dim N tensor B: f32[6] kernel k grid(x: 1) { alloc S: shared f32[4] fill S, 1.0f32"
      " serial i in 0 .. N { B[i] = select(i < 4, S[i], 2.0f32) } }",
      {6, b.slot()});
  EXPECT_EQ(b.values(), (Values{1, 1, 1, 1, 2, 2}));
}

TEST(Faults, WrongNumberOfParameters) {
  Tensor b(DType::f32, 1);
  EXPECT_EQ(
      fault_of("tl 1 program t dim N tensor B: f32[1] kernel k grid(x: 1) { fill B, 0.0f32 }", {1}),
      "error [launch_arity] t: expected 2 parameters, got 1 (pass one slot per parameter of the program)");
}

TEST(Faults, SizeOverflow) {
  Tensor b(DType::f32, 1);
  EXPECT_EQ(
      fault_of(
          "tl 1 program t dim N tensor B: f32[N, N, N] kernel k grid(x: 1) { fill B[0 :+ 1, 0 :+ 1, 0 :+ 1],"
          " 0.0f32 }",
          {uint64_t{1} << 40, b.slot()}),
      "test.tl:1:29: error [overflow] B: the size of tensor B does not fit 64 bits (pass smaller "
      "dimensions)");
}

}  // namespace
}  // namespace tilegen::interp
