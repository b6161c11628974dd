// What a launch hands to the driver: the version chosen, the grid, the parameters; and what it refuses.
#include "fake_machine.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::cuda {
namespace {

class LaunchTest : public FakeMachine {};

const FakeLaunch& launch_at(int index) { return *fake().fake_launch(index); }

TEST_F(LaunchTest, GridBlockMemoryStreamAndParameters) {
  ArtifactBuilder b;
  b.kernel("scale").arena_bytes = 1000;
  int token = 0;
  LaunchOptions options;
  options.stream = &token;
  ASSERT_TRUE(executable(b.done())->launch(arguments(9, 256, 512), options));
  ASSERT_EQ(fake().fake_launches(), 1);
  const FakeLaunch& l = launch_at(0);
  EXPECT_STREQ(l.name, "scale");
  EXPECT_EQ(l.grid[0], 3u);
  EXPECT_EQ(l.grid[1] * l.grid[2], 1u);
  EXPECT_EQ(l.block[0], 128u);
  EXPECT_EQ(l.block[1] * l.block[2], 1u);
  EXPECT_EQ(l.shared_bytes, 1000u);
  EXPECT_EQ(l.stream, &token);
  ASSERT_EQ(l.parameters, 3u);
  EXPECT_EQ(l.values[0], 9u);
  EXPECT_EQ(l.values[1], 256u);
  EXPECT_EQ(l.values[2], 512u);
  EXPECT_EQ(fake().fake_calls("cuFuncSetAttribute"), 0);  // 48 KB need no asking
}

TEST_F(LaunchTest, ScalarsTravelInTheLowBytes) {
  ArtifactBuilder b("k", "dim m\nscalar s: f16\nscalar i: i8\ntensor X: f32[m]\n");
  b.kernel("k");
  Argument half;
  half.kind = Argument::Kind::floating;
  half.bits = std::bit_cast<uint64_t>(1.0);
  ASSERT_TRUE(executable(b.done())->launch(std::vector{integer(4), half, integer(-1), address(64)}, {}));
  EXPECT_EQ(launch_at(0).values[1], 0x3c00u);
  EXPECT_EQ(launch_at(0).values[2], 0xffu);
}

// A null address is aligned to everything; what follows it is whether it is there.
TEST_F(LaunchTest, OptionalTensorsAndTheirPresence) {
  ArtifactBuilder b("k", "dim m\ntensor X: f32[m] readonly optional\ntensor Y: f32[m]\n");
  b.kernel("k").guards = {{1, 16}};
  auto e = executable(b.done());
  ASSERT_TRUE(e->launch(std::vector{integer(4), address(0), address(64)}, {}));
  EXPECT_EQ(std::vector(launch_at(0).values, launch_at(0).values + 4), (std::vector<uint64_t>{4, 0, 0, 64}));
  ASSERT_TRUE(e->launch(std::vector{integer(4), address(128), address(64)}, {}));
  EXPECT_EQ(std::vector(launch_at(1).values, launch_at(1).values + 4),
            (std::vector<uint64_t>{4, 128, 1, 64}));
}

TEST_F(LaunchTest, TheFirstFormWhoseGuardsHold) {
  ArtifactBuilder b;
  b.kernel("scale").guards = {{1, 16}, {2, 16}, {0, 4}};
  b.version("scale__v1", 1);
  auto e = executable(b.done());
  const auto chosen = [&](int64_t m, uint64_t x, uint64_t y) -> std::string {
    EXPECT_TRUE(e->launch(arguments(m, x, y), {}));
    return launch_at(fake().fake_launches() - 1).name;
  };
  EXPECT_EQ(chosen(8, 64, 128), "scale");
  EXPECT_EQ(launch_at(fake().fake_launches() - 1).grid[0], 2u);
  EXPECT_EQ(chosen(8, 68, 128), "scale__v1");
  EXPECT_EQ(launch_at(fake().fake_launches() - 1).grid[0], 8u);  // each version has its own grid
  EXPECT_EQ(chosen(8, 64, 132), "scale__v1");
  EXPECT_EQ(chosen(9, 64, 128), "scale__v1");
  EXPECT_EQ(chosen(12, 64, 128), "scale");
}

TEST_F(LaunchTest, NoFittingFormNamesWhatIsRelied_on) {
  ArtifactBuilder b;
  b.kernel("scale").guards = {{1, 16}, {0, 4}};
  auto e = executable(b.done());
  expect_refusal(e->launch(arguments(8, 68), {}), DiagCode::launch_alignment,
                 "kernel 'scale' relies on X % 16 == 0, m % 4 == 0");
  EXPECT_EQ(fake().fake_launches(), 0);
}

TEST_F(LaunchTest, AGridOfNoBlocksLaunchesNothing) {
  ASSERT_TRUE(executable(one_kernel())->launch(arguments(0), {}));
  EXPECT_EQ(fake().fake_launches(), 0);
}

TEST_F(LaunchTest, KernelsOfASequenceRunInOrderOnOneStream) {
  ArtifactBuilder b("first second third");
  b.kernel("first");
  b.kernel("second").guards = {{1, 16}};
  b.version("second__v1");
  b.kernel("third", 2);
  int token = 0;
  LaunchOptions options;
  options.stream = &token;
  ASSERT_TRUE(executable(b.done())->launch(arguments(8, 68), options));
  ASSERT_EQ(fake().fake_launches(), 3);
  EXPECT_STREQ(launch_at(0).name, "first");
  EXPECT_STREQ(launch_at(1).name, "second__v1");
  EXPECT_STREQ(launch_at(2).name, "third");
  EXPECT_EQ(launch_at(2).grid[0], 4u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(launch_at(i).stream, &token);
}

// A driver that knows it may begin the kernel early: its code waits. An older one runs it after the one
// before.
TEST_F(LaunchTest, DependentKernelsMayBeginEarly) {
  ArtifactBuilder two("scale other");
  two.kernel("scale").dependent = true;
  two.kernel("other");
  ASSERT_TRUE(executable(two.done())->launch(arguments(8), {}));
  ASSERT_EQ(fake().fake_launches(), 2);
  EXPECT_EQ(launch_at(0).dependent, 1u);
  EXPECT_EQ(launch_at(0).grid[0], 2u);
  EXPECT_EQ(launch_at(1).dependent, 0u);
  EXPECT_EQ(fake().fake_calls("cuLaunchKernelEx"), 1);
  EXPECT_EQ(fake().fake_calls("cuLaunchKernel"), 1);
}

// So much shared memory that a multiprocessor has room for as many blocks as there are for each, and no more.
TEST_F(LaunchTest, FewDependentBlocksSpreadOverTheDevice) {
  const auto bytes_of = [&](int64_t arena, bool dependent, int64_t blocks) {
    ArtifactBuilder b;
    thread::ThreadProgram& k = b.kernel("scale");
    k.dependent = dependent;
    k.arena_bytes = arena;
    EXPECT_TRUE(executable(b.done())->launch(arguments(4 * blocks), {}));
    return int64_t{launch_at(fake().fake_launches() - 1).shared_bytes};
  };
  constexpr int64_t kOwn = 20 << 10, kAll = 228 << 10, kReserved = 1 << 10, kMachine = 132;
  for (int64_t each = 1; each <= 4; ++each)
    for (int64_t blocks : {kMachine * (each - 1) + 1, kMachine * each}) {
      const int64_t bytes = bytes_of(kOwn, true, blocks) + kReserved;
      EXPECT_LE(each * bytes, kAll) << blocks;
      EXPECT_GT((each + 1) * bytes, kAll) << blocks;
    }
  EXPECT_EQ(bytes_of(kOwn, true, 4 * kMachine + 1), kOwn);
  EXPECT_EQ(bytes_of(120 << 10, true, 1), 120 << 10) << "there is room for one in any case";
  EXPECT_EQ(bytes_of(kOwn, false, 1), kOwn);
  EXPECT_EQ(bytes_of(4 << 10, true, 1), 4 << 10) << "no tiles to wait for";
}

TEST_F(LaunchTest, ASequenceThatDoesNotFitLaunchesNothing) {
  ArtifactBuilder b("first second");
  b.kernel("first");
  b.kernel("second").guards = {{1, 16}};
  EXPECT_FALSE(executable(b.done())->launch(arguments(8, 68), {}));
  EXPECT_EQ(fake().fake_launches(), 0);
}

TEST_F(LaunchTest, SeveralGridExtentsHaveXLast) {
  ArtifactBuilder b;
  thread::ThreadProgram& k = b.kernel("scale");
  k.grid = {k.exprs.const_int(2), k.exprs.const_int(3), k.exprs.var(k.params[0].var)};
  auto e = executable(b.done());
  ASSERT_TRUE(e->launch(arguments(5), {}));
  EXPECT_EQ(launch_at(0).grid[0], 5u);
  EXPECT_EQ(launch_at(0).grid[1], 3u);
  EXPECT_EQ(launch_at(0).grid[2], 2u);
}

TEST_F(LaunchTest, AGridBeyondTheDeviceIsNamed) {
  ArtifactBuilder b;
  b.kernel("scale", 1);
  auto e = executable(b.done());
  const int64_t m = int64_t{1} << 33;
  expect_refusal(e->launch(arguments(m), {}), DiagCode::launch_limit,
                 "the grid has 8589934592 blocks along x, cuda:0 (Fake H200) launches at most 2147483647");
}

TEST_F(LaunchTest, LargeSharedMemoryIsAskedFor) {
  ArtifactBuilder b;
  b.kernel("scale").arena_bytes = 200 << 10;
  auto e = executable(b.done());
  ASSERT_TRUE(e->launch(arguments(8), {}));
  EXPECT_EQ(fake().fake_shared_allowed(), 200 << 10);
  ASSERT_TRUE(e->launch(arguments(8), {}));
  EXPECT_EQ(fake().fake_calls("cuFuncSetAttribute"), 1);
}

TEST_F(LaunchTest, TooMuchSharedMemoryIsNamed) {
  ArtifactBuilder b;
  b.kernel("scale").arena_bytes = 228 << 10;
  expect_refusal(executable(b.done())->prepare(), DiagCode::limit_memory,
                 "a block needs 233472 bytes of shared memory, cuda:0 (Fake H200) has 232448",
                 "smaller tiles");
}

TEST_F(LaunchTest, TooManyThreadsForTheRegistersAreNamed) {
  fake().fake_set_function(255, 16, 0, 96);
  expect_refusal(executable(one_kernel())->prepare(), DiagCode::launch_limit,
                 "a block has 128 threads, with 255 registers each cuda:0 (Fake H200) can run 96");
}

TEST_F(LaunchTest, TooManyParametersAreNamed) {
  ArtifactBuilder b;
  thread::ThreadProgram& k = b.kernel("scale");
  k.params.resize(513, k.params[0]);
  expect_refusal(executable(b.done())->prepare(), DiagCode::launch_limit,
                 "513 parameters are more than the 4096 bytes");
}

TEST_F(LaunchTest, TensorsMustLieOnTheDevice) {
  fake().fake_set_devices(2);
  auto e = executable(one_kernel(), 1);
  const int64_t shape[] = {8, 8};
  const auto both = [&](int32_t type, int32_t id) {
    Argument x;
    x.kind = Argument::Kind::tensor;
    x.type = ir::DType::f32;
    x.bits = 4096;
    x.shape = shape;
    x.place = {type, id};
    Argument y = x;
    y.place = {MemoryPlace::cuda, 1};
    return e->launch(std::vector{x, y}, {});
  };
  EXPECT_TRUE(both(MemoryPlace::cuda, 1));
  EXPECT_TRUE(both(MemoryPlace::cuda_managed, 0));
  EXPECT_TRUE(both(MemoryPlace::cuda_host, 0));
  expect_refusal(both(MemoryPlace::cuda, 0), DiagCode::launch_device,
                 "tensor 'X' lives on cuda:0, the kernel runs on cuda:1", "copy the tensor to that device");
  expect_refusal(both(MemoryPlace::cpu, 0), DiagCode::launch_device, "tensor 'X' lives on the host");
  expect_refusal(both(MemoryPlace::rocm, 2), DiagCode::launch_device, "lives on hip:2");
  EXPECT_EQ(fake().fake_launches(), 3);
}

TEST_F(LaunchTest, InfoIsEstimatedBeforeAndMeasuredBehindTheLoad) {
  ArtifactBuilder b;
  thread::ThreadProgram& k = b.kernel("scale");
  k.guards = {{1, 16}};
  k.arena_bytes = 100 << 10;
  b.version("scale__v1");
  auto e = executable(b.done());
  auto rows = e->info();
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_FALSE((*rows)[0].measured);
  EXPECT_EQ((*rows)[0].registers, -1);
  EXPECT_EQ((*rows)[0].guards, "X % 16 == 0");
  EXPECT_EQ((*rows)[0].blocks_per_multiprocessor, 2);   // 228 KB / 101 KB
  EXPECT_EQ((*rows)[1].blocks_per_multiprocessor, 16);  // 2048 threads / 128
  EXPECT_EQ((*rows)[1].variant, 1u);
  EXPECT_EQ(e->load_log(), "");
  EXPECT_EQ(fake().fake_calls("cuModuleLoadDataEx"), 0);

  fake().fake_set_function(40, 8, 16, 1024);
  fake().fake_set_logs("ptxas info    : Used 40 registers\n", "");
  ASSERT_TRUE(e->prepare());
  rows = e->info();
  ASSERT_TRUE(rows);
  EXPECT_TRUE((*rows)[0].measured);
  EXPECT_EQ((*rows)[0].registers, 40);
  EXPECT_EQ((*rows)[0].local_bytes, 8);
  EXPECT_EQ((*rows)[0].static_shared_bytes, 16);
  EXPECT_EQ((*rows)[0].dynamic_shared_bytes, 100 << 10);
  EXPECT_EQ((*rows)[0].max_threads, 1024);
  EXPECT_EQ((*rows)[0].blocks_per_multiprocessor, 8);  // as the driver says
  EXPECT_EQ(e->load_log(), "ptxas info    : Used 40 registers");
  EXPECT_GE(e->load_ms(), 0.0);
  EXPECT_EQ(fake().fake_current(), nullptr);
}

TEST_F(LaunchTest, InfoOutlivesTheContextOfTheFirstLoad) {
  void* mine = fake().fake_make_context(0);
  fake().fake_set_current(mine);
  auto e = executable(one_kernel());
  ASSERT_TRUE(e->prepare());
  fake().fake_destroy_context(mine);
  fake().fake_set_current(nullptr);
  const auto rows = e->info();
  ASSERT_TRUE(rows);
  EXPECT_FALSE((*rows)[0].measured);
  EXPECT_EQ((*rows)[0].blocks_per_multiprocessor, 16);
}

TEST_F(LaunchTest, AnArtifactWithoutCodeIsRefused) {
  ArtifactBuilder b;
  b.kernel("scale");
  b.artifact_.code.clear();
  auto artifact = std::make_shared<const driver::Artifact>(b.artifact_);
  auto loaded = load_on_gpu(driver(), artifact, 0);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().diagnostics[0].code, DiagCode::target_unsupported);
}

}  // namespace
}  // namespace tilegen::runtime::cuda
