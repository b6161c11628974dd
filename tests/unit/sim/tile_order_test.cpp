// Blocks that claim points of the grid: who gets which, that the counter is 0 after every launch, and what
// is said where it is not.
#include <set>

#include "finding_checks.h"
#include "sim/tile_order.h"

namespace tilegen::sim::test {
namespace {

const std::pair<int64_t, int64_t> kSizes[] = {{0, 0}, {1, 1}, {2, 1}, {2, 2},   {3, 2},        {7, 3},
                                              {8, 3}, {9, 3}, {5, 5}, {100, 7}, {131, 132 - 1}};

// Every number once, each block's increasing, its last the one that tells it to stop, and no other.
TEST(TileOrder, EachPointIsTakenOnceAndEachBlockStopsOnce) {
  for (const auto& [points, launched] : kSizes)
    for_each_schedule([&, points = points, launched = launched](const SimOptions& options) {
      TileOrder order(points, launched, options);
      std::set<int64_t> seen;
      for (int64_t b = 0; b < launched; ++b)
        for (int64_t before = -1;;) {
          const int64_t number = order.take(b);
          EXPECT_GT(number, before);
          EXPECT_TRUE(seen.insert(number).second) << number;
          before = number;
          if (launched + number >= points) break;
        }
      EXPECT_EQ(static_cast<int64_t>(seen.size()), points);
      EXPECT_EQ(order.counter(), 0) << points << " points, " << launched << " blocks";
    });
}

TEST(TileOrder, AFetchTooFewOrTooManyIsLeftInTheCounter) {
  TileOrder order(5, 2, {});
  for (int i = 0; i < 4; ++i) order.take(i % 2);
  EXPECT_EQ(order.counter(), 4);
  order.take(0);
  EXPECT_EQ(order.counter(), 0);
  order.take(0);
  EXPECT_EQ(order.counter(), 1);
}

// Counts the visits of each point in `y`, point by point as claimed.
struct Walk : GpuProgram {
  MemoryId y, point, number;
  thread::StmtId fetch;

  // `most` turns of a block; `extra` claims after the loop.
  explicit Walk(std::optional<int64_t> most = std::nullopt, int extra = 0) : GpuProgram(32) {
    const E points = dim("points");
    y = tensor("Y", DType::i32), point = registers("point", DType::i64, 1),
    number = registers("number", DType::i32, 1);
    p.grid = {points.id};
    p.launched_var = p.add_var("blocks", ir::VarKind::block_index);
    p.dynamic_tiles = true;
    const E blocks{&p.exprs, p.exprs.var(p.launched_var)};
    store(point, i(0), block());
    store(number, i(0), num(0, DType::i32));
    const ir::VarId v = p.add_var("turn", ir::VarKind::loop);
    thread::Loop loop{
        v, most ? i(*most).id : points.id, LoopForm::serial, {}, (load(point, i(0)) < points).id};
    open.push_back(&loop.body);
    branch(thread() < 1, [&] {
      GpuProgram::store(y, load(point, i(0)), load(y, load(point, i(0))) + num(1, DType::i32));
      fetch = add(thread::FetchTile{number, i(0).id}, "fetch_tile");
    });
    thread::Shuffle all;
    all.mode = thread::Shuffle::Mode::indexed;
    all.dst = number, all.dst_index = i(0).id, all.value = load(number, i(0)).id, all.lane = i(0).id;
    add(all, "take");
    GpuProgram::store(point, i(0), cast(DType::i64, load(number, i(0))) + blocks);
    open.pop_back();
    add(std::move(loop), "walk");
    for (int e = 0; e < extra; ++e)
      branch(thread() < 1, [&] { add(thread::FetchTile{number, i(0).id}, "after"); });
  }
};

SimOptions with_blocks(SimOptions options, int64_t launched) {
  options.resident_blocks = launched;
  return options;
}

TEST(SimDynamicTiles, EveryPointIsWalkedOnceWhateverTheOrder) {
  const Walk walk;
  for (int64_t points : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 64, 127})
    for (int64_t launched : {1, 2, 3, 7, 64, 128})
      for_each_schedule([&](const SimOptions& options) {
        std::vector<int32_t> y(128, 0);
        const SimResult r = run(walk, Arguments().dim(points).tensor(y), with_blocks(options, launched));
        EXPECT_EQ(texts(r), "") << points << " points, " << launched << " blocks, " << order_name(options);
        for (int64_t i = 0; i < 128; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], i < points) << i;
      });
}

TEST(SimDynamicTiles, BlocksThatDoNotAskToTheEndLeaveTheCounter) {
  const Walk walk(2);
  for_each_schedule([&](const SimOptions& options) {
    std::vector<int32_t> y(128, 0);
    const SimResult r = run(walk, Arguments().dim(20).tensor(y), with_blocks(options, 3));
    ASSERT_EQ(r.findings.size(), 1u) << texts(r);
    EXPECT_EQ(r.findings[0].kind, FindingKind::counter_left);
    EXPECT_EQ(r.findings[0].site.op, "fetch_tile");
    EXPECT_NE(r.findings[0].message.find("it is 6"), std::string::npos) << texts(r);
  });
}

TEST(SimDynamicTiles, BlocksThatAskAgainLeaveTheCounter) {
  const Walk walk(std::nullopt, 1);
  for_each_schedule([&](const SimOptions& options) {
    std::vector<int32_t> y(128, 0);
    const SimResult r = run(walk, Arguments().dim(20).tensor(y), with_blocks(options, 3));
    ASSERT_EQ(r.findings.size(), 1u) << texts(r);
    EXPECT_EQ(r.findings[0].kind, FindingKind::counter_left);
    EXPECT_NE(r.findings[0].message.find("it is 3"), std::string::npos) << texts(r);
  });
}

// Lanes leave a loop whose condition differs between them one by one.
TEST(SimDynamicTiles, ALoopEndsForEachLaneWhenItsConditionDoes) {
  GpuProgram g(32);
  const MemoryId y = g.tensor("Y", DType::i32), left = g.registers("left", DType::i64, 1),
                 turns = g.registers("turns", DType::i32, 1);
  g.store(left, g.i(0), g.thread() % 5);
  g.store(turns, g.i(0), g.num(0, DType::i32));
  const ir::VarId v = g.p.add_var("i", ir::VarKind::loop);
  thread::Loop loop{v, g.i(3).id, LoopForm::serial, {}, (g.i(0) < g.load(left, g.i(0))).id};
  g.open.push_back(&loop.body);
  g.store(left, g.i(0), g.load(left, g.i(0)) - 1);
  g.store(turns, g.i(0), g.load(turns, g.i(0)) + g.num(1, DType::i32));
  g.open.pop_back();
  g.add(std::move(loop), "walk");
  g.store(y, g.thread(), g.load(turns, g.i(0)));
  for_each_schedule([&](const SimOptions& options) {
    std::vector<int32_t> out(32, -1);
    EXPECT_EQ(texts(run(g, Arguments().tensor(out), options)), "");
    for (int t = 0; t < 32; ++t) EXPECT_EQ(out[static_cast<size_t>(t)], std::min(t % 5, 3)) << t;
  });
}

}  // namespace
}  // namespace tilegen::sim::test
