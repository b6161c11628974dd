// Findings about async copies: each with its clean twin.
#include "finding_checks.h"

namespace tilegen::sim::test {
namespace {

struct Pipeline {
  int64_t pending = 0;
  bool barrier = true, early_store = false, commit = true, aligned = true;
};

void pipeline(GpuProgram& g, const Pipeline& how) {
  const MemoryId in = g.tensor("In", DType::i32), out = g.tensor("Out", DType::i32);
  const MemoryId tile = g.shared("Tile", DType::i32, 512, 2);
  for (int64_t s = 0; s < 2; ++s) {
    g.copy_async(tile, g.i(s * 256) + g.thread() * 4, in,
                 g.i(s * 256) + g.thread() * 4 + (how.aligned ? 0 : 1), 16, "k/copy#0");
    if (how.commit) g.commit();
  }
  if (how.early_store) g.store(in, g.i(3) + g.thread() * 4, as_i32(g.thread()), "k/change");
  g.wait(how.pending);
  if (how.barrier) g.barrier();
  g.store(out, g.thread(), g.load(tile, g.i(255) - g.thread()), "k/read");
}

struct SimAsync : SimFindings {
  alignas(16) inline static int32_t memory[2][1024];
  std::function<Arguments()> arguments = [] {
    std::iota(memory[0], memory[0] + 1024, 0);
    Arguments a;
    for (auto& t : memory)
      a.slots.push_back(std::bit_cast<uint64_t>(&t[0])), a.extents.push_back({0, sizeof t});
    return a;
  };
  Finding check(const Pipeline& how, FindingKind kind) {
    GpuProgram g(64);
    pipeline(g, how);
    return expect_one(g, kind, arguments);
  }
};

TEST_F(SimAsync, WaitedCopiesAreClean) {
  GpuProgram g(64);
  pipeline(g, {.pending = 1});  // the first group is all that is read
  expect_clean(g, arguments);
  for (int t = 0; t < 64; ++t) EXPECT_EQ(memory[1][t], 255 - t);
}
TEST_F(SimAsync, NotWaitedFor) {
  const Finding f = check({.pending = 2}, FindingKind::async_not_waited);
  EXPECT_EQ(f.site.op, "k/read");
  EXPECT_EQ(f.other.op, "k/copy#0");
  EXPECT_EQ(f.count, 64);
}
TEST_F(SimAsync, UncommittedCopiesAreInNoGroup) {
  check({.pending = 0, .commit = false}, FindingKind::async_not_waited);
}
TEST_F(SimAsync, AWaitOrdersOnlyItsThread) {
  GpuProgram g(64);
  pipeline(g, {.pending = 1, .barrier = false});
  for_each_schedule([&](const SimOptions& options) {
    const SimResult r = run(g, arguments(), options);
    bool race = false;
    for (const Finding& f : r.findings) race |= f.kind == FindingKind::data_race;
    EXPECT_TRUE(race) << texts(r);  // or, where the reader came first, a copy that was not waited for
  });
}
TEST_F(SimAsync, SourceChangedMeanwhile) {
  const Finding f = check({.pending = 0, .early_store = true}, FindingKind::async_source_changed);
  EXPECT_EQ(f.site.op, "k/change");
}
TEST_F(SimAsync, MisalignedSource) {
  EXPECT_EQ(check({.aligned = false}, FindingKind::misaligned).memory, "In");
}
TEST_F(SimAsync, OverwrittenBeforeItLanded) {
  const auto build = [](GpuProgram& g, bool wait) {
    const MemoryId in = g.tensor("In", DType::i32), tile = g.shared("Tile", DType::i32, 128);
    g.tensor("Out", DType::i32);
    g.copy_async(tile, g.thread() * 4, in, g.thread() * 4, 16, "k/copy#0");
    g.commit();
    if (wait) g.wait(0);
    g.store(tile, g.thread() * 4 + 1, g.num(0, DType::i32), "k/store");
  };
  GpuProgram bad(32), good(32);
  build(bad, false);
  build(good, true);
  expect_clean(good, arguments);
  EXPECT_EQ(expect_one(bad, FindingKind::async_not_waited, arguments).site.op, "k/store");
}
// When bytes arrive is free until the wait: a reader that does not wait sees one or the other.
TEST_F(SimAsync, EarliestAndLatestDiffer) {
  GpuProgram g(32);
  const MemoryId in = g.tensor("In", DType::i32), out = g.tensor("Out", DType::i32),
                 tile = g.shared("Tile", DType::i32, 128);
  g.loop(g.i(4), LoopForm::vectorized,
         [&](E v) { g.store(tile, g.thread() * 4 + v, g.num(-7, DType::i32)); });
  g.copy_async(tile, g.thread() * 4, in, g.thread() * 4, 16, "k/copy#0");
  g.commit();
  g.store(out, g.thread(), g.load(tile, g.thread() * 4), "k/read");
  for (bool latest : {false, true}) {
    SimOptions options;
    options.async_latest = latest;
    EXPECT_EQ(run(g, arguments(), options).findings.size(), 1u);
    for (int t = 0; t < 32; ++t) EXPECT_EQ(memory[1][t], latest ? -7 : 4 * t);
  }
}
TEST_F(SimAsync, PredicatedCopiesWriteZeros) {
  GpuProgram g(32);
  const MemoryId in = g.tensor("In", DType::i32), out = g.tensor("Out", DType::i32),
                 tile = g.shared("Tile", DType::i32, 128);
  g.add(thread::AsyncCopy{tile, (g.thread() * 4).id, in, (g.thread() * 100).id, 16, (g.thread() < 10).id},
        "k/copy#0");
  g.commit();
  g.wait(0);
  g.loop(g.i(4), LoopForm::vectorized,
         [&](E v) { g.store(out, g.thread() * 4 + v, g.load(tile, g.thread() * 4 + v)); });
  expect_clean(g, arguments);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(memory[1][i], i / 4 < 10 ? i / 4 * 100 + i % 4 : 0);
}

// Where the machine puts the words of lanes side by side, whatever the lanes say.
TEST_F(SimAsync, LanesThatAreOutOfOrder) {
  const auto build = [](GpuProgram& g, E to) {
    const MemoryId in = g.tensor("In", DType::i32), tile = g.shared("Tile", DType::i32, 64);
    g.tensor("Out", DType::i32);
    g.copy_async(tile, to, in, g.i(63) - g.thread(), 4, "k/copy#0");
    g.commit();
    g.wait(0);
  };
  for (bool ordered : {false, true}) {
    GpuProgram good(64), bad(64);
    good.p.machine.copies_in_lane_order = true;
    bad.p.machine.copies_in_lane_order = ordered;
    build(good, good.thread());
    build(bad, bad.thread() ^ 1);
    expect_clean(good, arguments);
    if (!ordered) expect_clean(bad, arguments);
    if (!ordered) continue;
    const Finding f = expect_one(bad, FindingKind::lane_order, arguments);
    EXPECT_EQ(f.site.op, "k/copy#0");
    EXPECT_EQ(f.memory, "Tile");
  }
}

}  // namespace
}  // namespace tilegen::sim::test
