// Blocks that claim their tiles, on a real driver: graphs whose launches run more than once at a time.
// Skipped where there is no device that runs such kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "../capi/scope.h"
#include "../differential/launch_watch.h"
#include "device_driver.h"

namespace tilegen::test {
namespace {

// A row of tiles takes as many steps as it is told: the last ones several times those of the others.
constexpr char kProduct[] =
    "tl 1 program product\n"
    "dim m\n"
    "dim tiles\n"
    "tensor A: f16[m, 256] readonly\n"
    "tensor B: f16[256, 256] readonly\n"
    "tensor T: i64[tiles] readonly\n"
    "tensor C: f32[m, 256]\n"
    "kernel product grid(by: tiles, bx: 2) threads 256 {\n"
    "  alloc As: shared f16[128, 64]\n"
    "  alloc Bs: shared f16[64, 128]\n"
    "  alloc acc: fragment f32[128, 128]\n"
    "  fill acc, 0.0f32\n"
    "  pipelined ko in 0 .. T[by] stages 4 {\n"
    "    copy A[by * 128 :+ 128, ko % 4 * 64 :+ 64] -> As\n"
    "    copy B[ko % 4 * 64 :+ 64, bx * 128 :+ 128] -> Bs\n"
    "    gemm As, Bs -> acc\n"
    "  }\n"
    "  copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]\n"
    "}\n";
constexpr char kClaimed[] =
    R"({"version": 1, "kernels": [{"kernel": "product",
                                   "persistence": {"persistent": true, "order": "dynamic"}}]})";
constexpr size_t kSide = 256, kRows = 48 * 1024 + 77, kTiles = kRows / 128 + 1, kLong = 20;
constexpr int64_t kSteps = 40, kLongSteps = 160;

// CUDA_KERNEL_NODE_PARAMS, second version.
struct NodeParameters {
  void* function;
  unsigned grid[3], block[3], shared_bytes;
  void **parameters, **extra;
  void *kernel, *context;
};

class DynamicTiles : public testing::Test {
 protected:
  void SetUp() override {
    tl_target* target = nullptr;
    if (tl_target_parse("cuda", &target, nullptr) != TL_OK) GTEST_SKIP() << "no CUDA device";
    const Target owned_target(target);
    int capability = 0;
    if (call("cuDeviceGetAttribute", &capability, 75, 0) != 0 || capability != 9)
      GTEST_SKIP() << "no CUDA device of capability 9.0";
    watch_.emplace(std::string("program product for cuda, in ") +
                   testing::UnitTest::GetInstance()->current_test_info()->name());
    load(target);
    ASSERT_EQ(call("cuDevicePrimaryCtxRetain", &context_of_device_, 0), 0);
    ASSERT_EQ(call("cuCtxSetCurrent", context_of_device_), 0);
    tl_error* error = nullptr;
    ASSERT_EQ(tl_kernel_prepare(kernel_.get(), &error), TL_OK) << tl_error_message(error);
    for (void*& s : streams_) ASSERT_EQ(call("cuStreamCreate", &s, 1u), 0);
    // Residues of 3: what a row and a column add up to depends on their numbers' remainders alone.
    for (void** memory : {&a_, &b_, &c_[0], &c_[1], &t_})
      ASSERT_EQ(tl_device_allocate(1, kRows * kSide * 4, memory, nullptr), TL_OK);
    std::vector<uint16_t> numbers(kRows * kSide);
    for (void* memory : {a_, b_}) {
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = kHalf[(i / kSide + i % kSide) % 3];
      ASSERT_EQ(tl_device_copy(1, memory, numbers.data(), (memory == a_ ? kRows : kSide) * kSide * 2, nullptr,
                               nullptr),
                TL_OK);
    }
    std::vector<int64_t> steps(kTiles, kSteps);
    std::fill(steps.end() - kLong, steps.end(), kLongSteps);
    ASSERT_EQ(tl_device_copy(1, t_, steps.data(), kTiles * 8, nullptr, nullptr), TL_OK);
  }
  void TearDown() override {
    if (!watch_) return;
    call("cuCtxSynchronize");
    for (void* memory : {a_, b_, c_[0], c_[1], t_}) tl_device_free(1, memory, nullptr);
    for (void* s : streams_) call("cuStreamDestroy_v2", s);
    kernel_.reset();
    call("cuCtxSetCurrent", static_cast<void*>(nullptr));
    call("cuDevicePrimaryCtxRelease_v2", 0);
    watch_.reset();
  }

  void load(tl_target* target) {
    tl_program* program = nullptr;
    tl_artifact* artifact = nullptr;
    tl_kernel* kernel = nullptr;
    tl_options* options = nullptr;
    tl_error* error = nullptr;
    ASSERT_EQ(tl_program_parse(context_.get(), kProduct, sizeof kProduct - 1, "p.tl", &program, &error),
              TL_OK)
        << tl_error_message(error);
    const Program owned_program(program);
    ASSERT_EQ(tl_options_create(&options, &error), TL_OK);
    const Options owned_options(options);
    ASSERT_EQ(tl_options_set_str(options, "schedule_json", kClaimed, &error), TL_OK)
        << tl_error_message(error);
    ASSERT_EQ(tl_compile(context_.get(), program, target, options, &artifact, &error), TL_OK)
        << tl_error_message(error);
    const Artifact owned_artifact(artifact);
    ASSERT_EQ(tl_kernel_load(context_.get(), artifact, TL_DEVICE_ANY, &kernel, &error), TL_OK)
        << tl_error_message(error);
    kernel_.reset(kernel);
  }

  void* capture(void* c) {
    void* graph = nullptr;
    EXPECT_EQ(call("cuStreamBeginCapture_v2", streams_[0], 0), 0);
    const auto pointer = [](void* p) {
      return tl_arg{TL_ARG_POINTER, 0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p))};
    };
    const tl_arg args[] = {
        {TL_ARG_I64, 0, kRows}, {TL_ARG_I64, 0, kTiles}, pointer(a_), pointer(b_), pointer(t_), pointer(c)};
    const tl_launch how{sizeof(tl_launch), 0, streams_[0]};
    tl_error* error = nullptr;
    EXPECT_EQ(tl_kernel_launch(kernel_.get(), &how, args, std::size(args), &error), TL_OK)
        << tl_error_message(error);
    EXPECT_EQ(call("cuStreamEndCapture", streams_[0], &graph), 0);
    return graph;
  }
  static void* instance(void* graph) {
    void* made = nullptr;
    EXPECT_EQ(call("cuGraphInstantiateWithFlags", &made, graph, 0ull), 0);
    return made;
  }
  static void* only_node(void* graph) {
    size_t count = 1;
    void* node = nullptr;
    EXPECT_EQ(call("cuGraphGetNodes", graph, &node, &count), 0);
    return node;
  }

  void clear(void* c) {
    ASSERT_EQ(call("cuMemsetD8_v2", reinterpret_cast<uintptr_t>(c), static_cast<unsigned char>(0xff),
                   kRows * kSide * 4),
              0);
  }
  // As soon as the stream is done, whatever others do.
  void expect_product(void* c, void* stream, const std::string& what) {
    std::vector<float> result(kRows * kSide);
    ASSERT_EQ(tl_device_copy(1, result.data(), c, result.size() * 4, stream, nullptr), TL_OK);
    ASSERT_EQ(call("cuStreamSynchronize", stream), 0);
    float expected[3][3] = {};
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j)
        for (size_t k = 0; k < kSide; ++k) expected[i][j] += kNumbers[(i + k) % 3] * kNumbers[(k + j) % 3];
    for (size_t i = 0; i < kRows; ++i) {
      const int64_t times = (i / 128 < kTiles - kLong ? kSteps : kLongSteps) / 4;
      for (size_t j = 0; j < kSide; ++j)
        ASSERT_EQ(result[i * kSide + j], static_cast<float>(times) * expected[i % 3][j % 3])
            << what << ", " << i << ", " << j;
    }
  }

  static constexpr float kNumbers[3] = {1, -2, 3};
  static constexpr uint16_t kHalf[3] = {0x3c00, 0xc000, 0x4200};
  const Context context_ = make_context();
  Kernel kernel_;
  std::optional<differential::LaunchWatch> watch_;
  void *context_of_device_ = nullptr, *streams_[2] = {nullptr, nullptr};
  void *a_ = nullptr, *b_ = nullptr, *t_ = nullptr, *c_[2] = {nullptr, nullptr};
};

// The second instance has the tensors of another capture, so that each must do all of its own tiles. What
// tiles are claimed from, the last parameter, stays that of the graph. Blocks of the second claim tiles while
// some of the first are at their last ones and have not claimed what tells them to end.
TEST_F(DynamicTiles, InstancesOfOneGraphRunAtOnce) {
  void *graph = capture(c_[0]), *other = capture(c_[1]);
  void *first = instance(graph), *second = instance(graph);
  NodeParameters own{}, changed{};
  ASSERT_EQ(call("cuGraphKernelNodeGetParams_v2", only_node(graph), &own), 0);
  ASSERT_EQ(call("cuGraphKernelNodeGetParams_v2", only_node(other), &changed), 0);
  size_t count = 0, offset = 0, bytes = 0;
  while (call("cuFuncGetParamInfo", own.function, count, &offset, &bytes) == 0) ++count;
  ASSERT_GT(count, 4u);
  std::vector<void*> parameters(changed.parameters, changed.parameters + count);
  parameters.back() = own.parameters[count - 1];
  changed.parameters = parameters.data();
  ASSERT_EQ(call("cuGraphExecKernelNodeSetParams_v2", second, only_node(graph), &changed), 0);
  for (int round = 0; round < 6; ++round) {
    for (void* c : c_) clear(c);
    ASSERT_EQ(call("cuCtxSynchronize"), 0);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(call("cuGraphLaunch", first, streams_[0]), 0);
      ASSERT_EQ(call("cuGraphLaunch", second, streams_[1]), 0);
    }
    for (size_t i = 0; i < 2; ++i) expect_product(c_[i], streams_[i], "round " + std::to_string(round));
    if (HasFatalFailure()) return;
  }
  for (void* made : {first, second}) call("cuGraphExecDestroy", made);
  for (void* made : {graph, other}) call("cuGraphDestroy", made);
}

// Branches of one graph, and copies of it.
TEST_F(DynamicTiles, GraphsWithinGraphsAndTheirCopiesRunAtOnce) {
  void *graphs[] = {capture(c_[0]), capture(c_[1])}, *parent = nullptr, *copy = nullptr, *node = nullptr;
  ASSERT_EQ(call("cuGraphCreate", &parent, 0u), 0);
  for (void* graph : graphs)
    ASSERT_EQ(call("cuGraphAddChildGraphNode", &node, parent, static_cast<void*>(nullptr), size_t{0}, graph),
              0);
  ASSERT_EQ(call("cuGraphClone", &copy, parent), 0);
  void *first = instance(parent), *second = instance(copy);
  for (int round = 0; round < 6; ++round) {
    for (void* c : c_) clear(c);
    ASSERT_EQ(call("cuCtxSynchronize"), 0);
    ASSERT_EQ(call("cuGraphLaunch", first, streams_[0]), 0);
    ASSERT_EQ(call("cuGraphLaunch", second, streams_[1]), 0);
    for (size_t i = 0; i < 2; ++i) expect_product(c_[i], streams_[i], "round " + std::to_string(round));
    if (HasFatalFailure()) return;
  }
  for (void* made : {first, second}) call("cuGraphExecDestroy", made);
  for (void* made : {graphs[0], graphs[1], parent, copy}) call("cuGraphDestroy", made);
}

}  // namespace
}  // namespace tilegen::test
