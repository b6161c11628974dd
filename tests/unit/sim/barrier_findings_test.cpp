// Findings about barriers and instructions of a whole warp: each with its clean twin.
#include "finding_checks.h"

namespace tilegen::sim::test {
namespace {

TEST_F(SimFindings, DivergentBarrier) {
  const auto build = [](GpuProgram& g, E condition) {
    g.branch(condition, [&] { g.barrier(0, 0, false, "k/barrier"); });
  };
  GpuProgram bad(64), good(64);
  build(bad, bad.lane() < 16);
  build(good, good.lane() < 32);
  expect_clean(good, none);
  EXPECT_EQ(expect_one(bad, FindingKind::divergent_barrier, none).site.op, "k/barrier");
}

TEST_F(SimFindings, BarrierAbandonedByWarpsThatExit) {
  const auto build = [](GpuProgram& g, int64_t warps) {
    g.branch(g.warp() < warps, [&] { g.barrier(0, 0, false, "k/barrier"); });
  };
  GpuProgram bad(96), good(96);
  build(bad, 2);
  build(good, 3);
  expect_clean(good, none);
  const Finding f = expect_one(bad, FindingKind::barrier_abandoned, none);
  EXPECT_NE(f.message.find("warp 0 waits at barrier 0 (64 of 96 threads there)"), std::string::npos)
      << f.message;
  EXPECT_NE(f.message.find("1 warp has exited"), std::string::npos) << f.message;
}

TEST_F(SimFindings, DifferentBarriersDeadlock) {
  const auto build = [](GpuProgram& g, int other) {
    g.branch(
        g.warp() < 1, [&] { g.barrier(1, 64, false, "k/one"); },
        [&] { g.barrier(other, 64, false, "k/two"); });
  };
  GpuProgram bad(64), good(64);
  build(bad, 2);
  build(good, 1);
  expect_clean(good, none);
  const Finding f = expect_one(bad, FindingKind::deadlock, none);
  EXPECT_EQ(f.site.op, "k/one");
  EXPECT_EQ(f.other.op, "k/two");
  EXPECT_NE(f.message.find("warp 1 waits at barrier 2 (32 of 64 threads there)"), std::string::npos)
      << f.message;
}

TEST_F(SimFindings, BarrierCountsDisagree) {
  const auto build = [](GpuProgram& g, int64_t count) {
    g.branch(
        g.warp() == 1, [&] { g.barrier(1, count, false, "k/one"); },
        [&] { g.barrier(1, 96, false, "k/two"); });
  };
  GpuProgram bad(96), good(96);
  build(bad, 64);
  build(good, 96);
  expect_clean(good, none);
  for_each_schedule([&](const SimOptions& options) {
    const SimResult r = run(bad, none(), options);
    ASSERT_FALSE(r.findings.empty());
    EXPECT_EQ(r.findings[0].kind, FindingKind::barrier_count)
        << texts(r);  // that one warp is left over follows from it
    EXPECT_NE(r.findings[0].other.op, r.findings[0].site.op);
  });
}

TEST_F(SimFindings, ArrivalsThatNobodyTakes) {
  // Warp 0 arrives for each of the waits of warp 1.
  const auto build = [](GpuProgram& g, int64_t waits) {
    g.branch(
        g.warp() < 1, [&] { g.barrier(1, 64, true, "k/arrive"); },
        [&] {
          for (int64_t i = 0; i < waits; ++i) g.barrier(1, 64, false, "k/wait");
        });
  };
  GpuProgram bad(64), good(64);
  build(bad, 0);
  build(good, 1);
  expect_clean(good, none);
  const Finding f = expect_one(bad, FindingKind::barrier_unclaimed, none);
  EXPECT_EQ(f.site.op, "k/arrive");
  EXPECT_NE(f.message.find("the block ends with 32 of 64 threads at barrier 1"), std::string::npos)
      << f.message;
}

TEST_F(SimFindings, ArrivingAgainBeforeItIsTaken) {
  // Two arrivals of one warp fill a barrier that the other has yet to come to.
  const auto build = [](GpuProgram& g, bool has_slots) {
    g.branch(
        g.warp() < 1,
        [&] {
          g.barrier(1, 64, true, "k/first");
          if (has_slots) g.barrier(2, 64);
          g.barrier(1, 64, true, "k/second");
          if (!has_slots) g.barrier(2, 64);
        },
        [&] {
          if (!has_slots) g.barrier(2, 64);
          g.barrier(1, 64);
          if (has_slots) g.barrier(2, 64, true);
          if (has_slots) g.barrier(1, 64);
        });
  };
  GpuProgram bad(64), good(64);
  build(bad, false);
  build(good, true);
  expect_clean(good, none);
  for_each_schedule([&](const SimOptions& options) {
    const SimResult r = run(bad, none(), options);
    ASSERT_FALSE(r.findings.empty());
    EXPECT_EQ(r.findings[0].kind, FindingKind::barrier_unclaimed) << texts(r);
    EXPECT_EQ(r.findings[0].site.op, "k/second");
    EXPECT_NE(r.findings[0].message.find("warp 0 has arrived already, 32 of 64 threads are there"),
              std::string::npos)
        << texts(r);
  });
}

// ---- warp-wide instructions

TEST_F(SimFindings, DivergentShuffle) {
  const auto build = [](GpuProgram& g, E condition) {
    const MemoryId r = g.registers("r", DType::i32, 1);
    g.branch(condition, [&] {
      g.add(thread::Shuffle{thread::Shuffle::Mode::butterfly, r, g.i(0).id, as_i32(g.thread()).id, g.i(1).id},
            "k/shuffle");
    });
  };
  GpuProgram bad(64), good(64);
  build(bad, bad.lane() < 16);
  build(good, good.warp() < 1);
  expect_clean(good, none);
  EXPECT_EQ(expect_one(bad, FindingKind::divergent_instruction, none).site.action, "shuffle");
}

TEST_F(SimFindings, ButterflyMasksDiffer) {
  const auto build = [](GpuProgram& g, E mask) {
    const MemoryId r = g.registers("r", DType::i32, 1);
    g.add(thread::Shuffle{thread::Shuffle::Mode::butterfly, r, g.i(0).id, as_i32(g.thread()).id, mask.id},
          "k/shuffle");
  };
  GpuProgram bad(64), good(64);
  build(bad, bad.lane() / 16);
  build(good, good.warp());
  expect_clean(good, none);
  expect_one(bad, FindingKind::divergent_operand, none);
}

TEST_F(SimFindings, EndlessWork) {
  GpuProgram g(32);
  const MemoryId r = g.registers("r", DType::i32, 1);
  g.loop(g.i(100), LoopForm::serial, [&](E) { g.store(r, g.i(0), as_i32(g.thread())); });
  SimOptions options;
  options.max_statements = 1000;
  EXPECT_EQ(texts(run(g, none(), options)), "");
  options.max_statements = 100;
  const SimResult r2 = run(g, none(), options);
  ASSERT_EQ(r2.findings.size(), 1u);
  EXPECT_EQ(r2.findings[0].kind, FindingKind::too_long);
}

}  // namespace
}  // namespace tilegen::sim::test
