// One context, one program, many threads: compiles and launches give the same artifact and the same numbers.
#include <gtest/gtest.h>
#include <pthread.h>

#include <string>
#include <thread>
#include <vector>

#include "programs.h"
#include "scope.h"

namespace tilegen::test {
namespace {

constexpr int kThreads = 4, kRounds = 3;
constexpr int64_t kM = 33, kN = 20, kK = 18;

struct Outcome {
  std::string schedule;
  std::vector<float> c;
  tl_status status = TL_OK;
};

tl_arg pointer(const std::vector<float>& v) {
  return {TL_ARG_POINTER, TL_F32, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(v.data()))};
}
tl_arg dim(int64_t v) { return {TL_ARG_I64, 0, static_cast<uint64_t>(v)}; }

Outcome compile_and_run(const tl_context* context, const tl_program* program) {
  Outcome outcome;
  tl_target* target = nullptr;
  tl_artifact* artifact = nullptr;
  tl_kernel* kernel = nullptr;
  const char* text = "";
  size_t size = 0;
  outcome.c.assign(kM * kN, -1.0f);
  std::vector<float> a(kM * kK), b(kK * kN);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5);
  const tl_arg args[] = {dim(kM), dim(kN), dim(kK), pointer(a), pointer(b), pointer(outcome.c)};
  const auto run = [&](tl_status status) { return outcome.status = status, status == TL_OK; };
  if (run(tl_target_parse("host", &target, nullptr)) &&
      run(tl_compile(context, program, target, nullptr, &artifact, nullptr)) &&
      run(tl_artifact_section(artifact, TL_SECTION_SCHEDULE_JSON, &text, &size, nullptr)) &&
      run(tl_kernel_load(context, artifact, 0, &kernel, nullptr)))
    run(tl_kernel_launch(kernel, nullptr, args, 6, nullptr));
  outcome.schedule = text;
  tl_kernel_release(kernel);
  tl_artifact_release(artifact);
  tl_target_release(target);
  return outcome;
}

TEST(Concurrency, CompilesAndLaunchesAtOnce) {
  const Context context = make_context();
  const Builder b = make_builder(context, "matmul");
  build_gemm(b.get());
  Program program;
  ASSERT_EQ(finish(b, &program), TL_OK);
  std::vector<Outcome> outcomes(kThreads * kRounds);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int r = 0; r < kRounds; ++r) {
        outcomes[t * kRounds + r] = compile_and_run(context.get(), program.get());
        EXPECT_EQ(std::string(tl_program_hash(program.get())).size(), 32u);
      }
    });
  for (std::thread& t : threads) t.join();
  for (const Outcome& o : outcomes) {
    EXPECT_EQ(o.status, TL_OK);
    EXPECT_EQ(o.schedule, outcomes[0].schedule);
    EXPECT_EQ(o.c, outcomes[0].c);
  }
  EXPECT_EQ(outcomes[0].c[0], [] {
    float sum = 0;
    for (int k = 0; k < kK; ++k) sum += static_cast<float>(k % 7) * static_cast<float>(k * kN % 5);
    return sum;
  }());
}

// What a fiber or a musl thread has.
TEST(Concurrency, CompilesOnASmallStack) {
  const Context context = make_context();
  struct Call {
    const Context& context;
    Outcome outcome;
  } call{context, {}};
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    auto* c = static_cast<Call*>(argument);
    const Builder b = make_builder(c->context, "matmul");
    build_gemm(b.get());
    Program program;
    c->outcome.status = finish(b, &program);
    if (program) c->outcome = compile_and_run(c->context.get(), program.get());
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &call), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(call.outcome.status, TL_OK);
}

TEST(Concurrency, BuildersOfSeveralThreadsDoNotMix) {
  const Context context = make_context();
  std::vector<std::string> hashes(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const Builder b = make_builder(context, "matmul");
      build_gemm(b.get());
      Program program;
      EXPECT_EQ(finish(b, &program), TL_OK);
      hashes[t] = tl_program_hash(program.get());
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& h : hashes) EXPECT_EQ(h, hashes[0]);
}

}  // namespace
}  // namespace tilegen::test
