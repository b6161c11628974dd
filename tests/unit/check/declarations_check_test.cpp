// Limits, dims, buffers and grids. What the text form cannot say is made by changing a parsed program.
#include "diagnose.h"

namespace tilegen::check {
namespace {

using ir::DType;

constexpr const char* kSmall =
    "tl 1 program t dim N scalar s: f32 tensor A: f32[N, 8]\nkernel k grid(x: 4) {\n alloc S: shared f32[4, "
    "8]\n"
    " serial i in 0 .. 2 { if x == 0 { fill S, s + s * s } } copy A[0 :+ 4, 0 :+ 8] -> S }";

struct Small {
  ir::Program p = parsed(kSmall);
  ir::Var& dim() { return p.vars[0]; }
  ir::Buffer& tensor() { return p.buffers[0]; }
  ir::Buffer& tile() { return p.buffers[1]; }
  ir::ExprId number(int64_t v) { return p.exprs.const_int(v); }
  std::string diagnosed() { return diagnose(p); }
};

TEST(Declarations, AcceptsTheProgramTheTestsChange) { EXPECT_EQ(Small().diagnosed(), ""); }

TEST(Sizes, Limits) {
  const Small s;
  Limits limits;
  limits.expr_nodes = 3;
  limits.statements = 2;
  limits.buffers = 1;
  limits.expr_depth = 2;
  limits.nesting = 1;
  EXPECT_EQ(diagnose(s.p, limits),
            "error [limit_nodes] t: expressions: " + std::to_string(s.p.exprs.size()) +
                ", the limit is 3 (split the program)\n"
                "error [limit_nodes] t: statements: 4, the limit is 2 (split the program)\n"
                "error [limit_nodes] t: buffers: 2, the limit is 1 (split the program)\n"
                "error [limit_nesting] t: operators nested in one expression: 3, the limit is 2 "
                "(store a part of the expression in a local buffer)\n"
                "t.tl:2:8: error [limit_nesting] k: loops and ifs around one statement: 2, the limit is 1 "
                "(nest less deeply)");
}

TEST(Sizes, DiagnosticsAreCutAtTheLimit) {
  Small s;
  Limits limits;
  limits.diagnostics = 1;
  s.dim().lower = -1;
  s.p.kernels[0].threads = -5;
  EXPECT_EQ(diagnose(s.p, limits),
            "t.tl:1:20: error [bad_shape] N: dim N: lower bound -1 is negative (an extent is at least 0)");
}

TEST(Dims, Facts) {
  Small s;
  s.dim().divisor = 0;
  EXPECT_EQ(s.diagnosed(),
            "t.tl:1:20: error [bad_shape] N: dim N: divisor 0 is not positive (a divisor is at least 1)");
  s.dim().divisor = 16;
  s.dim().lower = 17;
  s.dim().upper = 31;
  EXPECT_EQ(s.diagnosed(),
            "t.tl:1:20: error [bad_shape] N: dim N: no value is >= 17, <= 31 and divisible by 16 "
            "(loosen one of the facts)");
  s.dim().upper = 32;
  EXPECT_EQ(s.diagnosed(), "");
  s.dim().lower = INT64_MAX - 1;
  s.dim().upper = INT64_MAX;
  EXPECT_EQ(
      s.diagnosed(),
      "t.tl:1:20: error [bad_shape] N: dim N: no value is >= 9223372036854775806, <= 9223372036854775807 and "
      "divisible by 16 (loosen one of the facts)");
}

TEST(Dims, AreI64) {
  Small s;
  s.dim().type = DType::i32;
  EXPECT_EQ(s.diagnosed(), "t.tl:1:20: error [bad_shape] N: dim N is i32 (a dim is i64)");
}

TEST(Tensors, Shape) {
  Small s;
  s.tensor().shape[1] = s.number(-8);
  EXPECT_EQ(s.diagnosed(), "t.tl:1:43: error [bad_shape] A: extent 1 of A is -8 (extents are at least 0)");
  s.tensor().shape[1] = s.number(INT64_MAX / 4);
  s.tensor().shape[0] = s.number(2);
  EXPECT_EQ(s.diagnosed(),
            "t.tl:1:43: error [overflow] A: the size of A does not fit 64 bits (make the tensor smaller)");
  s.tensor().shape[1] = s.number(0);
  EXPECT_EQ(s.diagnosed(), "");
  s.tensor().shape[1] = s.p.exprs.const_int(8, DType::i32);
  EXPECT_EQ(s.diagnosed(),
            "t.tl:1:43: error [dtype_mismatch] A: extent 1 of A is i32, expected i64 (cast it to i64)");
  s.tensor().shape.clear();
  EXPECT_EQ(s.diagnosed(),
            "t.tl:1:43: error [bad_shape] A: A has 0 dimensions, expected 1 to 8 (merge or drop dimensions)");
}

TEST(Tensors, ExtentsAreKnownAtLaunch) {
  Small s;
  const ir::VarId block = s.p.kernels[0].block_vars[0];
  s.tensor().shape[1] = s.p.exprs.var(block);
  EXPECT_EQ(s.diagnosed(),
            "t.tl:1:43: error [out_of_scope] A: extent 1 of A uses x, which is not known at launch "
            "(use dims, scalars and constants only)");
  const ir::ExprId zero = s.number(0);
  const ir::ExprId index[] = {zero, zero};
  s.tensor().shape[1] = s.p.exprs.cast(DType::i64, s.p.exprs.load(ir::BufferId(0), DType::f32, index));
  EXPECT_EQ(s.diagnosed(),
            "t.tl:1:43: error [out_of_scope] A: extent 1 of A reads A, which is not known at launch "
            "(use dims, scalars and constants only)");
}

TEST(Tensors, Strides) {
  Small s;
  s.tensor().strides = {s.number(1)};
  EXPECT_EQ(s.diagnosed(),
            "t.tl:1:43: error [rank_mismatch] A: A has 2 dimensions and 1 strides "
            "(give one stride per dimension, or none for a compact tensor)");
  s.tensor().strides = {s.number(1), s.p.exprs.const_int(1, DType::i8)};
  EXPECT_EQ(s.diagnosed(),
            "t.tl:1:43: error [dtype_mismatch] A: a stride of A is i8, expected i64 (cast it to i64)");
}

TEST(Buffers, HaveATypeAndAKernel) {
  Small s;
  s.tile().kernel = 1;
  EXPECT_EQ(
      s.diagnosed(),
      "t.tl:3:8: error [out_of_scope] S: shared buffer S belongs to no kernel (allocate it inside a kernel)");
  s.tile().kernel = 0;
  s.tile().type = DType::none;
  EXPECT_EQ(s.diagnosed(), "t.tl:3:8: error [dtype_mismatch] k:S: S has no element type (give it a dtype)");
}

TEST(Tiles, Extents) {
  Small s;
  s.tile().shape[0] = s.p.exprs.var(ir::VarId(0));
  EXPECT_EQ(s.diagnosed(),
            "t.tl:3:8: error [bad_shape] k:S: extent 0 of S is not a constant (on-chip buffers have constant "
            "extents)");
  s.tile().shape[0] = s.number(0);
  EXPECT_EQ(s.diagnosed(),
            "t.tl:3:8: error [bad_shape] k:S: extent 0 of S is 0 (on-chip extents are at least 1)");
  s.tile().shape[0] = s.number(1 << 22);
  EXPECT_EQ(s.diagnosed(),
            "t.tl:3:8: error [bad_shape] k:S: S is too large; elements: 33554432, the limit is 16777216 "
            "(make the tile smaller)");
  s.tile().shape[0] = s.number(INT64_MAX / 2);
  EXPECT_EQ(s.diagnosed(),
            "t.tl:3:8: error [overflow] k:S: the number of elements of S does not fit 64 bits (make the tile "
            "smaller)");
  s.tile().shape.assign(9, s.number(1));
  EXPECT_EQ(
      s.diagnosed(),
      "t.tl:3:8: error [bad_shape] k:S: S has 9 dimensions, expected 1 to 8 (merge or drop dimensions)");
}

TEST(Tiles, HaveNoTensorMarks) {
  Small s;
  s.tile().read_only = true;
  EXPECT_EQ(s.diagnosed(),
            "t.tl:3:8: error [scope_not_allowed] k:S: S is on-chip and has a readonly mark "
            "(only global tensors have those)");
  s.tile().read_only = false;
  s.tile().strides = {s.number(8), s.number(1)};
  EXPECT_EQ(s.diagnosed(),
            "t.tl:3:8: error [scope_not_allowed] k:S: S is on-chip and has strides (only global tensors have "
            "those)");
}

TEST(Grids, Form) {
  Small s;
  ir::Kernel& k = s.p.kernels[0];
  k.grid[0] = s.number(-1);
  EXPECT_EQ(s.diagnosed(),
            "t.tl:2:8: error [bad_shape] k: grid extent 0 is -1 (grid extents are at least 0)");
  k.grid[0] = s.p.exprs.var(k.block_vars[0]);
  EXPECT_EQ(s.diagnosed(),
            "t.tl:2:8: error [out_of_scope] k: grid extent 0 uses x, which is not known at launch "
            "(use dims, scalars and constants only)");
  k.grid[0] = s.number(0);
  EXPECT_EQ(s.diagnosed(), "");
  k.grid.resize(4, s.number(1));
  k.threads = -1;
  EXPECT_EQ(s.diagnosed(),
            "t.tl:2:8: error [bad_shape] k: the grid has 4 extents and 1 variables, expected 1 to 3 of each "
            "(merge grid dimensions and split the index with // and %)\n"
            "t.tl:2:8: error [bad_shape] k: threads is -1 (0 lets the planner choose)");
}

}  // namespace
}  // namespace tilegen::check
