// Findings about accesses: races, reads of nothing, bounds and alignment. Each kind has a program that
// triggers exactly it, and a twin that differs in one thing and is clean.
#include <fstream>
#include <sstream>

#include "finding_checks.h"

namespace tilegen::sim::test {
namespace {

// ---- races in shared memory

void exchange(GpuProgram& g, bool barrier) {
  const MemoryId out = g.tensor("Out", DType::i32), tile = g.shared("Tile", DType::i32, 64);
  g.store(tile, g.thread(), as_i32(g.thread()), "k/write");
  if (barrier) g.barrier();
  g.store(out, g.thread(), g.load(tile, g.i(63) - g.thread()), "k/read");
}

TEST_F(SimFindings, ReadOfWhatAnotherThreadWrites) {
  GpuProgram bad(64), good(64);
  exchange(bad, false);
  exchange(good, true);
  expect_clean(good, one);
  // Which of the two comes first depends on the schedule: a read of something unwritten is the same defect.
  for_each_schedule([&](const SimOptions& options) {
    const SimResult r = run(bad, one(), options);
    ASSERT_FALSE(r.findings.empty());
    bool race = false;
    for (const Finding& f : r.findings) {
      race |= f.kind == FindingKind::data_race;
      EXPECT_TRUE(f.kind == FindingKind::data_race || f.kind == FindingKind::uninitialised_read)
          << f.to_text();
    }
    EXPECT_TRUE(race) << texts(r);
  });
}

// Who asks only whether there is a finding need not wait for the rest of the launch.
TEST_F(SimFindings, TheFirstOneEndsTheRunWhereThatIsAskedFor) {
  GpuProgram bad(64), good(64);
  exchange(bad, false);
  exchange(good, true);
  for_each_schedule([&](SimOptions options) {
    const SimResult whole = run(bad, one(), options);
    options.first_finding_ends = true;
    const SimResult short_one = run(bad, one(), options);
    ASSERT_FALSE(short_one.findings.empty());
    EXPECT_LE(short_one.counters.statements, whole.counters.statements);
    EXPECT_EQ(texts(run(good, one(), options)), "");
  });
}

void handover(GpuProgram& g, bool second_barrier) {
  const MemoryId out = g.tensor("Out", DType::i32), tile = g.shared("Tile", DType::i32, 64);
  g.store(tile, g.thread(), as_i32(g.thread()), "k/first");
  g.barrier();
  g.store(out, g.thread(), g.load(tile, g.i(63) - g.thread()), "k/read");
  if (second_barrier) g.barrier();
  g.store(tile, g.thread(), as_i32(g.thread() * 2), "k/second");
}

TEST_F(SimFindings, WriteOfWhatAnotherThreadReads) {
  GpuProgram bad(64), good(64);
  handover(bad, false);
  handover(good, true);
  expect_clean(good, one);
  const Finding f = expect_one(bad, FindingKind::data_race, one);
  EXPECT_EQ(f.memory, "Tile");
  EXPECT_EQ(f.site.op, "k/read");
  EXPECT_EQ(f.other.op, "k/second");
  EXPECT_EQ(f.thread + f.other_thread, 63);
  EXPECT_EQ(f.count, 64);
  EXPECT_NE(f.message.find("read of Tile at Tile["), std::string::npos) << f.message;
  EXPECT_NE(f.message.find("is not ordered with the write of Tile by thread"), std::string::npos)
      << f.message;
}

TEST_F(SimFindings, EqualValuesWrittenTwiceAreARace) {
  const auto build = [](GpuProgram& g, bool guarded) {
    const MemoryId tile = g.shared("Tile", DType::i32, 64);
    if (guarded)
      g.store_if(tile, g.i(3), g.num(7, DType::i32), g.thread() == 0, "k/fill");
    else
      g.store(tile, g.i(3), g.num(7, DType::i32), "k/fill");
  };
  GpuProgram bad(64), good(64);
  build(bad, false);
  build(good, true);
  expect_clean(good, none);
  const Finding f = expect_one(bad, FindingKind::data_race, none);
  EXPECT_EQ(f.element, 3);
}

// Lanes of a warp run in step here, but nothing promises that.
TEST_F(SimFindings, LanesOfAWarpRaceToo) {
  const auto build = [](GpuProgram& g, bool barrier) {
    const MemoryId out = g.tensor("Out", DType::i32), tile = g.shared("Tile", DType::i32, 32);
    g.store(tile, g.thread(), as_i32(g.thread()));
    if (barrier) g.barrier(1, 32);
    g.store(out, g.thread(), g.load(tile, g.thread() ^ 1));
  };
  GpuProgram bad(32), good(32);
  build(bad, false);
  build(good, true);
  expect_clean(good, one);
  EXPECT_EQ(expect_one(bad, FindingKind::data_race, one).count, 32);
}

// A row that a matrix load names is read by all lanes, not by the one that names it.
TEST_F(SimFindings, MatrixLoadsReadForTheWholeWarp) {
  const auto build = [](GpuProgram& g, bool barrier) {
    const MemoryId tile = g.shared("Tile", DType::f16, 256), r = g.registers("r", DType::f16, 8);
    g.loop(g.i(8), LoopForm::vectorized,
           [&](E v) { g.store(tile, g.thread() * 8 + v, g.num(1, DType::f16)); });
    if (barrier) g.barrier();
    g.add(thread::LoadMatrix{r, g.i(0).id, tile, (g.thread() * 8).id, 4, false}, "ldmatrix");
  };
  GpuProgram bad(32), good(32);
  build(bad, false);
  build(good, true);
  expect_clean(good, none);
  expect_one(bad, FindingKind::data_race, none);
}

TEST_F(SimFindings, NamedBarriersOrderOnlyTheirWarps) {
  // Warps 0 and 1 exchange over barrier 1, 2 and 3 over barrier 2; a read across the pairs races.
  const auto build = [](GpuProgram& g, int64_t partner) {
    const MemoryId out = g.tensor("Out", DType::i32), tile = g.shared("Tile", DType::i32, 128);
    g.store(tile, g.thread(), as_i32(g.thread()));
    g.branch(
        g.warp() < 2, [&] { g.barrier(1, 64); }, [&] { g.barrier(2, 64); });
    g.store(out, g.thread(), g.load(tile, g.thread() ^ partner));
  };
  GpuProgram bad(128), good(128);
  build(bad, 64);
  build(good, 32);
  expect_clean(good, one);
  for_each_schedule([&](const SimOptions& options) {
    const SimResult r = run(bad, one(), options);
    ASSERT_FALSE(r.findings.empty());
  });
}

TEST_F(SimFindings, ArrivingOrdersWhatCameBefore) {
  // Warp 0 fills and arrives; warp 1 waits and reads. Going on, warp 0 must not overwrite.
  const auto build = [](GpuProgram& g, bool overwrite) {
    const MemoryId out = g.tensor("Out", DType::i32), tile = g.shared("Tile", DType::i32, 32);
    g.branch(
        g.warp() < 1,
        [&] {
          g.store(tile, g.lane(), as_i32(g.lane()), "k/fill");
          g.barrier(1, 64, true);
          if (overwrite) g.store(tile, g.lane(), as_i32(g.lane() * 2), "k/again");
        },
        [&] {
          g.barrier(1, 64);
          g.store(out, g.lane(), g.load(tile, g.i(31) - g.lane()), "k/read");
        });
  };
  GpuProgram bad(64), good(64);
  build(bad, true);
  build(good, false);
  expect_clean(good, one);
  expect_one(bad, FindingKind::data_race, one);
}

// ---- races in global memory

TEST_F(SimFindings, BlocksAreNotOrdered) {
  const auto build = [](GpuProgram& g, int64_t stride) {
    const MemoryId out = g.tensor("Out", DType::i32);
    g.store(out, g.block() * stride + g.thread(), as_i32(g.thread()), "k/store");
  };
  GpuProgram bad(32, 2), good(32, 2);
  build(bad, 16);
  build(good, 32);
  expect_clean(good, one);
  const Finding f = expect_one(bad, FindingKind::data_race, one);
  EXPECT_EQ(f.count, 16);
  EXPECT_NE(f.block, f.other_block);
  EXPECT_NE(f.message.find("nothing orders two blocks"), std::string::npos) << f.message;
}

TEST_F(SimFindings, ReadOfWhatAnotherBlockWrites) {
  const auto build = [](GpuProgram& g, int64_t from) {
    const MemoryId in = g.tensor("In", DType::i32), out = g.tensor("Out", DType::i32);
    g.store(out, g.block() * 32 + g.thread(), g.load(in, g.thread()), "k/store");
    g.store(in, g.i(512) + g.block() * 32 + g.thread(), g.load(out, g.i(from) + g.block() * 32 + g.thread()),
            "k/read");
  };
  GpuProgram bad(32, 2), good(32, 2);
  build(bad, 32);
  build(good, 0);
  expect_clean(good, two);
  expect_one(bad, FindingKind::data_race, two);
}

TEST_F(SimFindings, ThreadsOfABlockExchangeOverGlobalMemory) {
  const auto build = [](GpuProgram& g, bool barrier) {
    const MemoryId out = g.tensor("Out", DType::i32);
    g.store(out, g.thread(), as_i32(g.thread()));
    if (barrier) g.barrier();
    g.store(out, g.i(512) + g.thread(), g.load(out, g.thread() ^ 33));
  };
  GpuProgram bad(64), good(64);
  build(bad, false);
  build(good, true);
  expect_clean(good, one);
  expect_one(bad, FindingKind::data_race, one);
}

// Two parameters of one address are one memory.
TEST_F(SimFindings, AliasedTensorsShareTheirHistory) {
  GpuProgram g(32, 2);
  const MemoryId in = g.tensor("In", DType::i32), out = g.tensor("Out", DType::i32);
  g.store(out, g.block() * 32 + g.thread(), g.load(in, g.i(63) - (g.block() * 32 + g.thread())));
  expect_clean(g, two);
  expect_one(g, FindingKind::data_race, [this] { return refill(), Arguments().tensor(y).tensor(y); });
}

// ---- reads of nothing

TEST_F(SimFindings, UnwrittenSharedMemory) {
  const auto build = [](GpuProgram& g, int64_t threads) {
    const MemoryId out = g.tensor("Out", DType::i32), tile = g.shared("Tile", DType::i32, 64);
    g.store_if(tile, g.thread(), as_i32(g.thread()), g.thread() < threads);
    g.barrier();
    g.store(out, g.thread(), g.load(tile, g.thread()), "k/read");
  };
  GpuProgram bad(64, 2), good(64);
  build(bad, 63);
  build(good, 64);
  bad.p.stmts[bad.p.body.back().value].node = thread::Store{MemoryId(size_t{0}),
                                                            (bad.block() * 64 + bad.thread()).id,
                                                            bad.load(MemoryId(size_t{1}), bad.thread()).id,
                                                            {}};
  expect_clean(good, one);
  const Finding f = expect_one(bad, FindingKind::uninitialised_read, one);
  EXPECT_EQ(f.element, 63);
  EXPECT_EQ(f.count, 2);  // once a block: what one block wrote the next does not have
}

TEST_F(SimFindings, UnwrittenRegister) {
  const auto build = [](GpuProgram& g, int64_t lanes) {
    const MemoryId out = g.tensor("Out", DType::i32), r = g.registers("r", DType::i32, 2);
    g.branch(g.lane() < lanes, [&] { g.store(r, g.i(1), as_i32(g.thread())); });
    g.store(out, g.thread(), g.load(r, g.i(1)), "k/read");
  };
  GpuProgram bad(64), good(64);
  build(bad, 31);
  build(good, 32);
  expect_clean(good, one);
  const Finding f = expect_one(bad, FindingKind::uninitialised_read, one);
  EXPECT_EQ(f.memory, "r");
  EXPECT_EQ(f.thread, 31);
}

TEST_F(SimFindings, BytesOfAnotherTile) {
  const auto build = [](GpuProgram& g, int64_t offset) {
    const MemoryId out = g.tensor("Out", DType::i32), tile = g.shared("Tile", DType::i32, 64);
    const MemoryId reuse = g.shared("Reuse", DType::f32, 64, 1, offset);
    g.store(tile, g.thread(), as_i32(g.thread()), "k/tile");
    g.barrier();
    g.store(reuse, g.thread(), g.num(1, DType::f32), "k/reuse");
    g.barrier();
    g.store(out, g.thread(), g.load(tile, g.thread()), "k/read");
  };
  GpuProgram bad(64), good(64);
  build(bad, 128);
  build(good, 256);
  expect_clean(good, one);
  const Finding f = expect_one(bad, FindingKind::foreign_read, one);
  EXPECT_EQ(f.element, 32);
  EXPECT_EQ(f.count, 32);
  EXPECT_EQ(f.other.op, "k/reuse");
}

// ---- bounds and alignment

TEST_F(SimFindings, OutsideATensor) {
  const auto build = [](GpuProgram& g, int64_t shift) {
    const MemoryId out = g.tensor("Out", DType::i32);
    g.store(out, g.thread() + shift, as_i32(g.thread()), "k/store");
  };
  GpuProgram bad(64), below(64), good(64);
  build(bad, 961);
  build(below, -1);
  build(good, 960);
  expect_clean(good, one);
  EXPECT_EQ(expect_one(bad, FindingKind::out_of_bounds, one).element, 1024);
  EXPECT_EQ(expect_one(below, FindingKind::out_of_bounds, one).element, -1);
}

TEST_F(SimFindings, OutsideATileButInsideTheArena) {
  const auto build = [](GpuProgram& g, int64_t shift) {
    const MemoryId tile = g.shared("Tile", DType::i32, 64);
    g.shared("Next", DType::i32, 64);
    g.store(tile, g.thread() + shift, as_i32(g.thread()), "k/store");
  };
  GpuProgram bad(64), good(64);
  build(bad, 1);
  build(good, 0);
  expect_clean(good, none);
  EXPECT_EQ(expect_one(bad, FindingKind::out_of_bounds, none).element, 64);
}

TEST_F(SimFindings, OutsideTheRegisters) {
  const auto build = [](GpuProgram& g, int64_t extent) {
    const MemoryId r = g.registers("r", DType::i32, 4);
    g.loop(g.i(extent), LoopForm::unrolled, [&](E u) { g.store(r, u, as_i32(g.thread())); });
  };
  GpuProgram bad(32), good(32);
  build(bad, 5);
  build(good, 4);
  expect_clean(good, none);
  EXPECT_EQ(expect_one(bad, FindingKind::out_of_bounds, none).memory, "r");
}

TEST_F(SimFindings, MisalignedWideAccess) {
  const auto build = [](GpuProgram& g, int64_t shift) {
    const MemoryId in = g.tensor("In", DType::i32), out = g.tensor("Out", DType::i32);
    g.loop(g.i(4), LoopForm::vectorized,
           [&](E v) { g.store(out, g.thread() * 4 + v, g.load(in, g.thread() * 4 + v + shift), "k/copy"); });
  };
  GpuProgram bad(32), good(32), scattered(32);
  build(bad, 2);
  build(good, 4);
  alignas(16) static int32_t aligned[2][1024];
  const auto arguments = [] {
    Arguments a;
    for (auto& t : aligned)
      a.slots.push_back(std::bit_cast<uint64_t>(&t[0])), a.extents.push_back({0, sizeof t});
    return a;
  };
  expect_clean(good, arguments);
  const Finding f = expect_one(bad, FindingKind::misaligned, arguments);
  EXPECT_EQ(f.memory, "In");
  EXPECT_EQ(f.count, 32);
  // Element by element nothing needs more than the element's alignment.
  const MemoryId in = scattered.tensor("In", DType::i32), out = scattered.tensor("Out", DType::i32);
  scattered.loop(scattered.i(4), LoopForm::vectorized, [&](E v) {
    scattered.store(out, scattered.thread() * 4 + v,
                    scattered.load(in, scattered.thread() * 4 + v * 1 + 2 + v));
  });
  expect_clean(scattered, arguments);
}

TEST_F(SimFindings, MisalignedMatrixRow) {
  const auto build = [](GpuProgram& g, int64_t shift) {
    const MemoryId tile = g.shared("Tile", DType::f16, 512), r = g.registers("r", DType::f16, 8);
    g.loop(g.i(16), LoopForm::serial, [&](E e) { g.store(tile, g.thread() * 16 + e, g.num(1, DType::f16)); });
    g.barrier();
    g.add(thread::LoadMatrix{r, g.i(0).id, tile, (g.lane() * 8 + shift).id, 4, false}, "ldmatrix");
  };
  GpuProgram bad(32), good(32);
  build(bad, 4);
  build(good, 8);
  expect_clean(good, none);
  expect_one(bad, FindingKind::misaligned, none);
}

// ---- the report

TEST_F(SimFindings, ReportsAreBoundedAndLocated) {
  GpuProgram g(32);
  const MemoryId out = g.tensor("Out", DType::i32);
  for (int k = 0; k < 10; ++k)
    g.store(out, g.thread() + 2000, as_i32(g.thread()), "k/store#" + std::to_string(k));
  SimOptions options;
  options.max_findings = 4;
  options.locate = [](const std::string& path) {
    return SourceLocation{"f.tl", static_cast<uint32_t>(path.back() - '0' + 10), 3};
  };
  const SimResult r = run(g, one(), options);
  ASSERT_EQ(r.findings.size(), 4u);
  EXPECT_EQ(r.dropped, 6);
  EXPECT_EQ(r.findings[2].to_text(),
            "f.tl:12:3: out_of_bounds: k/store#2: write of Out at Out[2000] by thread 0 of block 0: 1 "
            "element from there, but "
            "the memory has 1024 (32 times)");
  EXPECT_EQ(r.findings[2].kernel, "kernel");
}

TEST_F(SimFindings, EveryKindIsDocumented) {
  std::stringstream page;
  page << std::ifstream(TILEGEN_SOURCE_DIR "/docs/simulator.md").rdbuf();
  for (size_t k = 0; k < finding_kind_count(); ++k) {
    const auto kind = static_cast<FindingKind>(k);
    EXPECT_NE(page.str().find(std::string("| `") + finding_name(kind) + "` |"), std::string::npos)
        << finding_name(kind);
    EXPECT_STRNE(finding_summary(kind), "");
    EXPECT_STRNE(finding_hint(kind), "");
  }
}

}  // namespace
}  // namespace tilegen::sim::test
