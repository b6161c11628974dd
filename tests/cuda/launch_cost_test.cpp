// What a launch costs beyond the driver's own call: no allocation, no further driver calls than the one that
// asks which context is current, no waiting.
#include <cstdlib>
#include <map>
#include <new>

#include "fake_machine.h"

namespace {
thread_local long t_allocations = 0;
}

// Not inlined, so that the compiler does not see malloc after new.
__attribute__((noinline)) void* operator new(size_t size) {
  ++t_allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace tilegen::runtime::cuda {
namespace {

class LaunchCostTest : public FakeMachine {};

constexpr char kThreeTensors[] =
    "dim m divisible 8\ndim n\ndim k\ntensor A: f16[m, k] readonly\ntensor B: f16[k, n] readonly\n"
    "tensor C: f32[m, n]\n";

// ceildiv(m, 128) * ceildiv(n, 128) blocks.
std::shared_ptr<const driver::Artifact> gemm() {
  ArtifactBuilder b("gemm", kThreeTensors);
  for (int version = 0; version < 2; ++version) {
    thread::ThreadProgram& p = version == 0 ? b.kernel("gemm") : b.version("gemm__v1");
    const auto tiles = [&](size_t i) {
      return p.exprs.ceildiv(p.exprs.var(p.params[i].var), p.exprs.const_int(128));
    };
    p.grid = {p.exprs.mul(tiles(0), tiles(1))};
    if (version == 0) p.guards = {{3, 16}, {4, 16}, {5, 16}, {1, 8}, {2, 8}};
  }
  return b.done();
}

struct Tensors {
  int64_t a[2] = {512, 256}, b[2] = {256, 384}, c[2] = {512, 384}, strides[2] = {384, 1};
  std::vector<Argument> list() {
    const auto tensor = [](const int64_t* shape, ir::DType type, uint64_t at) {
      Argument x;
      x.kind = Argument::Kind::tensor;
      x.type = type;
      x.bits = at;
      x.shape = {shape, 2};
      x.place = {MemoryPlace::cuda, 0};
      return x;
    };
    std::vector<Argument> all = {tensor(a, ir::DType::f16, 4096), tensor(b, ir::DType::f16, 8192),
                                 tensor(c, ir::DType::f32, 16384)};
    all[2].strides = strides;
    return all;
  }
};

std::map<std::string, int> calls() {
  std::map<std::string, int> counts;
  for (const char* f : {"cuCtxGetCurrent", "cuCtxGetId", "cuLaunchKernel"}) counts[f] = fake().fake_calls(f);
  counts["all"] = fake().fake_all_calls();
  return counts;
}

void expect_lean(const Executable& e, std::span<const Argument> args) {
  const auto before = calls();
  const long allocations = t_allocations;
  const Checked ok = e.launch(args, {});
  EXPECT_EQ(t_allocations, allocations);
  EXPECT_TRUE(ok);
  const auto after = calls();
  EXPECT_EQ(after.at("cuLaunchKernel") - before.at("cuLaunchKernel"), 1);
  EXPECT_EQ(after.at("cuCtxGetCurrent") - before.at("cuCtxGetCurrent"), 1);
  EXPECT_EQ(after.at("cuCtxGetId") - before.at("cuCtxGetId"), 1);
  EXPECT_EQ(after.at("all") - before.at("all"), 3);
}

TEST_F(LaunchCostTest, ThreeTensorsCheckedWithoutAllocation) {
  auto e = executable(gemm());
  fake().fake_set_current(fake().fake_make_context(0));
  ASSERT_TRUE(e->prepare());
  Tensors t;
  expect_lean(*e, t.list());
  const FakeLaunch& l = *fake().fake_launch(0);
  EXPECT_STREQ(l.name, "gemm");
  EXPECT_EQ(l.grid[0], 12u);
  EXPECT_EQ(l.values[0], 512u);
  EXPECT_EQ(l.values[1], 384u);
  EXPECT_EQ(l.values[2], 256u);
}

TEST_F(LaunchCostTest, RawPointersWithoutAllocation) {
  auto e = executable(gemm());
  fake().fake_set_current(fake().fake_make_context(0));
  ASSERT_TRUE(e->prepare());
  const std::vector<Argument> args = {integer(512),  integer(384),  integer(100),
                                      address(4096), address(8192), address(16384)};
  expect_lean(*e, args);
  EXPECT_STREQ(fake().fake_launch(0)->name, "gemm__v1");  // 100 is no multiple of 8
}

// Tensor maps are made at the first launch with its arguments; later ones cost what any launch does.
TEST_F(LaunchCostTest, RememberedTensorMapsWithoutAllocation) {
  ArtifactBuilder b("gemm", kThreeTensors);
  thread::ThreadProgram& p = b.kernel("gemm");
  p.grid = {p.exprs.const_int(12)};
  for (size_t i = 3; i < 6; ++i) {
    const ir::ExprId inner = p.exprs.var(p.params[2].var), outer = p.exprs.var(p.params[0].var);
    p.tensor_maps.push_back(
        {"map", p.params[i].memory, {inner, outer}, {p.exprs.mul(inner, 4)}, {16, 64}, 0});
  }
  auto e = executable(b.done());
  fake().fake_set_current(fake().fake_make_context(0));
  ASSERT_TRUE(e->prepare());
  const std::vector<Argument> args = {integer(512),  integer(384),  integer(256),
                                      address(4096), address(8192), address(16384)};
  const long allocations = t_allocations;
  ASSERT_TRUE(e->launch(args, {}));
  EXPECT_EQ(t_allocations, allocations);
  expect_lean(*e, args);
  EXPECT_EQ(fake().fake_launch(1)->maps, 3u);
}

int calls_of_launch(const Executable& e, std::span<const Argument> args, const LaunchOptions& options = {}) {
  const int before = fake().fake_all_calls();
  const long allocations = t_allocations;
  const Checked ok = e.launch(args, options);
  EXPECT_EQ(t_allocations, allocations);
  EXPECT_TRUE(ok);
  return fake().fake_all_calls() - before;
}

// The driver is asked for the stream, and whether it is captured; the default stream needs no asking.
TEST_F(LaunchCostTest, ClaimsOnAStreamCostTwoCalls) {
  ArtifactBuilder b("gemm", kThreeTensors);
  thread::ThreadProgram& p = b.kernel("gemm");
  p.dynamic_tiles = true;
  auto e = executable(b.done());
  fake().fake_set_current(fake().fake_make_context(0));
  ASSERT_TRUE(e->prepare());
  const std::vector<Argument> args = {integer(512),  integer(384),  integer(256),
                                      address(4096), address(8192), address(16384)};
  int handle = 0;
  LaunchOptions on_stream;
  on_stream.stream = &handle;
  ASSERT_TRUE(e->launch(args, on_stream));  // the driver sees the stream for the first time
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(calls_of_launch(*e, args, on_stream), 5);
    EXPECT_EQ(calls_of_launch(*e, args), 3);
  }
}

// Without a current context the primary one is pushed and popped, and none is asked for its number.
TEST_F(LaunchCostTest, ThePrimaryContextCostsACallMore) {
  auto e = executable(gemm());
  ASSERT_TRUE(e->prepare());
  Tensors t;
  const auto args = t.list();
  EXPECT_EQ(calls_of_launch(*e, args), 4);
  EXPECT_EQ(calls_of_launch(*e, args), 4);
  fake().fake_set_current(fake().fake_make_context(0));
  ASSERT_TRUE(e->prepare());
  EXPECT_EQ(calls_of_launch(*e, args), 3);
  EXPECT_EQ(calls_of_launch(*e, args), 3);
}

}  // namespace
}  // namespace tilegen::runtime::cuda
