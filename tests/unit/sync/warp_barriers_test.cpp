// Warps that alone have to do with each other meet at a barrier of their own; others do not.
#include "plant_program.h"

namespace tilegen::sync {
namespace {

constexpr int64_t kWarp = 32, kThreads = 4 * kWarp;
constexpr Planting kByWarps{false, true};

struct WarpMaker : Maker {
  WarpMaker() : Maker(kThreads) {}

  ExprId below(int64_t warps) { return p.exprs.lt(p.exprs.floordiv(t, c(kWarp)), c(warps)); }
  ExprId from(int64_t warp) { return p.exprs.le(c(warp), p.exprs.floordiv(t, c(kWarp))); }
  StmtId write_if(MemoryId m, ExprId i, ExprId condition) {
    return p.add(thread::Store{m, i, load(reg, c(0)), condition}, "write");
  }
  StmtId read_if(MemoryId m, ExprId i, ExprId condition) {
    const ExprId value = p.exprs.load(m, ir::DType::f32, std::vector<ExprId>{i, condition});
    return p.add(thread::Store{reg, c(0), value, condition}, "read");
  }
  ExprId opposite(int64_t bits) { return p.exprs.binary(ir::ExprOp::bit_xor, t, c(bits)); }
  // The threads that each barrier of the program is for; 0: all.
  std::vector<int64_t> threads_of_barriers() const {
    std::vector<int64_t> all;
    for (StmtId id : p.body) {
      const auto& node = p.stmts[id.value].node;
      const auto* branch = std::get_if<thread::Branch>(&node);
      const auto* met =
          std::get_if<thread::Barrier>(branch ? &p.stmts[branch->then_body[0].value].node : &node);
      if (met) all.push_back(met->threads);
    }
    return all;
  }
};

TEST(WarpBarriers, OfTheWarpsThatShare) {
  WarpMaker m;
  const MemoryId s = m.shared("s", kThreads);
  m.p.body = {m.write_if(s, m.t, m.below(2)), m.read_if(s, m.opposite(2 * kWarp - 1), m.below(2)),
              m.write_if(s, m.t, m.from(2)), m.read_if(s, m.opposite(kWarp), m.from(2))};
  EXPECT_EQ(m.plant(true, kByWarps), 2);
  EXPECT_EQ(m.threads_of_barriers(), (std::vector<int64_t>{2 * kWarp, 2 * kWarp}));
  EXPECT_EQ(m.p.named_barriers.size(), 2u);
}

TEST(WarpBarriers, OnlyWhereTheProgramSaysWhatThreadsDo) {
  WarpMaker m;
  const MemoryId s = m.shared("s", kThreads);
  m.p.body = {m.write_if(s, m.t, m.below(2)), m.read_if(s, m.opposite(kWarp), m.below(2))};
  EXPECT_EQ(m.plant(true), 1);
  EXPECT_EQ(m.threads_of_barriers(), std::vector<int64_t>{0});
}

TEST(WarpBarriers, OfTheBlockWhereOthersReadToo) {
  WarpMaker m;
  const MemoryId s = m.shared("s", kThreads);
  m.p.body = {m.write_if(s, m.t, m.below(2)), m.read_if(s, m.opposite(kWarp), m.below(2)),
              m.read_if(s, m.opposite(3 * kWarp), m.from(2))};
  EXPECT_EQ(m.plant(true, kByWarps), 2);
  EXPECT_EQ(m.threads_of_barriers(), (std::vector<int64_t>{2 * kWarp, 0}));
}

TEST(WarpBarriers, InLoopsOfAnyLength) {
  WarpMaker m;
  const MemoryId s = m.shared("s", kThreads);
  m.p.body = {m.loop(m.p.exprs.var(m.n), [&](ExprId) {
    return Block{m.write_if(s, m.t, m.from(2)), m.read_if(s, m.opposite(kWarp), m.from(2))};
  })};
  EXPECT_EQ(m.plant(true, kByWarps), 2);
  EXPECT_EQ(m.p.named_barriers.size(), 1u);
}

TEST(WarpBarriers, NoneOnAMachineWithoutThem) {
  WarpMaker m;
  m.p.machine.named_barriers = 0;
  const MemoryId s = m.shared("s", kThreads);
  m.p.body = {m.write_if(s, m.t, m.below(2)), m.read_if(s, m.opposite(kWarp), m.below(2))};
  EXPECT_EQ(m.plant(true, kByWarps), 1);
  EXPECT_EQ(m.threads_of_barriers(), std::vector<int64_t>{0});
}

// One warp hands something to another one: both meet, and no others.
TEST(WarpBarriers, OfWritersAndReaders) {
  WarpMaker m;
  const MemoryId s = m.shared("s", kThreads);
  const ExprId third = m.p.exprs.logical_and(m.from(2), m.below(3));
  m.p.body = {m.write_if(s, m.t, third), m.read_if(s, m.opposite(kWarp), m.from(3))};
  EXPECT_EQ(m.plant(true, kByWarps), 1);
  EXPECT_EQ(m.threads_of_barriers(), std::vector<int64_t>{2 * kWarp});
}

// The verifier finds what a barrier of other warps leaves open, and one that warps do not come by.
TEST(WarpBarriers, OfOtherWarpsOrderNothing) {
  for (const int64_t first : {0, 1}) {
    WarpMaker m;
    const MemoryId s = m.shared("s", kThreads);
    const StmtId met = m.p.add(
        thread::Barrier{m.p.named_barrier({thread::BarrierUse::warps, first, 2}), 2 * kWarp, false}, "meet");
    const ExprId inside = m.p.exprs.logical_and(m.from(first), m.below(first + 2));
    const StmtId branch = m.p.add(thread::Branch{inside, {met}, {}}, "meet");
    m.p.body = {m.write_if(s, m.t, m.below(2)), branch, m.read_if(s, m.opposite(kWarp), m.below(2))};
    EXPECT_EQ(thread::verify_synchronization(m.p).empty(), first == 0);
    m.p.body[1] = m.p.add(thread::Branch{m.below(1), {met}, {}}, "meet");
    EXPECT_FALSE(thread::verify_synchronization(m.p).empty());
  }
}

}  // namespace
}  // namespace tilegen::sync
