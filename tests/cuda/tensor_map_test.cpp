// Kernels with tensor maps and persistent kernels: what a launch makes of its arguments for them.
#include <thread>

#include "fake_machine.h"
#include "runtime/kernel_version.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::cuda {
namespace {

constexpr char kMatrices[] = "dim m\ndim k\ntensor A: f16[m, k] readonly\ntensor C: f32[m, k]\n";

// Maps of A [m, k] and C [m, k], a block for 128 rows.
void add_maps(thread::ThreadProgram& p) {
  const ir::ExprId m = p.exprs.var(p.params[0].var), k = p.exprs.var(p.params[1].var);
  p.tensor_maps.push_back({"A_map", p.params[2].memory, {k, m}, {p.exprs.mul(k, 2)}, {64, 128}, 128});
  p.tensor_maps.push_back({"C_map", p.params[3].memory, {k, m}, {p.exprs.mul(k, 4)}, {8, 64}, 32});
  p.threads = 384;
}

class TensorMapTest : public FakeMachine {
 protected:
  void SetUp() override {
    FakeMachine::SetUp();
    fake().fake_set_current(fake().fake_make_context(0));
  }
  static ArtifactBuilder with_maps() {
    ArtifactBuilder b("product", kMatrices);
    add_maps(b.kernel("product", 128));
    return b;
  }
  static std::vector<Argument> arguments(int64_t m, int64_t k, uint64_t a = 4096, uint64_t c = 8192) {
    return {integer(m), integer(k), address(a), address(c)};
  }
  static int encodings() { return fake().fake_calls("cuTensorMapEncodeTiled"); }
  static const FakeLaunch& last() { return *fake().fake_launch(fake().fake_launches() - 1); }
};

TEST_F(TensorMapTest, MapsAreMadeOfTheArguments) {
  auto e = executable(with_maps().done());
  ASSERT_TRUE(e->launch(arguments(300, 72), {}));
  const FakeLaunch& l = last();
  EXPECT_EQ(l.values[0], 300u);
  EXPECT_EQ(l.values[3], 8192u);
  ASSERT_EQ(l.maps, 2u);
  const FakeTensorMap &a = l.map[0], &c = l.map[1];
  EXPECT_EQ(a.address, 4096u);
  EXPECT_EQ(a.rank, 2u);
  EXPECT_EQ(a.type, 6u);     // FLOAT16
  EXPECT_EQ(a.swizzle, 3u);  // 128B
  EXPECT_EQ(a.extents[0], 72u);
  EXPECT_EQ(a.extents[1], 300u);
  EXPECT_EQ(a.strides[0], 144u);
  EXPECT_EQ(a.box[0], 64u);
  EXPECT_EQ(a.box[1], 128u);
  EXPECT_EQ(c.address, 8192u);
  EXPECT_EQ(c.type, 7u);     // FLOAT32
  EXPECT_EQ(c.swizzle, 1u);  // 32B
  EXPECT_EQ(c.strides[0], 288u);
  EXPECT_EQ(l.grid[0], 3u);
}

TEST_F(TensorMapTest, EveryTypeAndRank) {
  const std::pair<const char*, unsigned> kTypes[] = {{"f16", 6}, {"bf16", 9}, {"f32", 7},
                                                     {"f64", 8}, {"i8", 0},   {"u8", 0},
                                                     {"i32", 3}, {"i64", 5},  {"bool", 0}};
  for (const auto& [type, number] : kTypes)
    for (size_t rank = 1; rank <= 5; ++rank) {
      ArtifactBuilder b("copy", "dim m\ntensor A: " + std::string(type) + "[m]\n");
      thread::ThreadProgram& p = b.kernel("copy");
      thread::TensorMap map{"A_map", p.params[1].memory, {}, {}, {}, 0};
      for (size_t d = 0; d < rank; ++d) {
        map.extents.push_back(p.exprs.add(p.exprs.var(p.params[0].var), static_cast<int64_t>(d)));
        map.box.push_back(d == 0 ? 16 : 1);
        if (d > 0) map.strides.push_back(p.exprs.const_int(1024 << d));
      }
      p.tensor_maps.push_back(map);
      ASSERT_TRUE(executable(b.done())->launch(std::vector<Argument>{integer(32), address(4096)}, {}))
          << type << rank;
      EXPECT_EQ(last().map[0].type, number) << type;
      EXPECT_EQ(last().map[0].rank, rank);
      EXPECT_EQ(last().map[0].extents[rank - 1], 31 + rank);
      EXPECT_EQ(last().map[0].strides[rank == 1 ? 0 : rank - 2],
                rank == 1 ? 0 : uint64_t{1024} << (rank - 1));
    }
}

TEST_F(TensorMapTest, RepeatedLaunchesEncodeOnce) {
  auto e = executable(with_maps().done());
  const auto args = arguments(256, 64);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(e->launch(args, {}));
  EXPECT_EQ(encodings(), 2);
  EXPECT_EQ(last().map[0].address, 4096u);
  ASSERT_TRUE(e->launch(arguments(256, 64, 65536), {}));
  EXPECT_EQ(encodings(), 4);
  EXPECT_EQ(last().map[0].address, 65536u);
  ASSERT_TRUE(e->launch(args, {}));
  EXPECT_EQ(last().map[0].address, 4096u);
}

// Another kernel, and another thread, have maps of their own.
TEST_F(TensorMapTest, WhatIsRememberedBelongsToTheFormAndTheThread) {
  auto first = executable(with_maps().done());
  ArtifactBuilder b = with_maps();
  b.artifact_.kernels[0].tensor_maps[0].box[1] = 64;
  auto second = executable(b.done());
  const auto args = arguments(256, 64);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(first->launch(args, {}));
    EXPECT_EQ(last().map[0].box[1], 128u);
    ASSERT_TRUE(second->launch(args, {}));
    EXPECT_EQ(last().map[0].box[1], 64u);
  }
  void* context = fake().fake_current();
  std::thread([&] {
    fake().fake_set_current(context);
    EXPECT_TRUE(first->launch(args, {}));
    EXPECT_EQ(last().map[0].box[1], 128u);
  }).join();
}

TEST_F(TensorMapTest, ManyMapsAreMadeAnewEachTime) {
  ArtifactBuilder b("product", kMatrices);
  thread::ThreadProgram& p = b.kernel("product", 128);
  for (int i = 0; i < 4; ++i) add_maps(p);
  auto e = executable(b.done());
  ASSERT_TRUE(e->launch(arguments(256, 64), {}));
  ASSERT_TRUE(e->launch(arguments(256, 64), {}));
  EXPECT_EQ(encodings(), 16);
  EXPECT_EQ(last().maps, 8u);
  EXPECT_EQ(last().map[3].address, 8192u);
}

TEST_F(TensorMapTest, TensorsTheEngineCannotDescribeGoToTheNextVersion) {
  ArtifactBuilder b = with_maps();
  b.version("plain", 128);
  auto e = executable(b.done());
  const auto taken = [&](std::vector<Argument> args) {
    EXPECT_TRUE(e->launch(args, {}));
    return std::string(last().name);
  };
  EXPECT_EQ(taken(arguments(256, 64)), "product");
  EXPECT_EQ(taken(arguments(256, 64, 4104)), "plain");                // address
  EXPECT_EQ(taken(arguments(256, 64, 4096, 8200)), "plain");          // of the other tensor
  EXPECT_EQ(taken(arguments(256, 60)), "plain");                      // stride of 120 bytes
  EXPECT_EQ(taken(arguments(256, 0)), "plain");                       // nothing to sum over
  EXPECT_EQ(taken(arguments((int64_t{1} << 32) + 128, 8)), "plain");  // extent
  EXPECT_EQ(taken(arguments(1, int64_t{1} << 38)), "plain");          // stride, and extent
  EXPECT_EQ(taken(arguments(256, 64)), "product");
}

TEST_F(TensorMapTest, WhatTheDriverRefusesGoesToTheNextVersion) {
  ArtifactBuilder b = with_maps();
  b.version("plain", 128);
  auto e = executable(b.done());
  fake().fake_fail("cuTensorMapEncodeTiled", 1, 1, 1);  // the second map
  ASSERT_TRUE(e->launch(arguments(256, 64), {}));
  EXPECT_STREQ(last().name, "plain");
  ASSERT_TRUE(e->launch(arguments(256, 64), {}));
  EXPECT_STREQ(last().name, "product");
}

TEST_F(TensorMapTest, WithoutAnotherFormTheLaunchIsRefused) {
  auto e = executable(with_maps().done());
  expect_refusal(e->launch(arguments(256, 60), {}), DiagCode::launch_alignment,
                 "relies on A and C with addresses and strides % 16 == 0", "aligned");
  EXPECT_EQ(fake().fake_launches(), 0);
}

TEST_F(TensorMapTest, GuardsComeFirst) {
  ArtifactBuilder b = with_maps();
  b.artifact_.kernels[0].guards = {{0, 128}};
  b.version("plain", 128);
  auto e = executable(b.done());
  ASSERT_TRUE(e->launch(arguments(100, 64), {}));
  EXPECT_STREQ(last().name, "plain");
  EXPECT_EQ(encodings(), 0);
}

TEST_F(TensorMapTest, TooManyParametersAreRefused) {
  ArtifactBuilder b("product", kMatrices);
  thread::ThreadProgram& p = b.kernel("product", 128);
  for (int i = 0; i < 16; ++i) add_maps(p);
  expect_refusal(executable(b.done())->launch(arguments(256, 64), {}), DiagCode::launch_limit,
                 "4 parameters and 32 tensor maps are more than the 4096 bytes", "split");
}

TEST_F(TensorMapTest, ADriverWithoutTensorMapsIsNamed) {
  auto old = Driver::load(TILEGEN_FAKE_CUDA_OLD);
  ASSERT_TRUE(old);
  auto e = load_on_gpu(**old, with_maps().done(), 0);
  ASSERT_FALSE(e);
  EXPECT_NE(e.error().to_text().find("cuTensorMapEncodeTiled"), std::string::npos) << e.error().to_text();
  EXPECT_NE(e.error().to_text().find("sm_90"), std::string::npos);
  ArtifactBuilder plain("product", kMatrices);
  plain.kernel("product");
  EXPECT_TRUE(load_on_gpu(**old, plain.done(), 0));
}

TEST_F(TensorMapTest, PersistentKernelsLaunchWhatIsResident) {
  ArtifactBuilder b = with_maps();
  thread::ThreadProgram& p = b.artifact_.kernels[0];
  p.launched_var = p.add_var("launched", ir::VarKind::block_index);
  auto e = executable(b.done());
  ASSERT_TRUE(e->launch(arguments(128 * 7, 64), {}));
  EXPECT_EQ(last().grid[0], 7u);
  ASSERT_TRUE(e->launch(arguments(128 * 1000, 64), {}));
  EXPECT_EQ(last().grid[0], 132u * 2);  // the fake driver says 2 blocks of 384 threads
  EXPECT_EQ(fake().fake_calls("cuOccupancyMaxActiveBlocksPerMultiprocessor"), 1);
  expect_refusal(e->launch(arguments(int64_t{128} << 31, 8), {}), DiagCode::launch_alignment,
                 "as tensor maps need");
  ArtifactBuilder without("product", kMatrices);
  thread::ThreadProgram& q = without.kernel("product", 1);
  q.launched_var = q.add_var("launched", ir::VarKind::block_index);
  expect_refusal(executable(without.done())->launch(arguments(int64_t{1} << 31, 8), {}),
                 DiagCode::launch_limit,
                 "the grid has 2147483648 blocks along x, cuda:0 (Fake H200) launches at most 1073741824");
}

TEST_F(TensorMapTest, ClustersAreLaunchedAsSuch) {
  const auto clustered = [&](bool walks) {
    ArtifactBuilder b = with_maps();
    thread::ThreadProgram& p = b.artifact_.kernels[0];
    p.cluster = 2;
    p.grid[0] = p.exprs.mul(p.exprs.ceildiv(p.grid[0], p.exprs.const_int(2)), 2);
    if (walks) p.launched_var = p.add_var("launched", ir::VarKind::block_index);
    return executable(b.done());
  };
  auto one_tile = clustered(false);
  ASSERT_TRUE(one_tile->launch(arguments(128 * 7, 64), {}));
  EXPECT_EQ(last().grid[0], 8u);
  EXPECT_EQ(last().cluster, 2u);
  EXPECT_EQ(last().block[0], 384u);
  EXPECT_EQ(last().values[0], 128u * 7);
  auto persistent = clustered(true);
  ASSERT_TRUE(persistent->launch(arguments(128 * 3, 64), {}));
  EXPECT_EQ(last().grid[0], 4u);
  ASSERT_TRUE(persistent->launch(arguments(128 * 1000, 64), {}));
  EXPECT_EQ(last().grid[0], 6u);  // the fake driver says 3 clusters
  EXPECT_EQ(last().cluster, 2u);
  EXPECT_EQ(fake().fake_calls("cuLaunchKernel"), 0);
  EXPECT_EQ(fake().fake_calls("cuOccupancyMaxActiveBlocksPerMultiprocessor"), 0);
}

// The driver launches more than eight blocks only where the function allows them.
TEST_F(TensorMapTest, LargeClustersAreAllowedForTheFunction) {
  const auto clustered = [] {
    ArtifactBuilder b("scale");
    thread::ThreadProgram& p = b.kernel("scale");
    p.cluster = 16;
    p.grid = {p.exprs.const_int(32)};
    return b.done();
  };
  auto large = executable(clustered());
  fake().fake_fail("cuFuncSetAttribute", 1, 0, 1);
  const std::vector<Argument> args = {integer(16), address(4096), address(8192)};
  expect_refusal(large->launch(args, {}), DiagCode::driver_failure, "asking for clusters of 16 blocks");
  ASSERT_TRUE(executable(clustered())->launch(args, {}));
  EXPECT_EQ(last().cluster, 16u);
}

TEST_F(TensorMapTest, ClustersThatCannotRunAreRefused) {
  const auto clustered = [] {
    ArtifactBuilder b("scale");
    b.kernel("scale").cluster = 4;
    return b.done();
  };
  const std::vector<Argument> args = {integer(8), address(4096), address(8192)};
  fake().fake_set_clusters(0);
  expect_refusal(executable(clustered())->launch(args, {}), DiagCode::launch_limit,
                 "runs no cluster of 4 blocks");
  fake().fake_fail("cuOccupancyMaxActiveClusters", 1, 0, 1);
  expect_refusal(executable(clustered())->launch(args, {}), DiagCode::driver_failure,
                 "asking how many clusters");
  auto old = Driver::load(TILEGEN_FAKE_CUDA_OLD);
  ASSERT_TRUE(old);
  auto e = load_on_gpu(**old, clustered(), 0);
  ASSERT_TRUE(e) << e.error().to_text();
  expect_refusal((*e)->launch(args, {}), DiagCode::driver_absent, "which knows no clusters of blocks");
}

TEST_F(TensorMapTest, OccupancyThatCannotBeAskedForIsNamed) {
  ArtifactBuilder b = with_maps();
  thread::ThreadProgram& p = b.artifact_.kernels[0];
  p.launched_var = p.add_var("launched", ir::VarKind::block_index);
  auto shared = b.done();
  fake().fake_fail("cuOccupancyMaxActiveBlocksPerMultiprocessor", 1, 0, 1);
  expect_refusal(executable(shared)->launch(arguments(256, 64), {}), DiagCode::driver_failure,
                 "asking for the occupancy");
}

}  // namespace
}  // namespace tilegen::runtime::cuda
