// Types, ranks, loop forms, ownership: programs the parser would not make, by changing ones it made.
#include "diagnose.h"
#include "ir/op_kinds.h"

namespace tilegen::check {
namespace {

using ir::DType;
using ir::ExprId;
using ir::ExprOp;

// A store of a value to B inside a parallel loop, with everything around it.
struct StoreProgram {
  ir::Program p = parsed(
      "tl 1 program t scalar s: f32 scalar n: i32 tensor A: f32[64, 8] tensor B: f32[64]\n"
      "kernel k grid(x: 4) {\n parallel i in 64 {\n B[i] = A[i, 0] } }\nkernel other grid(z: 1) {\n"
      " alloc S: shared f32[64]\n fill S, s }");
  template <class T>
  T& first() {
    for (ir::Stmt& s : p.stmts)
      if (auto* node = std::get_if<T>(&s.node)) return *node;
    abort();
  }
  ir::Store& store() { return first<ir::Store>(); }
  ir::Loop& loop() { return first<ir::Loop>(); }
  ExprId s() { return p.exprs.var(ir::VarId(0), DType::f32); }
  ExprId n() { return p.exprs.var(ir::VarId(1), DType::i32); }
  ExprId flag() { return p.exprs.lt(n(), p.exprs.const_int(3, DType::i32)); }
  std::string value(ExprId v) {
    store().value = v;
    return diagnose(p);
  }
};

const std::string kAt = "t.tl:4:2: error [dtype_mismatch] k/i/store#0: ";

TEST(Expressions, Accepts) {
  StoreProgram q;
  EXPECT_EQ(diagnose(q.p), "");
  EXPECT_EQ(q.value(q.p.exprs.select(q.flag(), q.s(), q.p.exprs.cast(DType::f32, q.n()))), "");
}

TEST(Expressions, Leaves) {
  StoreProgram q;
  ir::ExprPool& e = q.p.exprs;
  const ExprId i = e.var(q.loop().vars[0]);
  EXPECT_EQ(q.value(e.var(ir::VarId(1), DType::f32)),
            kAt + "variable n is i32 and used as f32 (cast it to f32)");
  const ExprId one[] = {i};
  EXPECT_EQ(q.value(e.load(ir::BufferId(0), DType::f32, one)),
            "t.tl:4:2: error [rank_mismatch] k/i/store#0: A has 2 dimensions and is indexed with 1 "
            "(give one index per dimension)");
  const ExprId two[] = {i, q.n()};
  EXPECT_EQ(q.value(e.load(ir::BufferId(0), DType::f32, two)),
            kAt + "an index of A is i32, expected i64 (cast it to i64)");
  const ExprId good[] = {i, i};
  EXPECT_EQ(q.value(e.cast(DType::f32, e.load(ir::BufferId(0), DType::f16, good))),
            kAt + "an element of A is f32 and used as f16 (cast it to f16)");
  EXPECT_EQ(q.value(ExprId()), kAt + "the value stored to B is missing, expected f32 (cast it to f32)");
  EXPECT_EQ(q.value(q.n()), kAt + "the value stored to B is i32, expected f32 (cast it to f32)");
}

TEST(Statements, StoreIndices) {
  StoreProgram q;
  q.store().indices.clear();
  EXPECT_EQ(diagnose(q.p),
            "t.tl:4:2: error [rank_mismatch] k/i/store#0: B has 1 dimensions and is indexed with 0 "
            "(give one index per dimension)");
}

TEST(Statements, Scopes) {
  StoreProgram q;
  const ExprId foreign[] = {q.p.exprs.const_int(0)};
  EXPECT_EQ(q.value(q.p.exprs.load(ir::BufferId(2), DType::f32, foreign)),
            "t.tl:4:2: error [out_of_scope] k/i/store#0: S belongs to kernel other, not to k "
            "(allocate a buffer in this kernel, or pass the data through a global tensor)");
  const ir::VarId z = q.p.kernels[1].block_vars[0];
  EXPECT_EQ(q.value(q.p.exprs.cast(DType::f32, q.p.exprs.var(z))),
            "t.tl:4:2: error [out_of_scope] k/i/store#0: variable z is used outside its loop or kernel "
            "(use it inside the loop that defines it)");
}

TEST(Statements, LoopForms) {
  const std::string at = "t.tl:3:2: error ";
  StoreProgram q;
  q.loop().num_stages = 2;
  EXPECT_EQ(diagnose(q.p),
            at + "[bad_attribute] k/i: a parallel loop with 2 stages "
                 "(stages belong to pipelined loops and are 0 (the planner chooses) or 1 to 64)");
  q.loop().num_stages = 0;
  q.loop().begin = q.p.exprs.const_int(1);
  EXPECT_EQ(diagnose(q.p), at + "[bad_shape] k/i: a parallel loop starts at another value than 0 "
                                "(start at 0 and add the offset to the indices)");
  q.loop().begin = q.p.exprs.const_int(0);
  q.loop().extents.push_back(q.p.exprs.const_int(2));
  EXPECT_EQ(diagnose(q.p),
            at +
                "[rank_mismatch] k/i: a parallel loop has 1 variables and 2 extents, expected 1 to 8 of each "
                "(merge variables and split the index with // and %)");
  q.loop().kind = ir::LoopKind::serial;
  EXPECT_EQ(diagnose(q.p),
            at + "[rank_mismatch] k/i: a serial loop has 1 variables and 2 extents, expected one of each "
                 "(nest loops, or use a parallel loop)");
  q.loop().extents = {q.p.exprs.const_int(64, DType::i32)};
  EXPECT_EQ(diagnose(q.p),
            at + "[dtype_mismatch] k/i: the extent of the loop is i32, expected i64 (cast it to i64)");
  q.loop().extents = {q.p.exprs.const_int(int64_t{1} << 40)};
  q.loop().kind = ir::LoopKind::parallel;
  EXPECT_EQ(diagnose(q.p),
            at + "[bad_shape] k/i: the parallel loop has more iterations than the limit of 16777216 "
                 "(spread the work over blocks)");
}

TEST(Statements, ConditionsAreBool) {
  ir::Program p =
      parsed("tl 1 program t tensor B: i32[64]\nkernel k grid(x: 4) {\n if x < 2 { fill B, 0i32 } }");
  for (ir::Stmt& s : p.stmts)
    if (auto* branch = std::get_if<ir::Branch>(&s.node)) branch->condition = p.exprs.const_int(1);
  EXPECT_EQ(diagnose(p),
            "t.tl:3:2: error [dtype_mismatch] k/if#0: the condition is i64, expected bool (cast it to bool)");
}

struct OpProgram {
  ir::Program p = parsed(
      "tl 1 program t tensor A: f32[8, 8]\nkernel k grid(x: 1) {\n alloc S: shared f32[8, 8]\n"
      " alloc F: fragment f32[8, 8] copy A -> S fill F, 0.0f32\n gemm S, S -> F }");
  ir::TileOp& op(ir::OpKind kind) {
    for (ir::Stmt& s : p.stmts)
      if (auto* node = std::get_if<ir::TileOp>(&s.node); node != nullptr && node->kind == kind) return *node;
    abort();
  }
};

const std::string kGemm = "t.tl:5:2: error ";

TEST(Signatures, Operands) {
  OpProgram q;
  q.op(ir::OpKind::gemm).operands.pop_back();
  EXPECT_EQ(diagnose(q.p),
            kGemm + "[bad_attribute] k/gemm#0: gemm takes 3 operands, got 2 (pass every operand of gemm)");
}

TEST(Signatures, Regions) {
  OpProgram q;
  ir::Region& a = q.op(ir::OpKind::gemm).operands[0];
  a.extents[0] = 0;
  EXPECT_EQ(diagnose(q.p),
            kGemm +
                "[bad_shape] k/gemm#0: a S: extent 0 of dimension 0 of the region is not positive "
                "(region extents are positive constants)");
  a.extents = {8};
  EXPECT_EQ(diagnose(q.p), kGemm +
                               "[rank_mismatch] k/gemm#0: a S: the region has 1 dimensions, the buffer has 2 "
                               "(give one offset and one extent per dimension of the buffer)");
  a.extents = {8, 8};
  a.offsets[1] = q.p.exprs.const_int(0, DType::i32);
  EXPECT_EQ(diagnose(q.p),
            kGemm + "[dtype_mismatch] k/gemm#0: an offset into S is i32, expected i64 (cast it to i64)");
}

TEST(Signatures, AttributesAndValues) {
  OpProgram q;
  ir::TileOp& gemm = q.op(ir::OpKind::gemm);
  gemm.attrs[ir::gemm_attr::clear] = 2;
  gemm.attrs[ir::gemm_attr::policy] = 3;
  gemm.value = q.p.exprs.const_int(0);
  q.op(ir::OpKind::fill).value = ExprId();
  EXPECT_EQ(diagnose(q.p),
            "t.tl:4:42: error [bad_attribute] k/fill#0: fill needs a value (pass a scalar expression)\n" +
                kGemm +
                "[bad_attribute] k/gemm#0: attribute policy has no value 3 "
                "(legal: square|full_row|full_col)\n" +
                kGemm + "[bad_attribute] k/gemm#0: attribute clear has no value 2 (legal: 0 or 1)\n" + kGemm +
                "[bad_attribute] k/gemm#0: gemm takes no value (leave the value out)");
}

}  // namespace
}  // namespace tilegen::check
