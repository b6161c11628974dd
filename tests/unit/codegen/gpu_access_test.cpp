// Loads, stores, predicates and index arithmetic of GPU kernels.
#include "gpu_kernel_builder.h"
#include "support/diag_codes.h"

namespace tilegen::codegen::test {
namespace {

using thread::LoopForm;

// y[i] = x[i] + x[i], `lanes` elements a thread; `bounded`: only below n.
thread::ThreadProgram elementwise(DType t, int64_t lanes, bool bounded, bool streaming = false) {
  GpuBuilder kb(256, "elementwise");
  MemoryId x = kb.tensor("x", t), y = kb.tensor("y", t);
  kb.align(x, 16);
  kb.align(y, 16);
  auto& e = kb.p.exprs;
  ExprId n = kb.scalar("n", DType::i64, true);
  kb.p.grid = {e.ceildiv(n, kb.i(256 * lanes))};
  kb.p.vars[kb.p.params[2].var.value].divisor = lanes;
  ir::VarId lane = kb.loop_var("lane");
  ExprId first = e.mul(e.add(e.mul(kb.block(), 256), kb.tid()), lanes);
  ExprId at = e.add(first, kb.var(lane));
  ExprId inside = bounded ? e.lt(at, n) : ExprId();
  ExprId v = kb.load(x, at, inside);
  ExprId sum = ir::is_bool(t) ? e.binary(ExprOp::logical_or, v, v) : e.add(v, v);
  kb.p.body = {kb.loop(LoopForm::vectorized, lane, kb.i(lanes), {kb.store(y, at, sum, inside, streaming)})};
  return kb.p;
}

TEST(GpuAccess, KernelFrame) {
  auto p = elementwise(DType::f32, 4, false);
  p.min_blocks = 3;
  PtxResult r = compile_gpu(p, 80, true);
  EXPECT_HAS(r.ptx, ".version 7.0");
  EXPECT_HAS(r.ptx, ".target sm_80");
  EXPECT_HAS(r.ptx, ".visible .entry elementwise(");
  EXPECT_HAS(r.ptx, ".maxntid 256");
  EXPECT_HAS(r.ptx, ".minnctapersm 3");
  EXPECT_EQ(count_of(r.ptx, ".param .u64"), 3u);
  EXPECT_LACKS(r.ptx, ".local");
  EXPECT_HAS(r.llvm_ir, "define void @elementwise");
  EXPECT_HAS(r.llvm_ir_optimised, "define void @elementwise");
  EXPECT_HAS(compile_gpu(p, 89).ptx, ".version 7.8");
  EXPECT_HAS(compile_gpu(p, 90).ptx, ".target sm_90");
}

// Words to the caches came with PTX 7.4.
TEST(GpuAccess, CachesAreToldInTheirVersion) {
  for (const auto caching :
       {thread::Caching::evict_first, thread::Caching::evict_last, thread::Caching::no_allocate}) {
    auto p = elementwise(DType::f32, 4, false);
    p.memories[0].loads = caching;
    EXPECT_HAS(compile_gpu(p, 80).ptx, ".version 7.4");
    EXPECT_HAS(compile_gpu(p, 90).ptx, ".version 7.8");
  }
}

TEST(GpuAccess, WideAccesses) {
  for (DType t : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8, DType::i32,
                  DType::i64, DType::boolean}) {
    const int64_t lanes = 16 / ir::dtype_bytes(t);
    PtxResult r = compile_gpu(elementwise(t, lanes, false));
    const char* load = lanes == 2 ? "ld.global.v2." : "ld.global.v4.";
    EXPECT_EQ(count_of(r.ptx, load), 1u) << ir::dtype_name(t) << r.ptx;
    EXPECT_EQ(count_of(r.ptx, "ld.global"), 1u) << r.ptx;
    EXPECT_EQ(count_of(r.ptx, "st.global"), 1u) << r.ptx;
  }
  EXPECT_EQ(count_of(compile_gpu(elementwise(DType::f32, 8, false)).ptx, "ld.global.v4"), 2u);
  EXPECT_EQ(count_of(compile_gpu(elementwise(DType::f16, 6, false)).ptx, "ld.global."), 3u);
}

// What ends in one word is computed on words: x * y + select(.., x, 0), the least of that and 1, of f16.
TEST(GpuAccess, HalvesAreComputedInPairs) {
  GpuBuilder kb(256, "pairs");
  MemoryId x = kb.tensor("x", DType::f16), y = kb.tensor("y", DType::f16);
  for (MemoryId m : {x, y}) kb.align(m, 16);
  auto& e = kb.p.exprs;
  ir::VarId lane = kb.loop_var("lane");
  const ExprId first = e.mul(kb.tid(), 8), at = e.add(first, kb.var(lane));
  const ExprId a = kb.load(x, at), b = kb.load(y, at);
  const ExprId masked = e.select(e.lt(kb.var(lane), kb.tid()), a, e.const_float(0, DType::f16));
  const ExprId value = e.binary(ExprOp::min, e.add(e.mul(a, b), masked), e.const_float(1, DType::f16));
  kb.p.body = {kb.loop(LoopForm::vectorized, lane, kb.i(8), {kb.store(y, at, value)})};
  const std::string ptx = compile_gpu(kb.p, "sm_90a").ptx;
  EXPECT_EQ(count_of(ptx, "fma.rn.f16x2"), 4u) << ptx;
  EXPECT_EQ(count_of(ptx, "min.f16x2"), 4u) << ptx;
  EXPECT_LACKS(ptx, "cvt.f32.f16");
  EXPECT_LACKS(ptx, "cvt.rn.f16");
}

// A number that is no f16 keeps the operation in f32, where it is rounded once.
TEST(GpuAccess, WhatIsNoHalfStaysInFloats) {
  GpuBuilder kb(256, "wide");
  MemoryId x = kb.tensor("x", DType::f16), y = kb.tensor("y", DType::f16);
  for (MemoryId m : {x, y}) kb.align(m, 16);
  auto& e = kb.p.exprs;
  ir::VarId lane = kb.loop_var("lane");
  const ExprId at = e.add(e.mul(kb.tid(), 8), kb.var(lane));
  const ExprId scaled = e.mul(e.cast(DType::f32, kb.load(x, at)), e.const_float(1.1, DType::f32));
  kb.p.body = {kb.loop(LoopForm::vectorized, lane, kb.i(8), {kb.store(y, at, e.cast(DType::f16, scaled))})};
  const std::string ptx = compile_gpu(kb.p, "sm_90a").ptx;
  EXPECT_EQ(count_of(ptx, "cvt.rn.f16x2.f32"), 4u) << ptx;
  EXPECT_LACKS(ptx, "mul.rn.f16x2");
  EXPECT_LACKS(ptx, "mul.f16x2");
}

TEST(GpuAccess, UniformPredicateIsOnePredicatedAccess) {
  PtxResult r = compile_gpu(elementwise(DType::f16, 8, true));
  EXPECT_EQ(count_of(r.ptx, "@%p1 ld.global.v4.b32"), 1u) << r.ptx;
  EXPECT_EQ(count_of(r.ptx, "@%p1 st.global.v4.b32"), 1u) << r.ptx;
  EXPECT_LACKS(r.ptx, "bra");
}

TEST(GpuAccess, LanePredicatesGoElementByElement) {
  auto p = elementwise(DType::f32, 4, true);
  p.vars[p.params[2].var.value].divisor = 1;
  PtxResult r = compile_gpu(p);
  EXPECT_EQ(count_of(r.ptx, " ld.global.b32"), 4u) << r.ptx;
  EXPECT_EQ(count_of(r.ptx, " st.global.b32"), 4u) << r.ptx;
  EXPECT_LACKS(r.ptx, "bra");
}

TEST(GpuAccess, StreamingStores) {
  EXPECT_HAS(compile_gpu(elementwise(DType::f32, 4, false, true)).ptx, "st.global.cs.v4.b32");
  EXPECT_HAS(compile_gpu(elementwise(DType::f32, 4, true, true)).ptx, "@%p1 st.global.cs.v4.b32");
}

TEST(GpuAccess, Deterministic) {
  for (bool bounded : {false, true}) {
    auto p = elementwise(DType::f16, 8, bounded);
    EXPECT_EQ(compile_gpu(p).ptx, compile_gpu(p).ptx);
  }
}

TEST(GpuAccess, Assembles) {
  std::vector<thread::ThreadProgram> all;
  for (DType t : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8, DType::i32,
                  DType::i64, DType::boolean})
    for (bool bounded : {false, true})
      for (int64_t lanes : {1, 2, 3, 8})
        all.push_back(elementwise(t, lanes, bounded, /*streaming=*/lanes == 2));
  ASSEMBLES_OR_SKIP(all);
}

// Through shared memory, reversed: a barrier between, 32-bit shared addresses.
TEST(GpuAccess, SharedMemoryAndBarrier) {
  GpuBuilder kb(128, "reverse");
  MemoryId x = kb.tensor("x", DType::f32), s = kb.shared("s", DType::f32, 512),
           other = kb.shared("other", DType::f16, 64);
  kb.align(x, 16);
  auto& e = kb.p.exprs;
  ir::VarId l1 = kb.loop_var("l1"), l2 = kb.loop_var("l2");
  ExprId mine = e.mul(kb.tid(), 4), theirs = e.mul(e.sub(kb.i(127), kb.tid()), 4);
  kb.p.body = {
      kb.loop(LoopForm::vectorized, l1, kb.i(4),
              {kb.store(s, e.add(mine, kb.var(l1)), kb.load(x, e.add(mine, kb.var(l1))))}),
      kb.store(other, e.floormod(kb.tid(), kb.i(64)), e.const_float(1, DType::f16)),
      kb.add(thread::Barrier{}),
      kb.add(thread::Barrier{1, 64}),
      kb.add(thread::Barrier{2, 64, true}),
      kb.loop(LoopForm::vectorized, l2, kb.i(4),
              {kb.store(x, e.add(mine, kb.var(l2)), kb.load(s, e.add(theirs, kb.var(l2))))}),
  };
  PtxResult r = compile_gpu(kb.p);
  EXPECT_HAS(r.ptx, ".extern .shared .align 1024 .b8 $shared_memory[];");
  EXPECT_HAS(r.ptx, "st.shared.v4.u32 \t[%r");
  EXPECT_HAS(r.ptx, "ld.shared.v4.u32");
  EXPECT_HAS(r.ptx, "bar.sync \t0;");
  EXPECT_HAS(r.ptx, "bar.sync 1, 64;");
  EXPECT_HAS(r.ptx, "bar.arrive 2, 64;");
  EXPECT_HAS(r.ptx, "+2048], ");
  ASSEMBLES_OR_SKIP(kb.p);
}

// Divisions of values known not to be negative are shifts and masks in 32 bits; symbolic ones guard the zero.
TEST(GpuAccess, IndexArithmetic) {
  GpuBuilder kb(256, "index");
  MemoryId x = kb.tensor("x", DType::f32), y = kb.tensor("y", DType::f32);
  auto& e = kb.p.exprs;
  ExprId at = e.add(e.mul(e.floordiv(kb.tid(), kb.i(8)), 40), e.floormod(kb.tid(), kb.i(8)));
  kb.p.body = {kb.store(y, kb.tid(), kb.load(x, at))};
  PtxResult r = compile_gpu(kb.p);
  EXPECT_LACKS(r.ptx, "div");
  EXPECT_LACKS(r.ptx, "rem");
  EXPECT_LACKS(r.ptx, "shr.s");
  GpuBuilder sym(256, "symbolic");
  MemoryId z = sym.tensor("z", DType::i64);
  ExprId n = sym.scalar("n", DType::i64, true);
  auto& f = sym.p.exprs;
  sym.p.body = {sym.store(z, sym.tid(), f.add(f.floordiv(sym.block(), n), f.floormod(sym.tid(), n)))};
  EXPECT_HAS(compile_gpu(sym.p).ptx, "setp.eq");
  sym.p.vars[sym.p.params[1].var.value].lower = 1;
  EXPECT_LACKS(compile_gpu(sym.p).ptx, "setp.eq.s64");
  ASSEMBLES_OR_SKIP(sym.p);
}

// A value that fits 31 bits is divided in 32 bits by dims of any size, once, however often branches ask for
// it.
TEST(GpuAccess, DivisionsByDims) {
  GpuBuilder kb(64, "blocks");
  MemoryId x = kb.tensor("x", DType::f32);
  ExprId n = kb.scalar("n", DType::i64, true), m = kb.scalar("m", DType::i64, true);
  auto& e = kb.p.exprs;
  ExprId group = e.floordiv(n, kb.i(128)), row = e.floordiv(kb.block(), group),
         column = e.floormod(kb.block(), group);
  ExprId left = e.binary(ExprOp::min, e.sub(m, row), kb.i(8));  // may be negative for all that is known
  ExprId at = e.add(e.mul(e.floordiv(column, left), n), e.add(e.floormod(column, left), kb.tid()));
  auto side = [&](double v) { return thread::Block{kb.store(x, at, e.const_float(v, DType::f32))}; };
  kb.p.grid = {e.mul(m, n)};
  kb.p.body = {kb.add(thread::Branch{e.lt(m, n), side(1), side(2)})};
  PtxResult r = compile_gpu(kb.p);
  EXPECT_EQ(count_of(r.ptx, "div.u32"), 1u) << r.ptx;
  EXPECT_EQ(count_of(r.ptx, "div.s32"), 1u) << r.ptx;
  EXPECT_EQ(count_of(r.ptx, "div."), 2u) << r.ptx;
  EXPECT_LACKS(r.ptx, "rem.");
  ASSEMBLES_OR_SKIP(kb.p);
}

// Offsets beyond what an instruction can hold.
TEST(GpuAccess, FarOffsets) {
  GpuBuilder kb(64, "far");
  MemoryId x = kb.tensor("x", DType::f32);
  ExprId n = kb.scalar("n", DType::i64, true);
  auto& e = kb.p.exprs;
  ExprId far = e.add(kb.tid(), kb.i(int64_t{1} << 33));
  kb.p.body = {kb.store(x, far, kb.load(x, e.add(far, kb.i(4)), e.lt(kb.tid(), n)), e.lt(kb.tid(), n))};
  PtxResult r = compile_gpu(kb.p);
  EXPECT_HAS(r.ptx, "34359738368");
  EXPECT_EQ(count_of(r.ptx, "+0]"), 2u) << r.ptx;
  ASSEMBLES_OR_SKIP(kb.p);
}

// Address parts that do not change in the loop stay outside of it.
TEST(GpuAccess, LoopsKeepTheirOwnPartOfAnAddress) {
  GpuBuilder kb(128, "rows");
  MemoryId x = kb.tensor("x", DType::f32), y = kb.tensor("y", DType::f32),
           acc = kb.registers("acc", DType::f32, 4);
  auto& e = kb.p.exprs;
  ExprId n = kb.scalar("n", DType::i64, true), k = kb.scalar("k", DType::i64, true);
  ir::VarId step = kb.loop_var("step"), i = kb.loop_var("i"), j = kb.loop_var("j"), o = kb.loop_var("o");
  ExprId row = e.add(e.mul(kb.block(), 4), kb.var(j));
  ExprId at = e.add(e.mul(row, n), e.add(e.mul(kb.var(step), 128), kb.tid()));
  kb.p.body = {
      kb.loop(LoopForm::unrolled, i, kb.i(4), {kb.store(acc, kb.var(i), e.const_float(0, DType::f32))}),
      kb.loop(LoopForm::serial, step, k,
              {kb.loop(LoopForm::unrolled, j, kb.i(4),
                       {kb.store(acc, kb.var(j), e.add(kb.load(acc, kb.var(j)), kb.load(x, at)))})}),
      kb.loop(LoopForm::unrolled, o, kb.i(4),
              {kb.store(y, e.add(e.mul(kb.tid(), 4), kb.var(o)), kb.load(acc, kb.var(o)))}),
  };
  PtxResult r = compile_gpu(kb.p);
  EXPECT_LACKS(r.ptx, ".local");
  const size_t first = r.ptx.find("ld.global"), loop = r.ptx.rfind("$L__BB0_", first);
  const std::string body = r.ptx.substr(loop, r.ptx.find("bra", first) - loop);
  EXPECT_EQ(count_of(body, "ld.global"), 4u) << r.ptx;
  EXPECT_LACKS(body, "mul");
  EXPECT_LE(count_of(body, ";\n"), 4u + 4 + 8) << body;  // loads, sums, a few for addresses and the loop
  ASSEMBLES_OR_SKIP(kb.p);
}

// A length of a sequence, at a place in a register, under its own condition: a branch around asks for it, and
// once more inside. Where the register is another by then, so is the length.
TEST(GpuAccess, WhatStandsIsLoadedOnce) {
  for (bool moves : {false, true}) {
    GpuBuilder kb(128, "lengths");
    const MemoryId lengths = kb.tensor("lengths", DType::i32), y = kb.tensor("y", DType::i32);
    const MemoryId place = kb.registers("place", DType::i32, 1);
    kb.p.memories[lengths.value].read_only = true;
    auto& e = kb.p.exprs;
    const ExprId n = kb.scalar("n", DType::i64, true), turns = kb.scalar("turns", DType::i64, true);
    const ir::VarId turn = kb.loop_var("turn");
    const ExprId at = e.cast(DType::i64, kb.load(place, kb.i(0)));
    const ExprId length = kb.load(lengths, at, e.lt(at, n));
    const auto set = [&](ExprId value) { return kb.store(place, kb.i(0), e.cast(DType::i32, value)); };
    thread::Block inside = {kb.store(y, e.add(e.mul(kb.var(turn), 128), kb.tid()), length)};
    if (moves) inside.insert(inside.begin(), set(e.add(kb.var(turn), 7)));
    const ExprId some = e.lt(e.const_int(0, DType::i32), length);
    kb.p.body = {kb.loop(LoopForm::serial, turn, turns,
                         {set(kb.var(turn)), kb.add(thread::Branch{some, inside, {}})})};
    const std::string ptx = compile_gpu(kb.p, "sm_90a").ptx;
    EXPECT_EQ(count_of(ptx, "ld.global"), moves ? 2u : 1u) << ptx;
  }
}

TEST(GpuAccess, Refusals) {
  GpuBuilder kb(32);
  MemoryId x = kb.tensor("x", DType::f32);
  thread::Prefetch prefetch;
  prefetch.memory = x;
  prefetch.index = kb.i(0);
  kb.p.body = {kb.add(prefetch, "main/copy#7")};
  auto r = compile_ptx({&kb.p, 1}, gpu(80), {});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().diagnostics[0].code, DiagCode::backend_failure);
  EXPECT_HAS(r.error().to_text(), "main/copy#7");
  EXPECT_HAS(r.error().to_text(), "prefetch");
  target::Target t = gpu(80);
  t.cpu = "sm_12";
  EXPECT_FALSE(compile_ptx({&kb.p, 1}, t, {}));
  std::vector<thread::ThreadProgram> twice{elementwise(DType::f32, 4, false),
                                           elementwise(DType::f32, 4, false)};
  auto clash = compile_ptx(twice, gpu(80), {});
  ASSERT_FALSE(clash);
  EXPECT_HAS(clash.error().to_text(), "symbol");
  GpuCodegenOptions options;
  options.symbols = {"one", "two"};
  auto both = compile_ptx(twice, gpu(80), options);
  ASSERT_TRUE(both);
  EXPECT_HAS(both->ptx, ".entry one(");
  EXPECT_HAS(both->ptx, ".entry two(");
}

}  // namespace
}  // namespace tilegen::codegen::test
