// Each test starts from a legal program, breaks one invariant and expects the one report that names it.
#include "legal_program.h"

namespace tilegen::thread {
namespace {

using ir::DType;
using ir::ExprId;
using ir::ExprOp;
using ir::VarKind;

TEST_F(ThreadVerifyTest, LegalProgramHasNoProblems) {
  EXPECT_EQ(verify_thread_program(p), std::vector<std::string>());
}

TEST_F(ThreadVerifyTest, KernelName) {
  p.name = "a-b";
  expect_problem("kernel name 'a-b'");
}
TEST_F(ThreadVerifyTest, GridAndBlockVariablesMatch) {
  p.grid.push_back(c(2));
  expect_problem("differ in number");
}
TEST_F(ThreadVerifyTest, GridIsOfDimsAndScalars) {
  p.grid[0] = p.exprs.cast(DType::i64, load(in, use(n)));
  expect_problem("grid extent reads memory");
}
TEST_F(ThreadVerifyTest, GridUsesNoBlockVariable) {
  p.grid[0] = use(bx);
  const auto problems = verify_thread_program(p);
  ASSERT_EQ(problems.size(), 2u);  // neither defined there nor of the right kind
  EXPECT_NE(problems[1].find("bx, which is neither a dim nor a scalar"), std::string::npos);
}
TEST_F(ThreadVerifyTest, ThreadVariable) {
  p.threads = 32;
  expect_problem("thread variable belongs");
}
TEST_F(ThreadVerifyTest, ThreadCount) {
  p.threads = 0;
  expect_problem("a block has 0 threads");
}

TEST_F(ThreadVerifyTest, StatementIdInRange) {
  p.body.push_back(StmtId(size_t{1000}));
  expect_problem("statement id out of range");
}
TEST_F(ThreadVerifyTest, ExpressionIdInRange) {
  append(Store{tile, ExprId(size_t{100000}), load(tile, c(0)), {}});
  expect_problem("store index: expression id out of range");
}
TEST_F(ThreadVerifyTest, MissingExpression) {
  append(Store{tile, c(0), ExprId(), {}});
  expect_problem("value stored to T: expression id out of range");
}
TEST_F(ThreadVerifyTest, MemoryIdInRange) {
  append(Store{MemoryId(size_t{9}), c(0), c(0), {}});
  expect_problem("store: memory id out of range");
}
TEST_F(ThreadVerifyTest, LoadedMemoryIdInRange) {
  const ExprId indices[] = {c(0)};
  append(Store{tile, c(0), p.exprs.load(MemoryId(size_t{9}), DType::f32, indices), {}});
  expect_problem("load: memory id out of range");
}
TEST_F(ThreadVerifyTest, VariableIdInRange) {
  append(Store{tile, p.exprs.var(ir::VarId(size_t{77})), load(tile, c(0)), {}});
  expect_problem("variable id out of range");
}
TEST_F(ThreadVerifyTest, LoopVariableIdInRange) {
  append(Loop{ir::VarId(), c(2), LoopForm::serial, {}});
  expect_problem("variable id out of range");
}

TEST_F(ThreadVerifyTest, VariableOutsideItsLoop) {
  append(Store{tile, use(i), load(tile, c(0)), {}});
  expect_problem("variable i is used outside the loop");
}
TEST_F(ThreadVerifyTest, VariableOfAnInnerLoopStaysOutside) {
  node<Branch>(node<Loop>(outer).body[2]).condition = p.exprs.lt(use(lane), use(n));
  expect_problem("variable v is used outside the loop");
}
TEST_F(ThreadVerifyTest, VariableDefinedTwice) {
  node<Loop>(unrolled).body.push_back(p.add(Loop{i, c(2), LoopForm::serial, {}}, "inner"));
  expect_problem("inner: variable i is defined twice");
}
TEST_F(ThreadVerifyTest, SiblingLoopsMayShareAVariable) {
  append(Loop{i, c(2), LoopForm::serial, {}});
  EXPECT_TRUE(verify_thread_program(p).empty());
}
TEST_F(ThreadVerifyTest, ConditionOfALoop) {
  node<Loop>(outer).condition = p.exprs.lt(c(0), use(n));
  EXPECT_TRUE(verify_thread_program(p).empty());
  node<Loop>(outer).condition = p.exprs.lt(use(i), use(n));
  expect_problem("variable i is used outside the loop");
}
TEST_F(ThreadVerifyTest, ConditionOfAnotherType) {
  node<Loop>(outer).condition = c(1);
  expect_problem("loop condition");
}
TEST_F(ThreadVerifyTest, ConditionOfAnUnrolledLoop) {
  node<Loop>(unrolled).condition = p.exprs.lt(c(0), use(n));
  expect_problem("the unrolled or vectorized loop over u has a condition");
}
TEST_F(ThreadVerifyTest, LoopVariableKind) {
  append(Loop{p.add_var("t", VarKind::thread), c(2), LoopForm::serial, {}});
  expect_problem("loop variable t is a variable of another kind");
}
TEST_F(ThreadVerifyTest, VariableType) {
  append(Store{tile, c(0), use(n, DType::f32), {}});
  expect_problem("variable n is i64 but used as f32");
}

TEST_F(ThreadVerifyTest, StoredValueType) {
  append(Store{tile, c(0), c(1), {}});
  expect_problem("value stored to T 1 is i64, expected f32");
}
TEST_F(ThreadVerifyTest, LoadType) {
  const ExprId indices[] = {c(0)};
  append(Store{tile, p.exprs.load(in, DType::i64, indices), load(tile, c(0)), {}});
  expect_problem("load of X is i64, its elements are f32");
}
TEST_F(ThreadVerifyTest, LoadIndexCount) {
  const ExprId indices[] = {c(0), c(0), c(0)};
  append(Store{tile, c(0), p.exprs.load(in, DType::f32, indices), {}});
  expect_problem("load of X has 3 indices");
}
TEST_F(ThreadVerifyTest, LoadPredicateType) {
  append(Store{tile, c(0), load_if(in, c(0), c(1)), {}});
  expect_problem("load of X predicate 1 is i64, expected bool");
}
TEST_F(ThreadVerifyTest, IndexType) {
  append(Store{tile, p.exprs.const_int(0, DType::i32), load(tile, c(0)), {}});
  expect_problem("store index 0i32 is i32, expected i64");
}
TEST_F(ThreadVerifyTest, PredicateType) {
  append(Store{tile, c(0), load(tile, c(0)), c(1)});
  expect_problem("store predicate 1 is i64, expected bool");
}
TEST_F(ThreadVerifyTest, ConditionType) {
  append(Branch{use(n), {}, {}});
  expect_problem("condition n is i64, expected bool");
}
TEST_F(ThreadVerifyTest, ExtentType) {
  append(Loop{i, p.exprs.const_int(2, DType::i32), LoopForm::serial, {}});
  expect_problem("loop extent 2i32 is i32, expected i64");
}

TEST_F(ThreadVerifyTest, ReadOnlyMemoryIsNotStoredTo) {
  append(Store{in, c(0), load(tile, c(0)), {}});
  expect_problem("extra: store: X is read-only");
}
TEST_F(ThreadVerifyTest, UnrolledExtentIsConstant) {
  node<Loop>(unrolled).extent = use(n);
  expect_problem("loop over u is not a constant");
}
TEST_F(ThreadVerifyTest, VectorizedExtentIsConstant) {
  node<Loop>(simd).extent = use(n);
  expect_problem("loop over v is not a constant");
}
TEST_F(ThreadVerifyTest, VectorizedExtentIsPositive) {
  node<Loop>(simd).extent = c(0);
  expect_problem("the loop over v has extent 0");
}
TEST_F(ThreadVerifyTest, VectorizedBodyHoldsStoresOnly) {
  node<Loop>(simd).body.push_back(p.add(Barrier{}, "b"));
  expect_problem("the vectorized loop over v holds something else than stores");
}
TEST_F(ThreadVerifyTest, RegistersAreNotIndexedBySerialLoops) {
  node<Store>(node<Loop>(unrolled).body[0]).index = use(i);
  expect_problem("acc is in registers but its index i");
}
TEST_F(ThreadVerifyTest, RegistersAreNotIndexedByLoads) {
  append(Store{tile, c(0), load(acc, p.exprs.cast(DType::i64, load(tile, c(0)))), {}});
  expect_problem("acc is in registers but its index cast(i64, T[0])");
}

TEST_F(ThreadVerifyTest, ConstantStoreIndexInRange) {
  append(Store{tile, c(64), load(tile, c(0)), {}});
  expect_problem("store: elements 64 and on (1) are outside T[64]");
}
TEST_F(ThreadVerifyTest, ConstantLoadIndexInRange) {
  append(Store{tile, c(0), load(tile, c(-1)), {}});
  expect_problem("load of T: elements -1 and on (1) are outside T[64]");
}
TEST_F(ThreadVerifyTest, ReducedLanesInRange) {
  append(LaneReduce{Combine::sum, tile, c(0), tile, c(60), 8, false});
  expect_problem("reduction source: elements 60 and on (8) are outside T[64]");
}

TEST_F(ThreadVerifyTest, SliceAlignment) {
  p.memories[tile.value].arena_offset = 100;
  expect_problem("memory T lies at 100, which is not aligned to 64");
}
TEST_F(ThreadVerifyTest, SliceInsideArena) {
  p.arena_bytes = 383;
  expect_problem("memory T ends outside the arena of 383 bytes");
}
TEST_F(ThreadVerifyTest, SliceSizeOverflow) {
  p.memories[tile.value].elements = INT64_MAX / 2;
  expect_problem("memory T ends outside the arena");
}
TEST_F(ThreadVerifyTest, AlignmentIsAPowerOfTwo) {
  p.memories[acc.value].alignment = 12;
  expect_problem("memory acc is aligned to 12 bytes");
}
TEST_F(ThreadVerifyTest, SizedMemoryLivesSomewhere) {
  p.memories[tile.value].arena_offset = -1;
  expect_problem("memory T must have either registers or a slice");
}
TEST_F(ThreadVerifyTest, RegistersAreLocal) {
  p.memories[acc.value].space = Space::shared;
  expect_problem("memory acc is in registers but not local");
}
TEST_F(ThreadVerifyTest, SizedMemoryHasElements) {
  p.memories[tile.value].elements = 0;
  expect_problem("memory T has no elements");
}
TEST_F(ThreadVerifyTest, OnChipMemoryIsNoParameter) {
  p.memories[tile.value].param = 2;
  expect_problem("memory T is a parameter but not global");
}
TEST_F(ThreadVerifyTest, GlobalMemoryHasNoSize) {
  p.memories[out.value].elements = 4;
  expect_problem("global memory Y has a size");
}
TEST_F(ThreadVerifyTest, GlobalMemoryIsAParameter) {
  p.add_memory(global("Z", 7, false));
  expect_problem("global memory Z is no tensor parameter");
}
TEST_F(ThreadVerifyTest, MemoryHasAType) {
  p.memories[tile.value].type = DType::none;
  const auto problems = verify_thread_program(p);  // its uses disagree as well
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].find("memory T has no element type"), std::string::npos);
}
TEST_F(ThreadVerifyTest, ParameterType) {
  p.params[3].type = DType::f16;
  expect_problem("parameter Y differs in type from its memory");
}
TEST_F(ThreadVerifyTest, DimParameterKind) {
  p.params[1].kind = Param::Kind::dim;
  const auto problems = verify_thread_program(p);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("parameter alpha is a variable of another kind"), std::string::npos);
  EXPECT_NE(problems[1].find("parameter alpha differs in type"), std::string::npos);
}

TEST_F(ThreadVerifyTest, StatementsFormATree) {
  p.body.push_back(outer);
  expect_problem("a statement stands in two places");
}
TEST_F(ThreadVerifyTest, CyclesEnd) {
  node<Loop>(outer).body.push_back(outer);
  expect_problem("a statement stands in two places");
}
TEST_F(ThreadVerifyTest, DeepNestingIsRefused) {
  StmtId inner = p.add(Barrier{}, "deep");
  for (int k = 0; k < 100000; ++k) inner = p.add(Branch{p.exprs.lt(use(n), c(5)), {inner}, {}}, "deep");
  p.body.push_back(inner);
  expect_problem("statements nest deeper than 256");
  EXPECT_NE(print_thread_program(p).find("..."), std::string::npos);
}

struct ThreadVerifyMmaTest : ThreadVerifyTest {
  HostMma mma;
  void SetUp() override {
    ThreadVerifyTest::SetUp();
    mma.mr = 2, mma.nr = 4, mma.k = 8, mma.pack = 1;
    mma.a = mma.b = mma.c = tile;
    mma.a_index = mma.b_index = mma.c_index = c(0);
    mma.a_row = 8, mma.a_k = 1, mma.b_k = 4, mma.c_row = 4;
  }
};

TEST_F(ThreadVerifyMmaTest, Legal) {
  append(mma);
  EXPECT_EQ(verify_thread_program(p), std::vector<std::string>());
}
TEST_F(ThreadVerifyMmaTest, KIsAMultipleOfPack) {
  mma.pack = 3;
  append(mma);
  expect_problem("an mma of 2x4x8 with pack 3");
}
TEST_F(ThreadVerifyMmaTest, AInRange) {
  mma.a_index = c(49);  // 49 + 8 + 7 = 64
  append(mma);
  expect_problem("mma A: elements 49 and on (16)");
}
TEST_F(ThreadVerifyMmaTest, BInRange) {
  mma.b_k = 9;  // 7 * 9 + 4 > 64
  append(mma);
  expect_problem("mma B: elements 0 and on (67)");
}
TEST_F(ThreadVerifyMmaTest, CInRange) {
  mma.c_row = INT64_MAX;
  append(mma);
  expect_problem("mma C: elements 0 and on");
}
TEST_F(ThreadVerifyMmaTest, CIsWritable) {
  mma.c = in;
  append(mma);
  expect_problem("mma C: X is read-only");
}
TEST_F(ThreadVerifyMmaTest, NegativeStride) {
  mma.a_row = -1;
  append(mma);
  expect_problem("an mma with a negative stride");
}
TEST_F(ThreadVerifyMmaTest, KindsAgree) {
  Memory m = p.memory(tile);
  m.name = "Q", m.type = DType::i8, m.arena_offset = 0;
  mma.b = p.add_memory(m);
  append(mma);
  expect_problem("an mma mixes floats and integers");
}

TEST_F(ThreadVerifyTest, ReductionWidth) {
  append(LaneReduce{Combine::max, tile, c(0), tile, c(0), 0, false});
  expect_problem("a reduction over 0 lanes");
}
TEST_F(ThreadVerifyTest, ReductionKeepsTheType) {
  Memory m = p.memory(tile);
  m.name = "H", m.type = DType::f16, m.arena_offset = 0;
  append(LaneReduce{Combine::max, p.add_memory(m), c(0), tile, c(0), 8, false});
  expect_problem("a reduction from T to H changes the type");
}
TEST_F(ThreadVerifyTest, PrefetchLocality) {
  append(Prefetch{in, c(0), 4});
  expect_problem("a prefetch with locality 4");
}
TEST_F(ThreadVerifyTest, PrefetchOfRegisters) {
  append(Prefetch{acc, c(0), 1});
  expect_problem("a prefetch of registers acc");
}

}  // namespace
}  // namespace tilegen::thread
