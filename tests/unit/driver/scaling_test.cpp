// Planning, lowering and verification take near as much longer as a program is larger: in tiles, kernels,
// statements and copies of unrolled loops. Measured is processor time of the thread that does it, of programs
// of one form, n and four times as long: what is linear takes 4 times as long, what is quadratic 16.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>

#include "check/check_program.h"
#include "driver/compile.h"
#include "ir/text.h"

namespace tilegen::driver {
namespace {

constexpr double kMaxTimes = 9;  // longer for four times as much
constexpr double kNoise = 6;     // ms, of the longer

std::string number(int n) { return std::to_string(n); }

std::string chain_of_tiles(int n, const std::string& scope) {
  std::string s =
      "tl 1 program p\ntensor X: f32[64, 64] readonly\ntensor Y: f32[64, 64]\nkernel k grid (b: 1) threads "
      "128 {\n";
  for (int i = 0; i < n; ++i) s += "  alloc t" + number(i) + ": " + scope + " f32[16, 16]\n";
  s += "  copy X[0 :+ 16, 0 :+ 16] -> t0\n";
  for (int i = 1; i < n; ++i)
    s += "  parallel i, j in 16, 16 {\n    t" + number(i) + "[i, j] = t" + number(i - 1) +
         "[i, j] * 1.5f32 + t" + number(std::max(0, i - 2)) + "[i, j]\n  }\n";
  return s + "  copy t" + number(n - 1) + " -> Y[0 :+ 16, 0 :+ 16]\n}\n";
}

std::string fragments(int n) { return chain_of_tiles(n, "fragment"); }
std::string shared_tiles(int n) { return chain_of_tiles(n, "shared"); }

// Tiles that have nothing to do with each other.
std::string islands(int n) {
  std::string s =
      "tl 1 program p\ntensor X: f32[4096] readonly\ntensor Y: f32[4096]\nkernel k grid (b: 1) threads 128 "
      "{\n";
  for (int i = 0; i < n; ++i) s += "  alloc t" + number(i) + ": fragment f32[64]\n";
  for (int i = 0; i < n; ++i)
    s += "  copy X[" + number(i % 64) + " :+ 64] -> t" + number(i) + "\n  parallel i in 64 {\n    t" +
         number(i) + "[i] = t" + number(i) + "[i] * 2.0f32\n  }\n  copy t" + number(i) + " -> Y[" +
         number(i % 64) + " :+ 64]\n";
  return s + "}\n";
}

// Fragments that an index keeps out of registers, one by one.
std::string scattered(int n) {
  std::string s =
      "tl 1 program p\ntensor X: f32[4096] readonly\ntensor Y: f32[4096]\nkernel k grid (b: 1) threads 128 "
      "{\n";
  for (int i = 0; i < n; ++i) s += "  alloc t" + number(i) + ": fragment f32[256]\n";
  for (int i = 0; i < n; ++i)
    s += "  copy X[" + number(i) + " :+ 256] -> t" + number(i) + "\n  parallel i in 256 {\n    Y[i + " +
         number(i) + "] = t" + number(i) + "[(i * 3) % 256]\n  }\n";
  return s + "}\n";
}

std::string statements(int n) {
  std::string s =
      "tl 1 program p\ntensor X: f32[4096] readonly\ntensor Y: f32[4096]\nkernel k grid (b: 1) {\n"
      "  alloc t: fragment f32[64]\n  copy X[0 :+ 64] -> t\n";
  for (int i = 0; i < n; ++i)
    s += "  parallel i in 64 {\n    t[i] = exp(t[i]) + X[i + " + number(i % 64) + "]\n  }\n";
  return s + "  copy t -> Y[0 :+ 64]\n}\n";
}

std::string kernels(int n) {
  std::string s = "tl 1 program p\ntensor X: f32[64] readonly\ntensor Y: f32[64]\n";
  for (int i = 0; i < n; ++i)
    s += "kernel k" + number(i) + " grid (b: 1) {\n  parallel i in 64 {\n    Y[i] = X[i] + " + number(i) +
         ".0f32\n  }\n}\n";
  return s;
}

std::string stores(int n) {
  std::string s = "tl 1 program p\ntensor X: f32[64] readonly\ntensor Y: f32[" + number(64 * n) +
                  "]\nkernel k grid (b: 1) {\n  parallel i in 64 {\n";
  for (int i = 0; i < n; ++i) s += "    Y[i + " + number(64 * i) + "] = X[i] + " + number(i) + ".0f32\n";
  return s + "  }\n}\n";
}

std::string reductions(int n) {
  std::string s =
      "tl 1 program p\ntensor X: f32[64, 64] readonly\ntensor Y: f32[64]\nkernel k grid (b: 1) {\n"
      "  alloc x: fragment f32[64, 64]\n";
  for (int i = 0; i < n; ++i) s += "  alloc r" + number(i) + ": fragment f32[64]\n";
  s += "  copy X -> x\n";
  for (int i = 0; i < n; ++i)
    s += "  reduce x -> r" + number(i) +
         " {kind=max, axis=1}\n  parallel i, j in 64, 64 {\n    x[i, j] = x[i, j] - r" + number(i) +
         "[i]\n  }\n";
  return s + "  copy r" + number(n - 1) + " -> Y\n}\n";
}

double thread_ms() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

// Of a run without LLVM's part, which has a thread of its own; checks included. The least of a few.
double work_ms(const std::string& text, const target::Target& target) {
  double least = 1e9;
  for (int run = 0; run < 3; ++run) {
    const double start = thread_ms();
    auto parsed = ir::parse_program(text, "t.tl", Limits{});
    if (!parsed) return ADD_FAILURE() << parsed.error().to_text(), 0;
    const auto found = check::check_program(*parsed, Limits{});
    if (!found.empty()) return ADD_FAILURE() << found.front().to_text(), 0;
    CompileOptions options;
    options.verify = true;
    auto compiled = compile(std::make_shared<const ir::Program>(std::move(*parsed)), target, options);
    if (!compiled) return ADD_FAILURE() << compiled.error().to_text(), 0;
    least = std::min(least, thread_ms() - start);
  }
  return least;
}

struct Family {
  const char* name;
  std::string (*text)(int n);
  int n;
};

class Scaling : public testing::TestWithParam<Family> {};

TEST_P(Scaling, IsNearLinear) {
  const Family& family = GetParam();
  for (const char* name : {"x86-64-v3", "sim:sm_80", "sim:sm_90a"}) {
    const target::Target target = *target::find_target(name);
    const double once = work_ms(family.text(family.n), target),
                 more = work_ms(family.text(4 * family.n), target);
    std::printf("%-14s %-10s n = %4d: %7.1f ms, 4 n: %7.1f ms, %4.1f times\n", family.name, name, family.n,
                once, more, more / once);
    EXPECT_LE(more, kMaxTimes * once + kNoise) << family.name << " for " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Scaling,
                         testing::Values(Family{"fragments", fragments, 40},
                                         Family{"shared_tiles", shared_tiles, 10},
                                         Family{"islands", islands, 25}, Family{"scattered", scattered, 10},
                                         Family{"statements", statements, 40}, Family{"kernels", kernels, 40},
                                         Family{"stores", stores, 25}, Family{"reductions", reductions, 6}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tilegen::driver
