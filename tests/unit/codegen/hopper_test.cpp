// Kernels for sm_90a: specialised warps, transaction barriers, the copy engine, products of a warpgroup.
#include "hopper_gemm_program.h"

namespace tilegen::codegen::test {
namespace {

const Architecture kHopper = "sm_90a";

TEST(Hopper, SpecialisedProductInPtx) {
  HopperGemm gemm({});
  PtxResult r = compile_gpu(gemm.program(), kHopper);
  EXPECT_HAS(r.ptx, ".version 8.0\n.target sm_90a");
  EXPECT_HAS(r.ptx, ".maxntid 384, 1, 1");
  EXPECT_EQ(count_of(r.ptx, ".param .u64 hopper_gemm_param_"), 6u);
  for (const char* map : {"_6[128]", "_7[128]", "_8[128]"})
    EXPECT_HAS(r.ptx, std::string(".param .align 64 .b8 hopper_gemm_param") + map);
  EXPECT_LACKS(r.ptx, ".local");
  EXPECT_EQ(count_of(r.ptx, "setmaxnreg.inc.sync.aligned.u32 232;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "setmaxnreg.dec.sync.aligned.u32 40;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "shfl.sync.idx.b32"), 1u);
  EXPECT_EQ(count_of(r.ptx, "elect.sync _|"), 1u);
  EXPECT_EQ(count_of(r.ptx, "mbarrier.init.shared::cta.b64"), 8u);
  EXPECT_EQ(count_of(r.ptx, "fence.mbarrier_init.release.cluster;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "prefetch.tensormap"), 3u);
  EXPECT_EQ(count_of(r.ptx, "bar.sync \t0;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "mbarrier.try_wait.parity"), 2u);
  EXPECT_EQ(count_of(r.ptx, "mbarrier.arrive.expect_tx.shared::cta.b64"), 1u);
  EXPECT_HAS(r.ptx, ", 49152;");
  EXPECT_EQ(count_of(r.ptx, "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"),
            2u);
  EXPECT_EQ(count_of(r.ptx, "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"), 4u);
  EXPECT_EQ(count_of(r.ptx, "cp.async.bulk.commit_group;"), 2u);
  EXPECT_EQ(count_of(r.ptx, "cp.async.bulk.wait_group.read 0;"), 2u);
  EXPECT_EQ(count_of(r.ptx, "cp.async.bulk.wait_group 0;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "fence.proxy.async.shared::cta;"), 2u);
  EXPECT_EQ(count_of(r.ptx, "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"), 4u);
  EXPECT_EQ(count_of(r.ptx, "always, 1, 1, 0, 0;"), 3u);
  // The loop moves both operands on from slot to slot: descriptors of the steps are sums of 64 bits with the
  // first one.
  for (const std::string units : {"0", "2", "4", "6"})
    for (const std::string to : {"a", "b"})
      EXPECT_EQ(count_of(r.ptx, "add.u64 " + to + ", first_" + to + ", " + units + ";"), 1u)
          << to << " " << units;
  EXPECT_LACKS(r.ptx, "add.u32 low");
  EXPECT_EQ(count_of(r.ptx, "wgmma.fence.sync.aligned;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "wgmma.commit_group.sync.aligned;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "wgmma.wait_group.sync.aligned 1;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "wgmma.wait_group.sync.aligned 0;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "stmatrix.sync.aligned"), 16u);
  EXPECT_LACKS(r.ptx, "div.s64");
  EXPECT_LACKS(r.ptx, "div.u64");
  EXPECT_EQ(count_of(r.ptx, "div.u32"), 2u) << "the tile's coordinates, once a tile in each role";
}

TEST(Hopper, WaitTiesItsRegistersOnly) {
  HopperGemm gemm({});
  PtxResult r = compile_gpu(gemm.program(), kHopper, true);
  EXPECT_HAS(r.llvm_ir, "\"wgmma.wait_group.sync.aligned 1;\", \"~{memory}\"");
  EXPECT_HAS(r.llvm_ir, "\"wgmma.wait_group.sync.aligned 0;\", \"=f,=f,");
  EXPECT_HAS(r.llvm_ir, ",126,127,~{memory}\"");
}

TEST(Hopper, ProductsAssembleWithoutFindings) {
  struct Case {
    const char* what;
    HopperGemmShape shape;
    int least, most;  // registers
  };
  const Case cases[] = {
      {"B is [n, k]", {}, 168, 168},
      {"B is [k, n]", {.k_major_b = false}, 168, 168},
      {"a producer warp", {.producer_warp = true}, 140, 176},
      {"zeros first", {.clear = true}, 168, 168},
      {"bf16, 3 slots", {.slots = 3, .type = DType::bf16}, 168, 168},
      {"128 columns, 6 slots", {.bn = 128, .slots = 6}, 168, 168},
  };
  for (const Case& c : cases) {
    HopperGemm gemm(c.shape);
    PtxResult r = compile_gpu(gemm.program(), kHopper);
    const double ms = r.emit_ms + r.optimise_ms + r.codegen_ms;
    std::printf("%s: %.1f ms to PTX (%.1f emission, %.1f optimisation, %.1f code)\n", c.what, ms, r.emit_ms,
                r.optimise_ms, r.codegen_ms);
    Assembled a = assemble(r.ptx, kHopper);
    if (!a.ran) GTEST_SKIP() << "no ptxas on this machine: the PTX was not assembled";
    EXPECT_TRUE(a.ok) << a.log;
    EXPECT_LACKS(a.log, "C75") << c.what;
    EXPECT_HAS(a.log, "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
    EXPECT_GE(a.registers, c.least) << c.what << "\n" << a.log;
    EXPECT_LE(a.registers, c.most) << c.what << "\n" << a.log;
  }
}

// One warpgroup: A of its tile from registers, B by a copy of `dims` dimensions, accumulators of `type`.
struct SmallProduct {
  GpuBuilder kb{128, "small_product"};
  thread::WarpgroupMma mma;
  thread::TensorLoad load;

  SmallProduct(DType type, int dims) {
    auto& e = kb.p.exprs;
    MemoryId a = kb.tensor("a", DType::f16), b = kb.tensor("b", DType::f16), c = kb.tensor("c", type);
    for (MemoryId t : {a, b, c}) kb.align(t, 16);
    MemoryId tile = kb.shared("tile", DType::f16, 64 * 64);
    MemoryId ra = kb.registers("ra", DType::f16, 32), rc = kb.registers("rc", type, 32);
    thread::TensorMap map{"b_map", b, {}, {}, {}, 128};
    for (int d = 0; d < dims; ++d) {
      map.extents.push_back(kb.i(64));
      map.box.push_back(d < 2 ? 64 : 1);
      if (d > 0) map.strides.push_back(kb.i(64 * 2));
      load.coordinates.push_back(kb.i(d));
    }
    kb.p.tensor_maps.push_back(map);
    kb.p.barriers.push_back({"full", 1, 1, kb.p.arena_bytes});
    kb.p.arena_bytes += 8;
    load.map = 0, load.dst = tile, load.dst_index = kb.i(0), load.barriers = 0, load.barrier_index = kb.i(0);
    mma = {"wgmma.m64n64k16.f32.f16.f16",
           ra,
           tile,
           rc,
           kb.i(0),
           kb.i(0),
           kb.i(0),
           {0, 8, 16, 24},
           {0, 16, 32, 48},
           {},
           {},
           {}};
    mma.b_form = {128, true, 0, 1024};
    body_ = [=, this, &e] {
      auto each = [&](const char* name, int n, auto make) {
        ir::VarId v = kb.loop_var(name);
        return kb.loop(thread::LoopForm::unrolled, v, kb.i(n),
                       {make(kb.var(v), e.add(e.mul(kb.tid(), n), kb.var(v)))});
      };
      ExprId zero = kb.i(0);
      thread::Block arrive{kb.add(thread::TransactionArrive{0, zero, 8192}), kb.add(load)};
      return thread::Block{
          kb.add(thread::Branch{e.lt(kb.tid(), kb.i(32)), {kb.add(thread::OneThread{arrive})}, {}}),
          each("i", 32, [&](ExprId r, ExprId at) { return kb.store(ra, r, kb.load(a, at)); }),
          each("k", 32, [&](ExprId r, ExprId) { return kb.store(rc, r, e.const_number(0, type)); }),
          kb.add(thread::TransactionWait{0, zero, zero}),
          kb.add(thread::WarpgroupFence{}),
          kb.add(mma, "main/gemm#7"),
          kb.add(thread::WarpgroupCommit{}),
          kb.add(thread::WarpgroupWait{0, {ra, rc}}),
          each("l", 32, [&](ExprId r, ExprId at) { return kb.store(c, at, kb.load(rc, r)); })};
    };
  }
  thread::ThreadProgram& program() {
    kb.p.body = body_();
    return kb.p;
  }

 private:
  std::function<thread::Block()> body_;
};

// Barriers ready for the cluster, a copy for all of its blocks, arrivals in another block, and the meeting at
// the end.
TEST(Hopper, ClustersInPtx) {
  SmallProduct small(DType::f32, 2);
  small.kb.p.cluster = 4;
  small.load.multicast = 15;
  thread::ThreadProgram& p = small.program();
  auto& e = p.exprs;
  const ExprId rank = e.floormod(small.kb.tid(), small.kb.i(128));
  thread::Block arrive{small.kb.add(thread::TransactionArrive{0, small.kb.i(0), 0, rank})};
  p.body.push_back(small.kb.add(thread::Branch{e.lt(rank, small.kb.i(4)), arrive, {}}));
  p.body.push_back(small.kb.add(thread::ClusterBarrier{}));
  PtxResult r = compile_gpu(p, kHopper);
  EXPECT_EQ(count_of(r.ptx, "barrier.cluster.arrive.release.aligned;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "barrier.cluster.wait.acquire.aligned;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "bar.sync \t0;"), 0u);
  EXPECT_EQ(count_of(r.ptx, "complete_tx::bytes.multicast::cluster ["), 1u);
  EXPECT_EQ(count_of(r.ptx, "mapa.shared::cluster.u32 there, "), 1u);
  EXPECT_EQ(count_of(r.ptx, "mbarrier.arrive.shared::cluster.b64 _, [there+"), 1u);
  EXPECT_EQ(count_of(r.ptx, "barrier.cluster.arrive.release;"), 1u);
  EXPECT_EQ(count_of(r.ptx, "barrier.cluster.wait.acquire;"), 1u);
  Assembled a = assemble(r.ptx, kHopper);
  if (!a.ran) GTEST_SKIP() << "no ptxas on this machine: the PTX was not assembled";
  EXPECT_TRUE(a.ok) << a.log;
  EXPECT_LACKS(a.log, "C75");
}

// A dependent kernel lets the next one begin first of all, and touches no memory of others before the one in
// front has ended.
TEST(Hopper, DependentKernelsWaitBeforeTheirBody) {
  SmallProduct small(DType::f32, 2);
  thread::ThreadProgram& p = small.program();
  EXPECT_LACKS(compile_gpu(p, kHopper).ptx, "griddepcontrol");
  p.dependent = true;
  const PtxResult r = compile_gpu(p, kHopper);
  ASSERT_EQ(count_of(r.ptx, "griddepcontrol.launch_dependents;"), 1u);
  ASSERT_EQ(count_of(r.ptx, "griddepcontrol.wait;"), 1u);
  const size_t waits = r.ptx.find("griddepcontrol.wait;");
  EXPECT_LT(r.ptx.find("griddepcontrol.launch_dependents;"), r.ptx.find("mbarrier.init"));
  EXPECT_LT(r.ptx.find("mbarrier.init"), waits);
  for (const char* touches : {"cp.async.bulk.tensor", "ld.global", "st.global"})
    EXPECT_LT(waits, r.ptx.find(touches)) << touches;
}

TEST(Hopper, OperandFromRegistersAndCopiesOfEveryRank) {
  for (int dims = 1; dims <= 5; ++dims) {
    SmallProduct small(DType::f32, dims);
    PtxResult r = compile_gpu(small.program(), kHopper);
    EXPECT_HAS(r.ptx, "cp.async.bulk.tensor." + std::to_string(dims) + "d.shared::cluster.global");
    EXPECT_EQ(count_of(r.ptx, "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"), 4u);
    EXPECT_EQ(count_of(r.ptx, "}, b, first, 1, 1, 0;"), 1u) << "sums that begin at zero are overwritten";
    EXPECT_EQ(count_of(r.ptx, "}, b, always, 1, 1, 0;"), 3u) << r.ptx;
    EXPECT_EQ(count_of(r.ptx, "add.u32 low"), 4u) << "no loop moves the operand";
    Assembled a = assemble(r.ptx, kHopper);
    if (!a.ran) GTEST_SKIP() << "no ptxas on this machine: the PTX was not assembled";
    EXPECT_TRUE(a.ok) << a.log;
    EXPECT_LACKS(a.log, "C75");
  }
}

// One instruction on tiles that nothing filled.
thread::ThreadProgram one_product(const target::WarpgroupAtom& atom, int n) {
  GpuBuilder kb(128, "one_product");
  auto& e = kb.p.exprs;
  const int64_t step = 32 / ir::dtype_bytes(atom.a);  // 32 bytes along k
  MemoryId c = kb.tensor("c", atom.c), acc = kb.registers("acc", atom.c, n / 2);
  MemoryId a = kb.shared("a", atom.a, 64 * 4 * step), b = kb.shared("b", atom.b, n * 4 * step);
  thread::WarpgroupMma mma;
  mma.atom = target::warpgroup_instruction_name(atom, n);
  mma.a = a, mma.b = b, mma.c = acc;
  mma.a_index = mma.b_index = mma.c_index = kb.i(0);
  for (int64_t s = 0; s < 4; ++s) mma.a_steps.push_back(s * step), mma.b_steps.push_back(s * step);
  mma.a_form = mma.b_form = {128, true, 0, 1024};
  mma.accumulate = e.binary(ExprOp::lt, kb.block(), kb.i(0));
  ir::VarId v = kb.loop_var("v");
  kb.p.body = {kb.add(thread::WarpgroupFence{}), kb.add(mma), kb.add(thread::WarpgroupCommit{}),
               kb.add(thread::WarpgroupWait{0, {acc}}),
               kb.loop(thread::LoopForm::unrolled, v, kb.i(n / 2),
                       {kb.store(c, e.add(e.mul(kb.tid(), n / 2), kb.var(v)), kb.load(acc, kb.var(v)))})};
  return kb.p;
}

TEST(Hopper, EveryProductOfTheTargetAssembles) {
  std::vector<thread::ThreadProgram> all;
  for (const target::WarpgroupAtom& atom : gpu(kHopper).warpgroup_mma)
    for (int n : {atom.widths.front(), 32, atom.widths.back()}) {
      all.push_back(one_product(atom, n));
      all.back().name += std::to_string(all.size());
    }
  ASSERT_FALSE(all.empty());
  if (!expect_assembles(all, {}, {kHopper}))
    GTEST_SKIP() << "no ptxas on this machine: the PTX was not assembled";
}

// Accumulators of 16 bits, two to a register; the target's table need not have the row yet.
TEST(Hopper, AccumulatorsInPairs) {
  target::Target target = gpu(kHopper);
  target::WarpgroupAtom atom = target.warpgroup_mma[0];
  atom.name = "wgmma.k16.f16.f16.f16", atom.c = DType::f16;
  target.warpgroup_mma.push_back(atom);
  SmallProduct small(DType::f16, 2);
  small.mma.atom = "wgmma.m64n64k16.f16.f16.f16";
  thread::ThreadProgram& p = small.program();
  auto r = compile_ptx({&p, 1}, target, {{}, true});
  ASSERT_TRUE(r) << r.error().to_text();
  EXPECT_HAS(r->llvm_ir, "\"=&r,=&r,");
  Assembled a = assemble(r->ptx, kHopper);
  if (!a.ran) GTEST_SKIP() << "no ptxas on this machine: the PTX was not assembled";
  EXPECT_TRUE(a.ok) << a.log;
  EXPECT_LACKS(a.log, "C75");
}

TEST(Hopper, Refusals) {
  auto refusal = [](const Architecture& sm, auto change) {
    SmallProduct small(DType::f32, 2);
    change(small.mma);
    thread::ThreadProgram& p = small.program();
    auto r = compile_ptx({&p, 1}, gpu(sm), {});
    return r ? std::string("no refusal") : r.error().to_text();
  };
  EXPECT_HAS(refusal(90, [](auto&) {}), "sm_90a");
  std::string unknown = refusal(kHopper, [](auto& m) { m.atom = "wgmma.m64n63k16.f32.f16.f16"; });
  EXPECT_HAS(unknown, "m64n63");
  EXPECT_HAS(unknown, "main/gemm#7");
  EXPECT_HAS(refusal(kHopper, [](auto& m) { m.b_steps[1] = 4; }), "16 bytes");
  EXPECT_HAS(refusal(kHopper, [](auto& m) { m.b_steps.pop_back(); }), "differ in number");
}

// Registers are handed out by warpgroup; a budget that is what the launch gives needs no instruction.
TEST(Hopper, RegisterBudgets) {
  for (int budget : {0, 168, 160, 240}) {
    HopperGemm gemm({});
    for (thread::Stmt& s : gemm.program().stmts)
      if (auto* roles = std::get_if<thread::Roles>(&s.node)) roles->roles[0].registers = budget;
    std::string ptx = compile_ptx({&gemm.program(), 1}, gpu(kHopper), {})->ptx;
    EXPECT_EQ(count_of(ptx, "setmaxnreg.inc"), budget == 240 ? 1u : 0u) << budget;
    EXPECT_EQ(count_of(ptx, "setmaxnreg.dec"), budget == 160 ? 2u : 1u) << budget;
  }
}

}  // namespace
}  // namespace tilegen::codegen::test
