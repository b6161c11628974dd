// Planting and its verifier, on hand-made programs: what misses a barrier is found by the verifier, planting
// mends it, and no barrier is planted that is not needed.
#include "plant_program.h"

namespace tilegen::sync {
namespace {

TEST(PlantBarriers, ReadOfAnothersElement) {
  Maker m;
  MemoryId s = m.shared("s", 64);
  m.p.body = {m.write(s, m.t), m.read(s, m.p.exprs.sub(m.c(63), m.t))};
  EXPECT_EQ(m.plant(true), 1);
}

TEST(PlantBarriers, OwnElementNeedsNone) {
  Maker m;
  MemoryId s = m.shared("s", 128);
  m.p.body = {m.write(s, m.t), m.write(s, m.add(m.t, 64)), m.read(s, m.t)};
  EXPECT_EQ(m.plant(false), 0);
}

TEST(PlantBarriers, OneBarrierServesSeveralHazards) {
  Maker m;
  MemoryId s = m.shared("s", 64), u = m.shared("u", 64);
  ExprId other = m.p.exprs.sub(m.c(63), m.t);
  m.p.body = {m.write(s, m.t), m.write(u, m.t), m.read(s, other), m.read(u, other)};
  EXPECT_EQ(m.plant(true), 1);
}

TEST(PlantBarriers, StraightCodeGetsTheFewest) {
  Maker m;
  MemoryId s = m.shared("s", 64), u = m.shared("u", 64);
  ExprId other = m.p.exprs.sub(m.c(63), m.t);
  // s -> read needs one; u is written before that one and read after it; the second write of s needs
  // another.
  m.p.body = {m.write(s, m.t),  m.write(u, m.t), m.read(s, other),
              m.read(u, other), m.write(s, m.t), m.read(s, m.t)};
  EXPECT_EQ(m.plant(true), 2);
}

TEST(PlantBarriers, OverlappingSlicesOfTheArena) {
  Maker m;
  MemoryId s = m.shared("s", 64), u = m.shared("u", 64, 1, 128);
  m.p.body = {m.read(s, m.t), m.write(u, m.t)};
  EXPECT_EQ(m.plant(true), 1);
}

TEST(PlantBarriers, BarrierStandsInFrontOfTheLoopThatReads) {
  Maker m;
  MemoryId s = m.shared("s", 64);
  m.p.body = {m.write(s, m.t), m.loop(m.c(8), [&](ExprId i) {
                return Block{m.read(s, m.p.exprs.floormod(m.p.exprs.add(m.t, i), m.c(64)))};
              })};
  EXPECT_EQ(m.plant(true), 1);
  EXPECT_EQ(m.p.body.size(), 3u);
}

// It may have no iteration, so what orders its own reads orders nothing behind it.
TEST(PlantBarriers, LoopWithAConditionIsPassedByWhatStandsBeforeIt) {
  for (const bool asked : {false, true}) {
    Maker m;
    MemoryId s = m.shared("s", 64), other = m.shared("other", 64);
    const StmtId loop = m.loop(m.c(8), [&](ExprId i) {
      return Block{m.write(other, m.t), m.read(other, m.p.exprs.floormod(m.p.exprs.add(m.t, i), m.c(64)))};
    });
    if (asked)
      std::get<thread::Loop>(m.p.stmts[loop.value].node).condition =
          m.p.exprs.lt(m.load(m.reg, m.c(1)), m.p.exprs.const_float(1, ir::DType::f32));
    m.p.body = {m.write(s, m.t), loop, m.read(s, m.p.exprs.sub(m.c(63), m.t))};
    EXPECT_EQ(m.plant(true), asked ? 3 : 2);
  }
}

TEST(PlantBarriers, LoopCarriedNeedsTwo) {
  Maker m;
  MemoryId s = m.shared("s", 64);
  m.p.body = {m.loop(m.p.exprs.var(m.n), [&](ExprId) {
    return Block{m.write(s, m.t), m.read(s, m.p.exprs.sub(m.c(63), m.t))};
  })};
  EXPECT_EQ(m.plant(true), 2);
}

TEST(PlantBarriers, TwoSlotsNeedOneAnIteration) {
  Maker m;
  MemoryId s = m.shared("s", 64, 2);
  m.p.body = {m.loop(m.p.exprs.var(m.n), [&](ExprId i) {
    ExprId slot = m.p.exprs.mul(m.p.exprs.floormod(i, m.c(2)), 64);
    return Block{m.write(s, m.p.exprs.add(slot, m.t)),
                 m.read(s, m.p.exprs.add(slot, m.p.exprs.sub(m.c(63), m.t)))};
  })};
  EXPECT_EQ(m.plant(true), 1);
}

TEST(PlantBarriers, ElementWiseNestsNeedNone) {
  Maker m;
  MemoryId s = m.shared("s", 512);
  auto at = [&](ExprId i) { return m.p.exprs.add(m.p.exprs.mul(i, 64), m.t); };
  m.p.body = {
      m.loop(
          m.c(8), [&](ExprId i) { return Block{m.write(s, at(i))}; }, thread::LoopForm::unrolled),
      m.loop(m.p.exprs.var(m.n), [&](ExprId) {
        return Block{m.loop(m.c(8), [&](ExprId i) { return Block{m.read(s, at(i)), m.write(s, at(i))}; })};
      })};
  EXPECT_EQ(m.plant(false), 0);
}

TEST(PlantBarriers, UniformBranchIsPassedByTheBarrierInFront) {
  Maker m;
  MemoryId s = m.shared("s", 64);
  StmtId guarded = m.p.add(
      thread::Branch{m.p.exprs.lt(m.c(3), m.p.exprs.var(m.n)), {m.read(s, m.p.exprs.sub(m.c(63), m.t))}, {}},
      "if");
  m.p.body = {m.write(s, m.t), guarded};
  EXPECT_EQ(m.plant(true), 1);
  EXPECT_EQ(m.p.body.size(), 3u);
}

TEST(PlantBarriers, DivergentBranchHasItsBarrierInFront) {
  Maker m;
  MemoryId s = m.shared("s", 64);
  StmtId guarded = m.p.add(thread::Branch{m.p.exprs.lt(m.t, m.c(32)), {m.read(s, m.add(m.t, 32))}, {}}, "if");
  m.p.body = {m.write(s, m.t), guarded};
  EXPECT_EQ(m.plant(true), 1);
}

TEST(PlantBarriers, HazardInsideDivergentBranchIsRefused) {
  Maker m;
  MemoryId s = m.shared("s", 64);
  ExprId other = m.p.exprs.sub(m.c(31), m.t);
  m.p.body = {
      m.p.add(thread::Branch{m.p.exprs.lt(m.t, m.c(32)), {m.write(s, m.t), m.read(s, other)}, {}}, "if")};
  EXPECT_FALSE(plant_barriers(m.p));
}

TEST(PlantBarriers, BarrierThatStandsThereIsUsed) {
  Maker m;
  MemoryId s = m.shared("s", 64);
  m.p.body = {m.write(s, m.t), m.p.add(thread::Barrier{}, "sync"), m.read(s, m.p.exprs.sub(m.c(63), m.t))};
  EXPECT_EQ(m.plant(false), 1);
}

TEST(PlantBarriers, MatrixLoadsReachOtherLanes) {
  Maker m;
  MemoryId s = m.shared("s", 256);
  m.p.body = {
      m.write(s, m.p.exprs.mul(m.t, 4)),
      m.p.add(thread::LoadMatrix{m.reg, m.c(0), s, m.p.exprs.mul(m.p.exprs.floormod(m.t, m.c(32)), 4), 4},
              "ld")};
  EXPECT_EQ(m.plant(true), 1);
}

// Lanes have rows of eight elements one after the other; a warp has two times 32.
TEST(PlantBarriers, MatrixStoresMeetWhereTheirRowsDo) {
  for (const bool apart : {true, false}) {
    Maker m;
    MemoryId s = m.shared("s", 1024);
    for (MemoryId half : {s, m.reg}) m.p.memories[half.value].type = ir::DType::f16;
    auto store = [&](int64_t at) {
      ir::ExprPool& e = m.p.exprs;
      const ExprId row = e.add(e.mul(e.floordiv(m.t, m.c(32)), 512), e.mul(e.floormod(m.t, m.c(32)), 8));
      return m.p.add(thread::StoreMatrix{s, e.add(row, at), m.reg, m.c(0), 4}, "st");
    };
    m.p.body = {store(0), store(apart ? 256 : 128)};
    EXPECT_EQ(m.plant(!apart), apart ? 0 : 1);
  }
}

TEST(PlantBarriers, CopyWithoutWaitIsWaitedFor) {
  Maker m;
  MemoryId s = m.shared("s", 64);
  m.p.body = {m.copy(s, m.t), m.read(s, m.t)};
  EXPECT_EQ(m.plant(true), 0);  // what the thread itself copied
  EXPECT_EQ(m.waits(m.p.body), 1);
}

TEST(PlantBarriers, CopyOfAnotherThreadTakesWaitAndBarrier) {
  Maker m;
  MemoryId s = m.shared("s", 64);
  m.p.body = {m.copy(s, m.t), m.read(s, m.p.exprs.sub(m.c(63), m.t))};
  EXPECT_EQ(m.plant(true), 1);
  EXPECT_EQ(m.waits(m.p.body), 1);
}

TEST(PlantBarriers, OneTensorWrittenByTwoOperations) {
  Maker m;
  thread::Memory g = m.p.memories[m.tensor.value];
  g.name = "C";
  g.read_only = false;
  g.param = 2;
  MemoryId c = m.p.add_memory(g);
  m.p.params.push_back({thread::Param::Kind::tensor, "C", ir::DType::f32, ir::VarId(), c});
  auto at = [&](ExprId i) { return m.p.exprs.add(m.p.exprs.mul(i, m.p.exprs.var(m.n)), m.t); };
  auto store = [&](ExprId i, const char* op) {
    return m.p.add(thread::Store{c, i, m.load(m.reg, m.c(0)), ExprId()}, op);
  };
  StmtId walk = m.loop(
      m.c(4), [&](ExprId i) { return Block{store(at(i), "loop")}; }, thread::LoopForm::unrolled);
  m.p.body = {walk, store(m.c(0), "second")};
  m.shared("s", 4);
  EXPECT_EQ(m.plant(false), 1);  // between the two, none within the walk of the first
  EXPECT_EQ(m.p.body.size(), 3u);
}

TEST(PlantBarriers, ManyCopiesInALoopDoNotWaitForEachOther) {
  Maker m;
  MemoryId s = m.shared("s", 64 * 32);
  auto at = [&](ExprId i) { return m.p.exprs.add(m.p.exprs.mul(i, 64), m.t); };
  m.p.body = {m.loop(
                  m.c(32), [&](ExprId i) { return Block{m.copy(s, at(i))}; }, thread::LoopForm::unrolled),
              m.read(s, m.p.exprs.sub(m.c(63), m.t))};
  EXPECT_EQ(m.plant(true), 1);
  EXPECT_EQ(m.waits(m.p.body), 1);
}

// The shape that pipeline lowering emits.
void pipeline(Maker& m, int64_t stages, bool wait) {
  ir::ExprPool& e = m.p.exprs;
  MemoryId s = m.shared("s", 64, stages);
  ExprId trips = e.var(m.n);
  for (int64_t k = 0; k + 1 < stages; ++k) {
    m.p.body.push_back(
        m.p.add(thread::Branch{e.lt(m.c(k), trips), {m.copy(s, m.add(m.t, k * 64))}, {}}, "first"));
    m.p.body.push_back(m.p.add(thread::AsyncCommit{}, "first"));
  }
  m.p.body.push_back(m.loop(trips, [&](ExprId i) {
    Block b;
    if (wait) b.push_back(m.p.add(thread::AsyncWait{stages - 2}, "wait"));
    ExprId ahead = m.add(i, stages - 1);
    ExprId into = e.add(e.mul(e.floormod(ahead, m.c(stages)), 64), m.t);
    b.push_back(m.p.add(thread::Branch{e.lt(ahead, trips), {m.copy(s, into)}, {}}, "issue"));
    b.push_back(m.p.add(thread::AsyncCommit{}, "issue"));
    b.push_back(m.read(s, e.add(e.mul(e.floormod(i, m.c(stages)), 64), e.sub(m.c(63), m.t))));
    return b;
  }));
}

TEST(PlantBarriers, PipelinesHaveOneBarrierAnIteration) {
  for (int64_t stages : {2, 3, 4, 5}) {
    Maker m;
    pipeline(m, stages, true);
    EXPECT_EQ(m.plant(true), 1) << print_thread_program(m.p);
    EXPECT_EQ(m.waits(m.p.body), 1) << print_thread_program(m.p);
  }
}

TEST(PlantBarriers, PipelineWithoutWaitIsMended) {
  Maker m;
  pipeline(m, 3, false);
  m.plant(true);
}

TEST(PlantBarriers, PipelineInALoop) {
  Maker m;
  Maker inner;
  pipeline(m, 3, true);
  Block body = m.p.body;
  m.p.body = {m.loop(m.p.exprs.var(m.n), [&](ExprId) { return body; })};
  EXPECT_EQ(m.plant(true), 2) << print_thread_program(m.p);
}

TEST(PlantBarriers, EpilogueThatReusesTheRing) {
  Maker m;
  pipeline(m, 3, true);
  MemoryId u = m.shared("u", 64, 1, 0);
  m.p.body.push_back(m.write(u, m.t));
  m.p.body.push_back(m.read(u, m.p.exprs.sub(m.c(63), m.t)));
  EXPECT_EQ(m.plant(true), 3) << print_thread_program(m.p);
}

TEST(SyncVerify, SlotReadTooEarlyIsFound) {
  Maker m;
  pipeline(m, 3, true);
  ASSERT_TRUE(plant_barriers(m.p));
  ASSERT_TRUE(thread::verify_synchronization(m.p).empty());
  for (thread::Stmt& s : m.p.stmts)
    if (auto* w = std::get_if<thread::AsyncWait>(&s.node)) w->pending = 2;
  EXPECT_FALSE(thread::verify_synchronization(m.p).empty());
}

TEST(SyncVerify, SlotOverwrittenTooEarlyIsFound) {
  Maker m;
  ir::ExprPool& e = m.p.exprs;
  // Writes slot (i + 1) % 2 after the barrier that precedes the reads of slot i % 2, but reads it again
  // after that.
  MemoryId s = m.shared("s", 64, 2);
  m.p.body = {m.loop(e.var(m.n), [&](ExprId i) {
    ExprId slot = e.mul(e.floormod(i, m.c(2)), 64), next = e.mul(e.floormod(m.add(i, 1), m.c(2)), 64);
    return Block{m.p.add(thread::Barrier{}, "sync"), m.write(s, e.add(next, m.t)),
                 m.read(s, e.add(slot, e.sub(m.c(63), m.t))), m.read(s, e.add(next, e.sub(m.c(63), m.t)))};
  })};
  EXPECT_FALSE(thread::verify_synchronization(m.p).empty());
}

// Each thread exchanges an element and adds to another one: unordered within the operation, but not behind
// another one, nor where a loop around it goes on.
TEST(SyncVerify, AtomicAccessesOfOneOperationAreNotOrdered) {
  for (const bool one : {true, false})
    for (const bool again : {false, true}) {
      Maker m;
      const MemoryId s = m.shared("s", 64);
      const auto atomic = [&](ir::AtomicKind kind, ExprId index, const char* operation) {
        thread::Store store;
        store.memory = s;
        store.index = index;
        store.value = m.p.exprs.const_number(1, m.p.memory(s).type);
        store.atomic = kind;
        return m.p.add(store, operation);
      };
      const Block body = {atomic(ir::AtomicKind::exchange, m.t, "first"),
                          atomic(ir::AtomicKind::add, m.p.exprs.sub(m.c(63), m.t), one ? "first" : "second")};
      m.p.body = body;
      if (again) m.p.body = {m.loop(m.p.exprs.var(m.n), [&](ExprId) { return body; })};
      EXPECT_EQ(thread::verify_synchronization(m.p).empty(), one && !again) << one << again;
    }
}

TEST(SyncVerify, DivergentBarrierIsFound) {
  Maker m;
  m.shared("s", 64);
  m.p.body = {
      m.p.add(thread::Branch{m.p.exprs.lt(m.t, m.c(32)), {m.p.add(thread::Barrier{}, "sync")}, {}}, "if")};
  EXPECT_FALSE(thread::verify_synchronization(m.p).empty());
}

}  // namespace
}  // namespace tilegen::sync
