// Loops, branches, memories and the entry function.
#include "kernel_builder.h"

namespace tilegen::codegen::test {
namespace {

using thread::LoopForm;

TEST(Loop, BlocksOfATwoDimensionalGrid) {
  KernelBuilder kb;
  MemoryId out = kb.tensor("out", DType::i64);
  ExprId m = kb.scalar("m", DType::i64, true), n = kb.scalar("n", DType::i64, true);
  kb.p.grid = {m, n};
  ir::VarId by = kb.p.block_vars[0];
  ir::VarId bx = kb.p.add_var("by", ir::VarKind::block_index);
  kb.p.block_vars.push_back(bx);
  auto& e = kb.p.exprs;
  ExprId index = e.add(e.mul(kb.var(by), n), kb.var(bx));
  kb.p.body = {kb.store(out, index, e.add(e.mul(kb.var(by), 1000), kb.var(bx)))};
  Compiled code(kb.p, this_machine());
  ASSERT_TRUE(code);
  std::vector<int64_t> got(15, -1);
  code.run_blocks({slot(got.data()), 3, 5}, {3, 5}, 2, 14);
  for (int64_t k = 0; k < 15; ++k) EXPECT_EQ(got[k], k < 2 || k == 14 ? -1 : k / 5 * 1000 + k % 5);
}

// out[i] = x[i] * s + y[i], i < n, in vectors of 16 with a masked tail.
TEST(Loop, VectorisedWithMaskedTail) {
  for (const auto& t : runnable_targets())
    for (int64_t n : {0, 1, 15, 16, 17, 100}) {
      KernelBuilder kb;
      MemoryId x = kb.tensor("x", DType::f32), y = kb.tensor("y", DType::f32),
               out = kb.tensor("out", DType::f32);
      ExprId dim = kb.scalar("n", DType::i64, true), s = kb.scalar("s", DType::f32);
      ir::VarId v = kb.loop_var("v"), lane = kb.loop_var("lane");
      auto& e = kb.p.exprs;
      ExprId at = e.add(e.mul(kb.var(v), 16), kb.var(lane));
      ExprId inside = e.lt(at, dim);
      ExprId value = e.add(e.mul(kb.load(x, at, inside), s), kb.load(y, at, inside));
      auto body = kb.loop(LoopForm::vectorized, lane, kb.i(16), {kb.store(out, at, value, inside)});
      kb.p.body = {kb.loop(LoopForm::serial, v, e.ceildiv(dim, kb.i(16)), {body})};
      Compiled code(kb.p, t);
      ASSERT_TRUE(code);
      std::vector<float> a(n), b(n), got(n + 16, -7);
      for (int64_t k = 0; k < n; ++k) a[k] = k, b[k] = 2 * k;
      code.run({slot(a.data()), slot(b.data()), slot(got.data()), static_cast<uint64_t>(n),
                std::bit_cast<uint32_t>(3.0f)});
      for (int64_t k = 0; k < n + 16; ++k) EXPECT_EQ(got[k], k < n ? 5 * k : -7) << k;
    }
}

TEST(Loop, UnrolledOverRegisters) {
  KernelBuilder kb;
  MemoryId x = kb.tensor("x", DType::f32), out = kb.tensor("out", DType::f32);
  MemoryId acc = kb.registers("acc", DType::f32, 8);
  ir::VarId i = kb.loop_var("i"), k = kb.loop_var("k"), j = kb.loop_var("j"), q = kb.loop_var("q");
  auto& e = kb.p.exprs;
  auto zero =
      kb.loop(LoopForm::unrolled, i, kb.i(8), {kb.store(acc, kb.var(i), e.const_float(0, DType::f32))});
  ExprId at = e.add(e.mul(kb.var(k), 8), kb.var(j));
  auto add = kb.loop(LoopForm::unrolled, j, kb.i(8),
                     {kb.store(acc, kb.var(j), e.add(kb.load(acc, kb.var(j)), kb.load(x, at)))});
  auto sum = kb.loop(LoopForm::serial, k, kb.i(10), {add});
  auto write = kb.loop(LoopForm::vectorized, q, kb.i(8), {kb.store(out, kb.var(q), kb.load(acc, kb.var(q)))});
  kb.p.body = {zero, sum, write};
  HostCodegenOptions keep;
  keep.keep_ir = true;
  Compiled code(kb.p, this_machine(), keep);
  ASSERT_TRUE(code);
  EXPECT_EQ(code.result().llvm_ir_optimised.find("alloca"), std::string::npos)
      << "the array stays out of registers";
  std::vector<float> in(80), got(8);
  for (int k2 = 0; k2 < 80; ++k2) in[k2] = k2;
  code.run({slot(in.data()), slot(got.data())});
  for (int k2 = 0; k2 < 8; ++k2) EXPECT_EQ(got[k2], 360 + 10 * k2);
}

TEST(Loop, SerialWithRuntimeExtentBranchAndArena) {
  KernelBuilder kb;
  MemoryId out = kb.tensor("out", DType::i32);
  ExprId n = kb.scalar("n", DType::i64, true);
  MemoryId tmp = kb.arena("tmp", DType::i32, 32);
  ir::VarId i = kb.loop_var("i"), j = kb.loop_var("j");
  auto& e = kb.p.exprs;
  ExprId odd = e.binary(ExprOp::eq, e.floormod(kb.var(i), kb.i(2)), kb.i(1));
  ExprId square = e.cast(DType::i32, e.mul(kb.var(i), kb.var(i)));
  auto branch = kb.p.add(
      thread::Branch{
          odd, {kb.store(tmp, kb.var(i), square)}, {kb.store(tmp, kb.var(i), e.const_int(-1, DType::i32))}},
      "");
  kb.p.body = {kb.loop(LoopForm::serial, i, n, {branch}), kb.p.add(thread::Barrier{}, ""),
               kb.loop(LoopForm::serial, j, n, {kb.store(out, kb.var(j), kb.load(tmp, kb.var(j)))})};
  Compiled code(kb.p, this_machine());
  ASSERT_TRUE(code);
  for (int64_t count : {0, 1, 32}) {
    std::vector<int32_t> got(33, 9);
    code.run({slot(got.data()), static_cast<uint64_t>(count)});
    for (int32_t k = 0; k < 33; ++k) EXPECT_EQ(got[k], k >= count ? 9 : k % 2 ? k * k : -1);
  }
}

}  // namespace
}  // namespace tilegen::codegen::test
