// Kernels of many statements: the time of expansion is near linear in them.
#include <gtest/gtest.h>

#include <ctime>

#include "scheduled_support.h"

namespace tilegen::expand {
namespace {

std::string updates(int n) {
  std::string text =
      "tl 1 program p\ntensor X: f32[65536] readonly\ntensor Y: f32[65536]\nkernel k grid (b: 1) {\n"
      "  alloc t: fragment f32[64]\n  copy X[0 :+ 64] -> t\n";
  for (int i = 0; i < n; ++i)
    text += "  parallel i in 64 {\n    t[i] = exp(t[i]) + X[i + " + std::to_string(i % 64) + "]\n  }\n";
  return text + "  copy t -> Y[0 :+ 64]\n}\n";
}

double thread_ms() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

// The least of a few runs.
double expansion_ms(int statements, const target::Target& target) {
  const auto written = schedule::program_from(updates(statements));
  const ir::Program program = schedule::planned_form(*written, target.name);
  const auto plan = schedule::plan_for(program, target.name);
  if (!plan) return ADD_FAILURE() << "no plan", 0;
  double least = 1e9;
  for (int run = 0; run < 3; ++run) {
    const double start = thread_ms();
    if (auto kernel = expand_kernel(program, 0, plan->kernels[0], target); !kernel)
      ADD_FAILURE() << kernel.error().to_text();
    least = std::min(least, thread_ms() - start);
  }
  return least;
}

TEST(LongKernels, ExpandInNearLinearTime) {
  const target::Target target = schedule::target_named("sm_80");
  const double once = expansion_ms(250, target), more = expansion_ms(1000, target);
  std::printf("250 statements: %.1f ms, 1000: %.1f ms\n", once, more);
  EXPECT_LE(more, 9 * once + 6);
}

}  // namespace
}  // namespace tilegen::expand
