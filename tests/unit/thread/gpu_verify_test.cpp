// The invariants of statements that only blocks of many threads have: each test breaks one and expects its
// report.
#include <gtest/gtest.h>

#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::thread {
namespace {

using ir::DType;
using ir::ExprId;
using ir::VarKind;

struct GpuVerifyTest : ::testing::Test {
  ThreadProgram p;
  MemoryId in, out, tile, other, halves, a, b, acc;
  ir::VarId t;

  ExprId c(int64_t v) { return p.exprs.const_int(v); }
  ExprId thread() { return p.exprs.var(t); }
  ExprId load(MemoryId m, ExprId index) {
    const ExprId indices[] = {index};
    return p.exprs.load(m, p.memory(m).type, indices);
  }
  MemoryId tensor(const char* name, DType type, bool read_only) {
    Memory m;
    m.name = name, m.type = type, m.alignment = 16, m.read_only = read_only,
    m.param = static_cast<int>(p.params.size());
    const MemoryId id = p.add_memory(m);
    p.params.push_back({Param::Kind::tensor, name, type, {}, id});
    return id;
  }
  MemoryId shared(const char* name, DType type, int64_t elements) {
    Memory m;
    m.name = name, m.space = Space::shared, m.type = type, m.elements = elements, m.alignment = 128;
    m.arena_offset = p.arena_bytes;
    p.arena_bytes += elements * ir::dtype_bytes(type);
    return p.add_memory(m);
  }
  MemoryId registers(const char* name, DType type, int64_t elements) {
    Memory m;
    m.name = name, m.space = Space::local, m.type = type, m.elements = elements, m.alignment = 16,
    m.in_registers = true;
    return p.add_memory(m);
  }

  void SetUp() override {
    p.name = "kernel";
    p.machine = *target::find_target("sm_90a");
    p.threads = 64;
    t = p.thread_var = p.add_var("t", VarKind::thread);
    p.block_vars = {p.add_var("b", VarKind::block_index)};
    p.grid = {c(4)};
    in = tensor("X", DType::f32, true), out = tensor("Y", DType::f32, false);
    tile = shared("T", DType::f32, 256), other = shared("Q", DType::i32, 256),
    halves = shared("H", DType::f16, 512);
    a = registers("a", DType::f16, 8), b = registers("b", DType::f16, 4),
    acc = registers("acc", DType::f32, 4);
  }
  void append(StmtNode node) { p.body.push_back(p.add(std::move(node), "extra")); }
  void expect_clean() { EXPECT_EQ(verify_thread_program(p), std::vector<std::string>()); }
  void expect_problem(const std::string& text) {
    const auto problems = verify_thread_program(p);
    ASSERT_EQ(problems.size(), 1u) << ::testing::PrintToString(problems);
    EXPECT_NE(problems[0].find(text), std::string::npos) << problems[0];
  }

  AsyncCopy copy() { return {tile, p.exprs.mul(thread(), c(4)), in, p.exprs.mul(thread(), c(4)), 16, {}}; }
  Shuffle shuffle() { return {Shuffle::Mode::butterfly, acc, c(0), load(acc, c(1)), c(16)}; }
  Vote vote(Vote::Mode mode, DType into) {
    const ExprId of = mode == Vote::Mode::match ? thread() : p.exprs.lt(thread(), c(5));
    return {mode, registers("said", into, 1), c(0), of, 32};
  }
  LoadMatrix load_matrix() { return {a, c(0), halves, p.exprs.mul(thread(), c(8)), 4, false}; }
  StoreMatrix store_matrix() { return {halves, p.exprs.mul(thread(), c(8)), a, c(0), 4, false}; }
  WarpMma mma() { return {"mma.m16n8k16.f32.f16", a, b, acc, c(0), c(0), c(0), 8, 4, 4}; }
};

TEST_F(GpuVerifyTest, LegalProgramHasNoProblems) {
  p.guards = {{0, 16}};
  append(copy());
  append(AsyncCommit{});
  append(AsyncWait{1});
  append(Barrier{1, 32, true});
  append(Barrier{});
  append(shuffle());
  append(vote(Vote::Mode::any, DType::boolean));
  append(vote(Vote::Mode::ballot, DType::u32));
  append(vote(Vote::Mode::match, DType::u32));
  append(load_matrix());
  append(store_matrix());
  append(mma());
  expect_clean();
}

TEST_F(GpuVerifyTest, ThreadVariableKind) {
  p.vars[t.value].kind = VarKind::loop;
  expect_problem("thread variable t is a variable of another kind");
}
TEST_F(GpuVerifyTest, MinBlocks) {
  p.min_blocks = 0;
  expect_problem("a multiprocessor holds 0 blocks");
}
TEST_F(GpuVerifyTest, SlotsDivideTheMemory) {
  p.memories[tile.value].slots = 3;
  expect_problem("memory T does not split into 3 slots");
}
TEST_F(GpuVerifyTest, SlotsArePositive) {
  p.memories[tile.value].slots = 0;
  expect_problem("memory T does not split into 0 slots");
}

TEST_F(GpuVerifyTest, GuardNamesAParameter) {
  p.guards = {{2, 16}};
  expect_problem("a guard of no parameter");
}
TEST_F(GpuVerifyTest, GuardParameterIsNotNegative) {
  p.guards = {{-1, 16}};
  expect_problem("a guard of no parameter");
}
TEST_F(GpuVerifyTest, GuardDivisor) {
  p.guards = {{0, 0}};
  expect_problem("a guard on X with divisor 0");
}
TEST_F(GpuVerifyTest, GuardOfBytes) {
  Guard g{0, 1};
  g.elements = c(64), g.most_bytes = 1024;
  p.guards = {g};
  EXPECT_NE(print_thread_program(p).find("X is a multiple of 1, its 64 elements have at most 1024 bytes"),
            std::string::npos)
      << print_thread_program(p);
  expect_clean();
}
TEST_F(GpuVerifyTest, GuardOfBytesTellsElements) {
  Guard g{0, 1};
  g.most_bytes = 1024;
  p.guards = {g};
  expect_problem("a guard on X of 1024 bytes; expected a tensor, its elements and at least a byte");
}
TEST_F(GpuVerifyTest, GuardOfBytesIsTheLaunchs) {
  Guard g{0, 1};
  g.elements = thread(), g.most_bytes = 1024;
  p.guards = {g};
  expect_problem("number of elements");
}
TEST_F(GpuVerifyTest, GuardOnAScalar) {
  const ir::VarId v = p.add_var("alpha", VarKind::scalar);
  p.vars[v.value].type = DType::f32;
  p.params.push_back({Param::Kind::scalar, "alpha", DType::f32, v, {}});
  p.guards = {{2, 4}};
  expect_problem("a guard on the scalar alpha");
}

TEST_F(GpuVerifyTest, BarrierNumber) {
  append(Barrier{16, 64, false});
  expect_problem("barrier 16 does not exist");
}
TEST_F(GpuVerifyTest, BarrierNumberIsNotNegative) {
  append(Barrier{-1, 64, false});
  expect_problem("barrier -1 does not exist");
}
TEST_F(GpuVerifyTest, BarrierOfWholeWarps) {
  append(Barrier{1, 48, false});
  expect_problem("a barrier of 48 threads");
}
TEST_F(GpuVerifyTest, BarrierWithinTheBlock) {
  append(Barrier{1, 96, false});
  expect_problem("a barrier of 96 threads");
}

TEST_F(GpuVerifyTest, AsyncCopySize) {
  AsyncCopy s = copy();
  s.bytes = 12;
  append(s);
  expect_problem("an async copy of 12 bytes");
}
TEST_F(GpuVerifyTest, AsyncCopyOfWholeElements) {
  const MemoryId wide = tensor("W", DType::i64, true), target = shared("S", DType::i64, 16);
  append(AsyncCopy{target, c(0), wide, c(0), 4, {}});
  expect_problem("an async copy of part of an element of W");
}
TEST_F(GpuVerifyTest, AsyncCopyLeadsToSharedMemory) {
  AsyncCopy s = copy();
  s.dst = out;
  append(s);
  expect_problem("an async copy from X to Y; expected global to shared memory of one type");
}
TEST_F(GpuVerifyTest, AsyncCopyComesFromGlobalMemory) {
  AsyncCopy s = copy();
  s.src = tile;
  append(s);
  expect_problem("an async copy from T to T");
}
TEST_F(GpuVerifyTest, AsyncCopyKeepsTheType) {
  AsyncCopy s = copy();
  s.dst = other;
  append(s);
  expect_problem("an async copy from X to Q");
}
TEST_F(GpuVerifyTest, AsyncCopyTargetInRange) {
  AsyncCopy s = copy();
  s.dst_index = c(253);
  append(s);
  expect_problem("async copy target: elements 253 and on (4) are outside T[256]");
}
TEST_F(GpuVerifyTest, AsyncCopySourceIndexType) {
  AsyncCopy s = copy();
  s.src_index = p.exprs.const_int(0, DType::i32);
  append(s);
  expect_problem("async copy source index");
}
TEST_F(GpuVerifyTest, AsyncCopyPredicateType) {
  AsyncCopy s = copy();
  s.predicate = thread();
  append(s);
  expect_problem("async copy predicate t is i64, expected bool");
}
TEST_F(GpuVerifyTest, AsyncCopyMemoryInRange) {
  AsyncCopy s = copy();
  s.src = MemoryId(size_t{99});
  append(s);
  expect_problem("async copy source: memory id out of range");
}
TEST_F(GpuVerifyTest, WaitIsNotNegative) {
  append(AsyncWait{-1});
  expect_problem("a wait for -1 pending groups");
}

TEST_F(GpuVerifyTest, ShuffleInWholeWarps) {
  p.threads = 48;
  append(shuffle());
  expect_problem("a shuffle in a block of 48 threads");
}
TEST_F(GpuVerifyTest, ShuffleIntoRegisters) {
  Shuffle s = shuffle();
  s.dst = tile;
  append(s);
  expect_problem("a shuffle into T, which is not in registers");
}
TEST_F(GpuVerifyTest, ShuffleOfNarrowTypes) {
  const MemoryId wide = registers("w", DType::f64, 1);
  append(Shuffle{Shuffle::Mode::indexed, wide, c(0), load(wide, c(0)), c(0)});
  expect_problem("a shuffle of f64");
}
TEST_F(GpuVerifyTest, ShuffledValueType) {
  Shuffle s = shuffle();
  s.value = thread();
  append(s);
  expect_problem("shuffled value t is i64, expected f32");
}
TEST_F(GpuVerifyTest, ShuffleLaneType) {
  Shuffle s = shuffle();
  s.lane = load(acc, c(0));
  append(s);
  expect_problem("shuffle lane");
}
TEST_F(GpuVerifyTest, VoteInWholeWarps) {
  p.threads = 48;
  append(vote(Vote::Mode::ballot, DType::u32));
  expect_problem("a vote in a block of 48 threads");
}
TEST_F(GpuVerifyTest, VoteOfGroups) {
  Vote v = vote(Vote::Mode::ballot, DType::u32);
  v.lanes = 24;
  append(v);
  expect_problem("a vote of 24 lanes");
}
TEST_F(GpuVerifyTest, VoteOfConditions) {
  Vote v = vote(Vote::Mode::any, DType::boolean);
  v.value = thread();
  append(v);
  expect_problem("what is voted for t is i64, expected bool");
}
TEST_F(GpuVerifyTest, VoteComparesIntegers) {
  Vote v = vote(Vote::Mode::match, DType::u32);
  v.value = load(acc, c(0));
  append(v);
  expect_problem("a vote compares what is no integer");
}
TEST_F(GpuVerifyTest, VoteIntoWords) {
  append(vote(Vote::Mode::ballot, DType::i32));
  expect_problem("a vote into said, which holds i32");
}
TEST_F(GpuVerifyTest, ShuffleTargetInRange) {
  Shuffle s = shuffle();
  s.dst_index = c(4);
  append(s);
  expect_problem("shuffle target: elements 4 and on (1) are outside acc[4]");
}

TEST_F(GpuVerifyTest, MatrixLoadInWholeWarps) {
  p.threads = 40;
  append(load_matrix());
  expect_problem("a matrix load in a block of 40 threads");
}
TEST_F(GpuVerifyTest, MatrixLoadCount) {
  LoadMatrix m = load_matrix();
  m.matrices = 3;
  append(m);
  expect_problem("a matrix load of 3");
}
TEST_F(GpuVerifyTest, MatrixLoadFromSharedMemory) {
  LoadMatrix m = load_matrix();
  m.src = a;
  m.src_index = c(0);
  append(m);
  expect_problem("a matrix load between a and a; expected shared memory and registers of one type");
}
TEST_F(GpuVerifyTest, MatrixLoadIntoRegisters) {
  LoadMatrix m = load_matrix();
  m.dst = halves;
  append(m);
  expect_problem("a matrix load between H and H");
}
TEST_F(GpuVerifyTest, MatrixLoadKeepsTheType) {
  LoadMatrix m = load_matrix();
  m.dst = acc;
  append(m);
  expect_problem("a matrix load between H and acc");
}
TEST_F(GpuVerifyTest, MatrixLoadOfNarrowTypes) {
  const MemoryId rows = shared("D", DType::f64, 64), target = registers("d", DType::f64, 4);
  append(LoadMatrix{target, c(0), rows, c(0), 4, false});
  expect_problem("a matrix load of f64");
}
TEST_F(GpuVerifyTest, TransposedMatrixLoadIsOfTwoBytes) {
  append(LoadMatrix{acc, c(0), tile, c(0), 4, true});
  expect_problem("a matrix load of f32");
}
TEST_F(GpuVerifyTest, MatrixLoadRegistersInRange) {
  LoadMatrix m = load_matrix();
  m.dst_index = c(2);
  append(m);
  expect_problem("matrix load: elements 2 and on (8) are outside a[8]");
}
TEST_F(GpuVerifyTest, MatrixLoadRowInRange) {
  LoadMatrix m = load_matrix();
  m.src_index = c(508);
  append(m);
  expect_problem("matrix load: elements 508 and on (8) are outside H[512]");
}
TEST_F(GpuVerifyTest, MatrixStoreInWholeWarps) {
  p.threads = 40;
  append(store_matrix());
  expect_problem("a matrix store in a block of 40 threads");
}
TEST_F(GpuVerifyTest, MatrixStoreCount) {
  StoreMatrix m = store_matrix();
  m.matrices = 0;
  append(m);
  expect_problem("a matrix store of 0");
}
TEST_F(GpuVerifyTest, MatrixStoreIsOfTwoBytes) {
  append(StoreMatrix{tile, c(0), acc, c(0), 4, false});
  expect_problem("a matrix store of f32");
}
TEST_F(GpuVerifyTest, MatrixStoreIntoWritableMemory) {
  p.memories[halves.value].read_only = true;
  append(store_matrix());
  expect_problem("matrix store: H is read-only");
}

TEST_F(GpuVerifyTest, MatrixInstructionInWholeWarps) {
  p.threads = 16;
  append(mma());
  expect_problem("a matrix instruction in a block of 16 threads");
}
TEST_F(GpuVerifyTest, MatrixInstructionHasRegisters) {
  WarpMma m = mma();
  m.b_registers = 0;
  append(m);
  expect_problem("mma.m16n8k16.f32.f16 without registers");
}
TEST_F(GpuVerifyTest, MatrixInstructionAInRange) {
  WarpMma m = mma();
  m.a_index = c(1);
  append(m);
  expect_problem("mma.m16n8k16.f32.f16 A: elements 1 and on (8) are outside a[8]");
}
TEST_F(GpuVerifyTest, MatrixInstructionBInRange) {
  WarpMma m = mma();
  m.b_registers = 5;
  append(m);
  expect_problem("B: elements 0 and on (5) are outside b[4]");
}
TEST_F(GpuVerifyTest, MatrixInstructionCInRange) {
  WarpMma m = mma();
  m.c_index = c(-1);
  append(m);
  expect_problem("C: elements -1 and on (4) are outside acc[4]");
}
TEST_F(GpuVerifyTest, MatrixInstructionOnRegisters) {
  WarpMma m = mma();
  m.a = halves;
  append(m);
  expect_problem("mma.m16n8k16.f32.f16 on H, which is not in registers");
}
TEST_F(GpuVerifyTest, MatrixInstructionRegistersHaveFixedIndices) {
  WarpMma m = mma();
  m.b_index = thread();
  append(m);
  expect_problem("b is in registers but its index t");
}

TEST_F(GpuVerifyTest, PrintShowsEveryStatement) {
  p.guards = {{0, 16}};
  p.min_blocks = 2;
  p.memories[tile.value].slots = 2;
  AsyncCopy guarded = copy();
  guarded.predicate = p.exprs.lt(thread(), c(5));
  append(guarded);
  append(AsyncCommit{});
  append(AsyncWait{1});
  append(Barrier{1, 32, true});
  append(shuffle());
  append(vote(Vote::Mode::ballot, DType::u32));
  append(load_matrix());
  append(store_matrix());
  append(mma());
  const std::string text = print_thread_program(p);
  for (const char* part :
       {"threads 64 (t)", "min_blocks 2", "X is a multiple of 16", "T: f32[256] slots 2",
        "async_copy 16 bytes T[t * 4] = X[t * 4] if t < 5 else 0", "async_commit", "async_wait pending 1",
        "arrive 1 threads 32", "acc[0] = shuffle lane ^ 16 of acc[1]", "said[0] = ballot of 32 lanes: t < 5",
        "a[0] = load_matrix x4 H[t * 8]", "store_matrix x4 H[t * 8] = a[0]",
        "mma.m16n8k16.f32.f16 acc[0] += a[0] * b[0]"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace tilegen::thread
