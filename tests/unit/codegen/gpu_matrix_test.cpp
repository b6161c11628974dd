// Matrix instructions, asynchronous copies, shuffles, and a whole matrix product.
#include "gpu_gemm_program.h"

namespace tilegen::codegen::test {
namespace {

using thread::LoopForm;

struct Atom {
  const char* name;
  DType in_a, in_b, out;
  int a, b, c;  // elements of a lane
  const char* instruction;
  bool sparse = false;
};

// out = A * B + 0 of one atom, operands loaded element by element.
thread::ThreadProgram one_atom(const Atom& atom) {
  GpuBuilder kb(32, "atom");
  auto& e = kb.p.exprs;
  MemoryId a = kb.tensor("a", atom.in_a), b = kb.tensor("b", atom.in_b), c = kb.tensor("c", atom.out);
  MemoryId ra = kb.registers("ra", atom.in_a, atom.a), rb = kb.registers("rb", atom.in_b, atom.b),
           rc = kb.registers("rc", atom.out, atom.c);
  thread::Block& body = kb.p.body;
  auto each = [&](const char* name, int n, auto make) {
    ir::VarId v = kb.loop_var(name);
    body.push_back(
        kb.loop(LoopForm::unrolled, v, kb.i(n), {make(kb.var(v), e.add(e.mul(kb.tid(), n), kb.var(v)))}));
  };
  each("i", atom.a, [&](ExprId r, ExprId at) { return kb.store(ra, r, kb.load(a, at)); });
  each("j", atom.b, [&](ExprId r, ExprId at) { return kb.store(rb, r, kb.load(b, at)); });
  each("k", atom.c, [&](ExprId r, ExprId) { return kb.store(rc, r, e.const_number(0, atom.out)); });
  thread::WarpMma mma{atom.name, ra, rb, rc, kb.i(0), kb.i(0), kb.i(0), atom.a, atom.b, atom.c};
  if (atom.sparse) {
    MemoryId p = kb.tensor("p", DType::u32);
    mma.places = kb.registers("rp", DType::u32, 1), mma.places_index = kb.i(0);
    body.push_back(
        kb.add(thread::Store{mma.places, kb.i(0), kb.load(p, kb.tid()), ExprId(), false, ExprId()}));
  }
  body.push_back(kb.add(mma));
  each("l", atom.c, [&](ExprId r, ExprId at) { return kb.store(c, at, kb.load(rc, r)); });
  return kb.p;
}

const Atom kAtoms[] = {
    {"mma.m16n8k16.f32.f16", DType::f16, DType::f16, DType::f32, 8, 4, 4, "m16n8k16.row.col.f32.f16.f16.f32"},
    {"mma.m16n8k16.f16.f16", DType::f16, DType::f16, DType::f16, 8, 4, 4, "m16n8k16.row.col.f16.f16.f16.f16"},
    {"mma.m16n8k16.f32.bf16", DType::bf16, DType::bf16, DType::f32, 8, 4, 4,
     "m16n8k16.row.col.f32.bf16.bf16.f32"},
    {"mma.m16n8k8.f32.tf32", DType::f32, DType::f32, DType::f32, 4, 2, 4,
     "m16n8k8.row.col.f32.tf32.tf32.f32"},
    {"mma.m16n8k4.f32.tf32", DType::f32, DType::f32, DType::f32, 2, 1, 4,
     "m16n8k4.row.col.f32.tf32.tf32.f32"},
    {"mma.m16n8k32.s32.s8.s8", DType::i8, DType::i8, DType::i32, 16, 8, 4, "m16n8k32.row.col.s32.s8.s8.s32"},
    {"mma.m16n8k32.s32.u8.u8", DType::u8, DType::u8, DType::i32, 16, 8, 4, "m16n8k32.row.col.s32.u8.u8.s32"},
    {"mma.m16n8k32.s32.s8.u8", DType::i8, DType::u8, DType::i32, 16, 8, 4, "m16n8k32.row.col.s32.s8.u8.s32"},
    {"mma.m16n8k32.s32.u8.s8", DType::u8, DType::i8, DType::i32, 16, 8, 4, "m16n8k32.row.col.s32.u8.s8.s32"},
    {"mma.m8n8k4.f64", DType::f64, DType::f64, DType::f64, 1, 1, 2, "m8n8k4.row.col.f64.f64.f64.f64"},
    {"fma.f32:1x1", DType::f32, DType::f32, DType::f32, 1, 1, 1, "fma.rn.f32"},
    {"fma.f32.f16:1x1", DType::f16, DType::f16, DType::f32, 1, 1, 1, "fma.rn.f32"},
    {"fma.f32.bf16:1x1", DType::bf16, DType::bf16, DType::f32, 1, 1, 1, "fma.rn.f32"},
    {"fma.f64:1x1", DType::f64, DType::f64, DType::f64, 1, 1, 1, "fma.rn.f64"},
};

TEST(GpuMatrix, EveryAtomOfTheTargetsHasAnInstruction) {
  for (int sm : {80, 89, 90})
    for (const target::MmaAtom& row : gpu(sm).mma) {
      Atom atom{row.name.c_str(),
                row.a,
                row.b,
                row.c,
                static_cast<int>(row.a_layout.registers()),
                static_cast<int>(row.b_layout.registers()),
                static_cast<int>(row.c_layout.registers()),
                ""};
      if (row.unit == target::MmaUnit::multiply_add) atom.a = atom.b = atom.c = 1;
      EXPECT_FALSE(compile_gpu(one_atom(atom), sm).ptx.empty()) << row.name;
    }
}

TEST(GpuMatrix, SparseAtoms) {
  for (int sm : {80, 89, 90}) {
    std::vector<thread::ThreadProgram> all;
    for (const target::MmaAtom& row : gpu(sm).sparse_mma) {
      const auto registers = [](const layout::Fragment& f) { return static_cast<int>(f.registers()); };
      all.push_back(one_atom({row.name.c_str(), row.a, row.b, row.c, registers(row.a_layout),
                              registers(row.b_layout), registers(row.c_layout), "", true}));
      const PtxResult r = compile_gpu(all.back(), sm);
      EXPECT_EQ(count_of(r.ptx, row.instruction + " {"), 1u) << row.name << r.ptx;
      EXPECT_EQ(count_of(r.ptx, ", 0x0;"), 1u) << row.name << r.ptx;
      const Assembled a = assemble(r.ptx, sm);
      if (a.ran) {
        EXPECT_TRUE(a.ok) << a.log;
      }
    }
    EXPECT_EQ(all.size(), sm == 80 ? 6u : 10u);
  }
  auto p = one_atom({"mma.sp.m16n8k32.f32.f16", DType::f16, DType::f16, DType::f32, 8, 8, 4, ""});
  auto r = compile_ptx({&p, 1}, gpu(80), {});
  ASSERT_FALSE(r);
  EXPECT_HAS(r.error().to_text(), "takes a register of places");
}

TEST(GpuMatrix, Atoms) {
  std::vector<thread::ThreadProgram> all;
  for (const Atom& atom : kAtoms) {
    all.push_back(one_atom(atom));
    PtxResult r = compile_gpu(all.back());
    EXPECT_EQ(count_of(r.ptx, atom.instruction), 1u) << atom.name << r.ptx;
  }
  EXPECT_EQ(count_of(compile_gpu(one_atom(kAtoms[3])).ptx, "cvt.rna.tf32.f32"), 6u);
  ASSEMBLES_OR_SKIP(all);
}

// Atoms of 8-bit floats stand in the tables of sm_89 and sm_90 and need a newer PTX.
TEST(GpuMatrix, EightBitFloats) {
  auto p = one_atom({"mma.m16n8k32.f32.e4m3.e5m2", DType::e4m3, DType::e5m2, DType::f32, 16, 8, 4, ""});
  auto old = compile_ptx({&p, 1}, gpu(80), {});
  ASSERT_FALSE(old);
  EXPECT_HAS(old.error().to_text(), "sm_80 has no matrix atom 'mma.m16n8k32.f32.e4m3.e5m2'");
  auto r = compile_ptx({&p, 1}, gpu(89), {});
  ASSERT_TRUE(r) << r.error().to_text();
  EXPECT_HAS(r->ptx, ".version 8.4");
  EXPECT_HAS(r->ptx, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {");
  Assembled a = assemble(r->ptx, 89);
  if (!a.ran) GTEST_SKIP() << "no ptxas on this machine: the PTX was not assembled";
  EXPECT_TRUE(a.ok) << a.log;
}

TEST(GpuMatrix, WrongAtoms) {
  auto refusal = [](const Atom& atom) {
    auto p = one_atom(atom);
    auto r = compile_ptx({&p, 1}, gpu(80), {});
    return r ? std::string() : r.error().to_text();
  };
  EXPECT_HAS(refusal({"mma.m4n4k4", DType::f16, DType::f16, DType::f32, 8, 4, 4, ""}), "mma.m4n4k4");
  EXPECT_HAS(refusal({"mma.m16n8k16.f32.f16", DType::f16, DType::f16, DType::f32, 4, 4, 4, ""}),
             "takes 4 registers");
  EXPECT_HAS(refusal({"fma.f32:1x1", DType::f32, DType::f32, DType::f32, 2, 1, 1, ""}), "one element");
}

// Matrices through shared memory: every size, both directions.
thread::ThreadProgram matrices(DType t, int count, bool transpose, bool store) {
  GpuBuilder kb(32, "matrices");
  auto& e = kb.p.exprs;
  const int per_register = 4 / ir::dtype_bytes(t), row = 16 / ir::dtype_bytes(t);
  MemoryId x = kb.tensor("x", t), s = kb.shared("s", t, 32 * row),
           r = kb.registers("r", t, count * per_register);
  kb.align(x, 16);
  ir::VarId v = kb.loop_var("v"), w = kb.loop_var("w");
  ExprId mine = e.mul(kb.tid(), row);
  kb.p.body = {
      kb.loop(LoopForm::vectorized, v, kb.i(row),
              {kb.store(s, e.add(mine, kb.var(v)), kb.load(x, e.add(mine, kb.var(v))))}),
      kb.add(thread::Barrier{}),
      kb.add(thread::LoadMatrix{r, kb.i(0), s, mine, count, transpose}),
      kb.add(thread::Barrier{}),
      store ? kb.add(thread::StoreMatrix{s, mine, r, kb.i(0), count, transpose})
            : kb.loop(LoopForm::vectorized, w, kb.i(count * per_register),
                      {kb.store(x, e.add(e.mul(kb.tid(), count * per_register), kb.var(w)),
                                kb.load(r, kb.var(w)))}),
  };
  return kb.p;
}

TEST(GpuMatrix, LoadAndStoreMatrices) {
  std::vector<thread::ThreadProgram> all, stores;
  for (int count : {1, 2, 4}) {
    for (bool transpose : {false, true}) {
      const std::string form =
          ".aligned.m8n8.x" + std::to_string(count) + (transpose ? ".trans" : "") + ".shared.b16";
      all.push_back(matrices(DType::f16, count, transpose, false));
      EXPECT_EQ(count_of(compile_gpu(all.back()).ptx, "ldmatrix.sync" + form), 1u);
      stores.push_back(matrices(DType::bf16, count, transpose, true));
      EXPECT_EQ(count_of(compile_gpu(stores.back(), 90).ptx, "stmatrix.sync" + form), 1u);
    }
    for (DType t : {DType::i8, DType::f32}) all.push_back(matrices(t, count, false, false));
  }
  // Registers go to memory as they came.
  EXPECT_LACKS(compile_gpu(all[0]).ptx, "cvt.f32");
  auto old = compile_ptx({&stores[0], 1}, gpu(80), {});
  ASSERT_FALSE(old);
  EXPECT_HAS(old.error().to_text(), "sm_80 has no stmatrix");
  ASSEMBLES_OR_SKIP(all);
  EXPECT_TRUE(expect_assembles(stores, {}, {90}));
}

TEST(GpuMatrix, AsyncCopies) {
  GpuBuilder kb(64, "copies");
  auto& e = kb.p.exprs;
  MemoryId x = kb.tensor("x", DType::f32), y = kb.tensor("y", DType::f32),
           s = kb.shared("s", DType::f32, 64 * 4);
  kb.align(x, 16);
  ExprId n = kb.scalar("n", DType::i64, true);
  ExprId at = e.mul(kb.tid(), 4);
  auto copy = [&](int bytes, ExprId predicate) {
    return kb.add(thread::AsyncCopy{s, at, x, at, bytes, predicate});
  };
  kb.p.body = {copy(16, {}),
               copy(8, {}),
               copy(4, e.lt(at, n)),
               kb.add(thread::AsyncCommit{}),
               kb.add(thread::AsyncWait{1}),
               kb.add(thread::AsyncWait{0}),
               kb.add(thread::Barrier{}),
               kb.store(y, kb.tid(), kb.load(s, kb.tid()))};
  PtxResult r = compile_gpu(kb.p);
  EXPECT_HAS(r.ptx, "cp.async.cg.shared.global [%r");
  EXPECT_HAS(r.ptx, "], 16;");
  EXPECT_HAS(r.ptx, "cp.async.ca.shared.global");
  EXPECT_HAS(r.ptx, "], 8;");
  EXPECT_HAS(r.ptx, "], 4, %r");
  EXPECT_HAS(r.ptx, "cp.async.commit_group;");
  const size_t wait = r.ptx.find("cp.async.wait_group 0"), barrier = r.ptx.find("bar.sync"),
               load = r.ptx.find("ld.shared");
  EXPECT_TRUE(wait < barrier && barrier < load) << r.ptx;
  ASSEMBLES_OR_SKIP(kb.p);
}

TEST(GpuMatrix, Shuffles) {
  std::vector<thread::ThreadProgram> all;
  for (DType t : {DType::f16, DType::bf16, DType::f32, DType::i8, DType::u8, DType::i32, DType::boolean}) {
    GpuBuilder kb(64, "shuffle");
    MemoryId x = kb.tensor("x", t), r = kb.registers("r", t, 2);
    thread::Shuffle s;
    s.dst = r;
    s.dst_index = kb.i(0);
    s.value = kb.load(x, kb.tid());
    s.lane = kb.i(16);
    thread::Shuffle indexed = s;
    indexed.mode = thread::Shuffle::Mode::indexed;
    indexed.dst_index = kb.i(1);
    indexed.value = kb.load(r, kb.i(0));
    indexed.lane = kb.p.exprs.floordiv(kb.tid(), kb.i(4));
    kb.p.body = {kb.add(s), kb.add(indexed), kb.store(x, kb.tid(), kb.load(r, kb.i(1)))};
    all.push_back(kb.p);
    PtxResult out = compile_gpu(kb.p);
    EXPECT_HAS(out.ptx, "shfl.sync.bfly.b32");
    EXPECT_HAS(out.ptx, "shfl.sync.idx.b32");
  }
  ASSEMBLES_OR_SKIP(all);
}

// Shuffles in a row from one lane share words: of elements smaller than one, that do not need each other.
TEST(GpuMatrix, ShufflesInARow) {
  std::vector<thread::ThreadProgram> all;
  const auto shuffles = [&](DType t, int count, bool of_one_lane, bool chained) {
    GpuBuilder kb(64, "shuffle");
    MemoryId x = kb.tensor("x", t), own = kb.registers("own", t, 8), got = kb.registers("got", t, 8);
    for (int i = 0; i < count; ++i)
      kb.p.body.push_back(kb.store(own, kb.i(i), kb.load(x, kb.p.exprs.add(kb.tid(), kb.i(64 * i)))));
    for (int i = 0; i < count; ++i) {
      thread::Shuffle s;
      s.mode = thread::Shuffle::Mode::indexed;
      s.dst = got;
      s.dst_index = kb.i(i);
      s.value = chained && i > 0 ? kb.load(got, kb.i(i - 1)) : kb.load(own, kb.i(i));
      s.lane = kb.p.exprs.floordiv(kb.tid(), kb.i(of_one_lane ? 4 : 4 + i));
      kb.p.body.push_back(kb.add(s));
    }
    for (int i = 0; i < count; ++i)
      kb.p.body.push_back(kb.store(x, kb.p.exprs.add(kb.tid(), kb.i(64 * i)), kb.load(got, kb.i(i))));
    all.push_back(kb.p);
    const std::string ptx = compile_gpu(kb.p, 90).ptx;
    int found = 0;
    for (size_t at = ptx.find("shfl.sync"); at != std::string::npos; at = ptx.find("shfl.sync", at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(shuffles(DType::e4m3, 8, true, false), 2);
  EXPECT_EQ(shuffles(DType::i8, 4, true, false), 1);
  EXPECT_EQ(shuffles(DType::i8, 3, true, false), 2);
  EXPECT_EQ(shuffles(DType::f16, 4, true, false), 2);
  EXPECT_EQ(shuffles(DType::bf16, 3, true, false), 2);
  EXPECT_EQ(shuffles(DType::f32, 2, true, false), 2);
  EXPECT_EQ(shuffles(DType::e4m3, 4, false, false), 4);
  EXPECT_EQ(shuffles(DType::f16, 4, true, true), 4);
  ASSEMBLES_OR_SKIP(all);
}

// Registers written in loops and branches keep what the path taken gave them.
TEST(GpuMatrix, RegistersAcrossControlFlow) {
  GpuBuilder kb(32, "flow");
  auto& e = kb.p.exprs;
  ExprId n = kb.scalar("n", DType::i64, true);
  MemoryId x = kb.tensor("x", DType::f16), r = kb.registers("r", DType::f16, 4),
           s = kb.shared("s", DType::f16, 256);
  ir::VarId step = kb.loop_var("step"), i = kb.loop_var("i"), o = kb.loop_var("o");
  ExprId at = e.add(e.mul(kb.tid(), 4), kb.var(i));
  auto update = kb.loop(LoopForm::unrolled, i, kb.i(4),
                        {kb.store(r, kb.var(i), e.add(kb.load(r, kb.var(i)), kb.load(x, at)))});
  auto reload = kb.add(thread::LoadMatrix{r, kb.i(0), s, e.mul(kb.tid(), 8), 2, false});
  thread::Branch branch{e.lt(kb.var(step), kb.i(3)), {update}, {reload}};
  kb.p.body = {kb.loop(LoopForm::serial, step, n, {kb.add(branch)}),
               kb.loop(LoopForm::vectorized, o, kb.i(4),
                       {kb.store(x, e.add(e.mul(kb.tid(), 4), kb.var(o)), kb.load(r, kb.var(o)))})};
  PtxResult out = compile_gpu(kb.p, 80, true);
  EXPECT_LACKS(out.ptx, ".local");
  EXPECT_HAS(out.llvm_ir, "phi i32");  // whole registers, because matrix loads write them
  ASSEMBLES_OR_SKIP(kb.p);
}

// (step + c) % 3 counts along instead of dividing.
TEST(GpuMatrix, RotatingSlots) {
  PtxResult r = compile_gpu(GemmProgram({}).program());
  EXPECT_LACKS(r.ptx, "mul.hi");
  EXPECT_LACKS(r.ptx, "rem");
}

struct LoopCounts {
  size_t instructions = 0, mma = 0, ldmatrix = 0, copies = 0;
};

// Of the longest loop of the text.
LoopCounts main_loop(const std::string& ptx) {
  LoopCounts best;
  for (size_t at = ptx.find("$L__BB0_"); at != std::string::npos; at = ptx.find("\n$L__BB0_", at + 1)) {
    if (ptx[at] == '\n') ++at;
    const std::string label = ptx.substr(at, ptx.find(':', at) - at);
    const size_t back = ptx.rfind("bra \t" + label + ";");
    if (label.size() > 20 || back == std::string::npos || back < at) continue;
    const std::string body = ptx.substr(at, back - at);
    if (count_of(body, ";\n") > best.instructions)
      best = {count_of(body, ";\n"), count_of(body, "mma.sync"), count_of(body, "ldmatrix"),
              count_of(body, "cp.async.cg")};
  }
  return best;
}

// The shape of a matrix product: nothing but its work in the main loop, no local memory, quick to compile.
TEST(GpuMatrix, WholeProduct) {
  for (GemmShape shape :
       {GemmShape{}, GemmShape{128, 256, 64, 3, 2, 4, false}, GemmShape{128, 256, 64, 3, 2, 4, true}}) {
    GemmProgram g(shape);
    PtxResult first = compile_gpu(g.program()), r = compile_gpu(g.program());
    EXPECT_EQ(first.ptx, r.ptx);
    EXPECT_LACKS(r.ptx, ".local");
    LoopCounts loop = main_loop(r.ptx);
    EXPECT_EQ(loop.mma, static_cast<size_t>(g.mmas()));
    EXPECT_EQ(loop.ldmatrix, static_cast<size_t>(shape.bk / 16) * (4 + 4));
    EXPECT_GT(loop.copies, 0u);
    const size_t other = loop.instructions - loop.mma - loop.ldmatrix - loop.copies;
    EXPECT_LT(other, loop.mma + 5 * loop.copies) << r.ptx;
    std::printf(
        "%lldx%lldx%lld: loop %zu instructions, %zu mma, %zu ldmatrix, %zu copies; emit %.1f optimise %.1f "
        "codegen %.1f ms\n",
        static_cast<long long>(shape.bm), static_cast<long long>(shape.bn), static_cast<long long>(shape.bk),
        loop.instructions, loop.mma, loop.ldmatrix, loop.copies, r.emit_ms, r.optimise_ms, r.codegen_ms);
    ASSEMBLES_OR_SKIP(g.program());
  }
}

}  // namespace
}  // namespace tilegen::codegen::test
