// Barriers of a warpgroup order what its threads do, and nothing else; accesses of loops of any length are
// told apart where their places repeat themselves.
#include "plant_program.h"

namespace tilegen::sync {
namespace {

constexpr int64_t kWarpgroup = 128, kThreads = 2 * kWarpgroup;

struct WarpgroupMaker : Maker {
  WarpgroupMaker() : Maker(kThreads) {}

  StmtId barrier_of(int64_t warpgroup) {
    return p.add(
        thread::Barrier{p.named_barrier({thread::BarrierUse::warpgroup, warpgroup}), kWarpgroup, false},
        "barrier");
  }
  StmtId each_warpgroup_meets() {
    const ExprId first = p.exprs.lt(t, c(kWarpgroup));
    return p.add(thread::Branch{first, {barrier_of(0)}, {barrier_of(1)}}, "meet");
  }
  // Element of another thread of the same warpgroup, and of the other one.
  ExprId neighbour() { return p.exprs.binary(ir::ExprOp::bit_xor, t, c(kWarpgroup - 1)); }
  ExprId opposite() { return p.exprs.binary(ir::ExprOp::bit_xor, t, c(kWarpgroup)); }
  int planted() {
    const int before = count(p.body);
    return plant(true) - before;
  }
};

TEST(WarpgroupBarriers, OrderWhatTheirThreadsDo) {
  WarpgroupMaker m;
  const MemoryId s = m.shared("s", kThreads);
  m.p.body = {m.write(s, m.t), m.each_warpgroup_meets(), m.read(s, m.neighbour())};
  EXPECT_EQ(m.plant(false), 2);
}

TEST(WarpgroupBarriers, OrderNothingOfAnotherWarpgroup) {
  WarpgroupMaker m;
  const MemoryId s = m.shared("s", kThreads);
  m.p.body = {m.write(s, m.t), m.each_warpgroup_meets(), m.read(s, m.opposite())};
  EXPECT_EQ(m.planted(), 1);
}

TEST(WarpgroupBarriers, OrderOnlyWhatStandsBefore) {
  WarpgroupMaker m;
  const MemoryId s = m.shared("s", kThreads);
  m.p.body = {m.each_warpgroup_meets(), m.write(s, m.t), m.read(s, m.neighbour())};
  EXPECT_EQ(m.planted(), 1);
}

TEST(WarpgroupBarriers, OneOfTwoWarpgroupsIsNotEnough) {
  WarpgroupMaker m;
  const MemoryId s = m.shared("s", kThreads);
  const StmtId one =
      m.p.add(thread::Branch{m.p.exprs.lt(m.t, m.c(kWarpgroup)), {m.barrier_of(0)}, {}}, "meet");
  m.p.body = {m.write(s, m.t), one, m.read(s, m.neighbour())};
  EXPECT_EQ(m.planted(), 1);
}

// A part of a tile that all lanes of warps write is its warpgroup's.
TEST(WarpgroupBarriers, OrderMatrixStores) {
  for (const bool meets : {true, false}) {
    WarpgroupMaker m;
    thread::Memory tile = m.p.memory(m.shared("tile", kThreads * 8));
    tile.type = ir::DType::f16;
    const MemoryId s = m.p.add_memory(tile);
    thread::Memory packed = m.p.memory(m.reg);
    packed.type = ir::DType::f16;
    const MemoryId r = m.p.add_memory(packed);
    const auto row_of = [&](ExprId thread) { return m.p.exprs.mul(thread, 8); };
    const StmtId first = m.p.add(thread::StoreMatrix{s, row_of(m.t), r, m.c(0), 4, false}, "first");
    const StmtId second =
        m.p.add(thread::StoreMatrix{s, row_of(m.neighbour()), r, m.c(0), 4, false}, "second");
    m.p.body = {first};
    if (meets) m.p.body.push_back(m.each_warpgroup_meets());
    m.p.body.push_back(second);
    EXPECT_EQ(m.plant(!meets), meets ? 2 : 1);
  }
}

// Thread t has the elements of its row that the iteration, modulo 4, says.
TEST(PeriodicAccesses, OneThreadWritesAnElementWheneverTheLoopComesBack) {
  Maker m;
  const MemoryId s = m.shared("s", 64 * 4);
  m.p.body = {m.loop(m.p.exprs.var(m.n), [&](ExprId i) {
    return Block{m.write(s, m.p.exprs.add(m.p.exprs.mul(m.t, 4), m.p.exprs.floormod(i, m.c(4))))};
  })};
  EXPECT_EQ(m.plant(false), 0);
}

TEST(PeriodicAccesses, AnotherThreadWritesTheElementInTheNextIteration) {
  Maker m;
  const MemoryId s = m.shared("s", 64);
  m.p.body = {m.loop(m.p.exprs.var(m.n), [&](ExprId i) {
    return Block{m.write(s, m.p.exprs.floormod(m.p.exprs.add(m.t, i), m.c(64)))};
  })};
  EXPECT_EQ(m.plant(true), 1);
}

// A row of 48 elements ends before the next slot, by the condition alone.
TEST(PeriodicAccesses, SlotsAreToldWhereConditionsKeepAnAccessInThem) {
  Maker m;
  const MemoryId s = m.shared("s", 48, 2);
  m.p.body = {m.loop(m.p.exprs.var(m.n), [&](ExprId i) {
    const ExprId at = m.p.exprs.add(m.p.exprs.mul(m.p.exprs.floormod(i, m.c(2)), 48), m.t);
    const StmtId write = m.write(s, at);
    std::get<thread::Store>(m.p.stmts[write.value].node).predicate = m.p.exprs.lt(m.t, m.c(48));
    return Block{write, m.read(s, m.p.exprs.add(m.p.exprs.mul(m.p.exprs.floormod(i, m.c(2)), 48), m.c(7)))};
  })};
  EXPECT_EQ(m.plant(true), 1);
}

// Of all threads the access would reach the next slot.
TEST(PeriodicAccesses, BranchesSayWhichThreadsAccess) {
  Maker m;
  const MemoryId s = m.shared("s", 32, 2);
  const ExprId first = m.p.exprs.lt(m.t, m.c(32));
  m.p.body = {m.loop(m.p.exprs.var(m.n), [&](ExprId i) {
    const ExprId slot = m.p.exprs.mul(m.p.exprs.floormod(m.p.exprs.mul(i, m.p.exprs.var(m.n)), m.c(2)), 32);
    const ExprId at = m.p.exprs.add(slot, m.t);
    return Block{m.p.add(thread::Branch{first, {m.write(s, at), m.write(s, at)}, {}}, "branch")};
  })};
  EXPECT_EQ(m.plant(false), 0);
}

}  // namespace
}  // namespace tilegen::sync
