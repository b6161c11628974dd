// Kernels whose blocks claim points of the grid: which counter a launch is given.
#include <algorithm>
#include <set>
#include <thread>

#include "fake_machine.h"
#include "runtime/gpu/tile_counters.h"
#include "support/diag_codes.h"
#include "thread/tile_counter_table.h"

namespace tilegen::runtime::cuda {
namespace {

class TileCounterTest : public FakeMachine {
 protected:
  void SetUp() override {
    FakeMachine::SetUp();
    fake().fake_set_current(fake().fake_make_context(0));
  }
  static void claim(thread::ThreadProgram& p) {
    p.dynamic_tiles = true;
    p.launched_var = p.add_var("blocks", ir::VarKind::block_index);
    p.block_vars = {p.add_var("block", ir::VarKind::block_index)};
  }
  static std::shared_ptr<const driver::Artifact> claiming(bool maps = true, int kernels = 1) {
    ArtifactBuilder b(kernels == 1 ? "first" : "first second",
                      "dim m\ndim k\ntensor A: f16[m, k] readonly\ntensor C: f32[m, k]\n");
    for (int i = 0; i < kernels; ++i) {
      thread::ThreadProgram& p = b.kernel(i == 0 ? "first" : "second", 128);
      const ir::ExprId m = p.exprs.var(p.params[0].var), k = p.exprs.var(p.params[1].var);
      if (maps)
        p.tensor_maps.push_back({"A_map", p.params[2].memory, {k, m}, {p.exprs.mul(k, 2)}, {64, 128}, 128});
      claim(p);
    }
    return b.done();
  }
  static const FakeLaunch& last(int back = 0) {
    return *fake().fake_launch(fake().fake_launches() - 1 - back);
  }
  static Stream stream(uintptr_t i) { return reinterpret_cast<Stream>(0x1000 + 16 * i); }
  static uint64_t launch(const Executable& e, Stream on) {
    LaunchOptions options;
    options.stream = on;
    const std::vector<Argument> args = {integer(1 << 20), integer(64), address(4096), address(8192)};
    const Checked ok = e.launch(args, options);
    EXPECT_TRUE(ok) << (ok ? "" : ok.error().to_text());
    return last().maps > 0 ? last().behind : last().values[4];
  }
};

TEST_F(TileCounterTest, AStreamKeepsItsCounterAndHasItAlone) {
  auto e = executable(claiming());
  std::set<uint64_t> seen;
  for (uintptr_t i = 0; i < 40; ++i) {
    const uint64_t counter = launch(*e, stream(i));
    EXPECT_TRUE(seen.insert(counter).second) << i;
    EXPECT_EQ(counter % 4, 0u);
    EXPECT_EQ(*reinterpret_cast<const uint32_t*>(counter), 0u);
    EXPECT_EQ(launch(*e, stream(i)), counter);
  }
  EXPECT_EQ(launch(*e, nullptr), launch(*e, nullptr));
  EXPECT_EQ(seen.count(launch(*e, nullptr)), 0u);
  for (uintptr_t i = 0; i < 40; ++i) EXPECT_EQ(seen.count(launch(*e, stream(i))), 1u);
}

TEST_F(TileCounterTest, OtherParametersAreWhereTheyAre) {
  auto e = executable(claiming());
  launch(*e, stream(1));
  EXPECT_EQ(last().parameters, 4u);
  EXPECT_EQ(last().values[0], uint64_t{1} << 20);
  EXPECT_EQ(last().values[3], 8192u);
  ASSERT_EQ(last().maps, 1u);
  EXPECT_EQ(last().map[0].address, 4096u);
  EXPECT_LT(last().grid[0], 8192u);  // resident blocks, not points
}

TEST_F(TileCounterTest, KernelsWithoutMapsHaveItBehindTheirSlots) {
  auto e = executable(claiming(false));
  const uint64_t one = launch(*e, stream(1)), two = launch(*e, stream(2));
  EXPECT_EQ(last().parameters, 5u);
  EXPECT_NE(one, two);
  EXPECT_EQ(one, launch(*e, stream(1)));
}

// They run one after the other, too.
TEST_F(TileCounterTest, KernelsOfAProgramShareTheStreams) {
  auto e = executable(claiming(true, 2));
  const uint64_t second = launch(*e, stream(1));
  EXPECT_EQ(last(1).behind, second);
  EXPECT_STREQ(last(1).name, "first");
  EXPECT_STREQ(last().name, "second");
}

TEST_F(TileCounterTest, OtherLoadsHaveOthers) {
  auto a = executable(claiming()), b = executable(claiming());
  EXPECT_NE(launch(*a, stream(1)), launch(*b, stream(1)));
}

// A captured launch may run more than once at a time, so that no address could be its own.
TEST_F(TileCounterTest, CapturedLaunchesAreGivenTheTable) {
  auto e = executable(claiming());
  ASSERT_TRUE(e->prepare());
  const uint64_t own = launch(*e, stream(1)), other = launch(*e, stream(2));
  const int allocations = fake().fake_allocations();
  fake().fake_capture(stream(1), 1);
  const uint64_t captured = launch(*e, stream(1));
  EXPECT_EQ(captured % 32, thread::kClaimTableTag);
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(launch(*e, stream(1)), captured);
  EXPECT_EQ(launch(*e, stream(2)), other);  // not captured
  fake().fake_capture(stream(1), 0);
  EXPECT_EQ(launch(*e, stream(1)), own);
  EXPECT_EQ(fake().fake_forbidden_calls(), 0);
  EXPECT_EQ(fake().fake_allocations(), allocations);
  const auto* table = reinterpret_cast<const unsigned char*>(captured - thread::kClaimTableTag);
  EXPECT_TRUE(
      std::all_of(table, table + thread::kClaimTableBytes, [](unsigned char byte) { return byte == 0; }));
  for (const uint64_t counter : {own, other})
    EXPECT_TRUE(counter < captured || counter >= captured + thread::kClaimTableBytes);
}

TEST_F(TileCounterTest, StreamsBeyondTheFirstHundredsAreGivenTheTable) {
  auto e = executable(claiming());
  std::vector<uint64_t> given;
  std::set<uint64_t> own;
  for (uintptr_t i = 0; i < 3000; ++i) {
    given.push_back(launch(*e, stream(i)));
    if (given.back() % 2 == 0) {
      EXPECT_TRUE(own.insert(given.back()).second) << i;
    }
  }
  EXPECT_GT(own.size(), TileCounters::kStreams / 2);
  EXPECT_LE(own.size(), TileCounters::kStreams);
  for (uintptr_t i = 0; i < 3000; ++i) EXPECT_EQ(launch(*e, stream(i)), given[i]);
  const std::set<uint64_t> all(given.begin(), given.end());
  EXPECT_EQ(all.size(), own.size() + 1);
}

TEST_F(TileCounterTest, ThreadsOnOneStreamShareIt) {
  Result result = kSuccess;
  auto all = TileCounters::make(driver(), result);
  ASSERT_EQ(result, kSuccess);
  void* context = fake().fake_current();
  std::array<std::array<Pointer, 100>, 4> got{};
  std::vector<std::thread> threads;
  for (auto& of_thread : got)
    threads.emplace_back([&] {
      fake().fake_set_current(context);
      for (size_t i = 0; i < of_thread.size(); ++i) of_thread[i] = all->of_launch(stream(i));
    });
  for (std::thread& t : threads) t.join();
  for (const auto& of_thread : got) EXPECT_EQ(of_thread, got[0]);
  EXPECT_EQ(std::set<Pointer>(got[0].begin(), got[0].end()).size(), 100u);
}

// The handle of a thread's own default stream is the same for all threads, the stream is not. Old drivers do
// not number streams.
TEST_F(TileCounterTest, DefaultStreamsOfThreadsAreDifferentStreams) {
  const auto own = reinterpret_cast<Stream>(uintptr_t{2});
  for (const char* path : {TILEGEN_FAKE_CUDA_DRIVER, TILEGEN_FAKE_CUDA_OLD}) {
    FakeCuda controls(path);
    controls.fake_reset();
    auto loaded = Driver::load(path);
    ASSERT_TRUE(loaded);
    controls.fake_set_current(controls.fake_make_context(0));
    void* context = controls.fake_current();
    EXPECT_EQ((*loaded)->api().stream_id == nullptr, std::string(path) == TILEGEN_FAKE_CUDA_OLD);
    Result result = kSuccess;
    auto counters = TileCounters::make(**loaded, result);
    ASSERT_EQ(result, kSuccess);
    Pointer here = 0, again = 0, there = 0;
    here = counters->of_launch(own);
    again = counters->of_launch(own);
    std::thread([&] {
      controls.fake_set_current(context);
      there = counters->of_launch(own);
    }).join();
    EXPECT_EQ(here, again);
    EXPECT_NE(here, there);
    counters.reset();
    controls.fake_set_current(nullptr);
  }
}

TEST_F(TileCounterTest, MemoryGoesWithTheKernelAndOnlyItsOwn) {
  const int before = fake().fake_allocations();
  {
    auto e = executable(claiming());
    launch(*e, stream(1));
    EXPECT_EQ(fake().fake_allocations(), before + 1);
  }
  EXPECT_EQ(fake().fake_allocations(), before);
  {
    auto e = executable(one_kernel());
    ASSERT_TRUE(e->launch(arguments(8), {}));
    EXPECT_EQ(fake().fake_allocations(), before);
    EXPECT_EQ(fake().fake_calls("cuStreamGetId"), 1);  // the launch above
  }
}

TEST_F(TileCounterTest, WhatTheDriverCannotGiveIsSaid) {
  for (const char* call : {"cuMemAlloc_v2", "cuStreamCreate", "cuMemsetD8Async"}) {
    fake().fake_fail(call, kOutOfMemory, 0, 1);
    auto e = executable(claiming());
    const int before = fake().fake_allocations();
    expect_refusal(e->prepare(), DiagCode::driver_failure, "take their tiles from");
    EXPECT_EQ(fake().fake_allocations(), before) << call;
  }
}

}  // namespace
}  // namespace tilegen::runtime::cuda
