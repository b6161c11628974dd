// What tests of findings share: exactly one finding under every schedule, or none.
#pragma once

#include <numeric>

#include "gpu_program.h"

namespace tilegen::sim::test {

// Runs under every schedule and expects one finding each time, the same one; returns the last.
inline Finding expect_one(const GpuProgram& g, FindingKind kind,
                          const std::function<Arguments()>& arguments) {
  Finding last;
  for_each_schedule([&](const SimOptions& options) {
    const SimResult r = run(g, arguments(), options);
    EXPECT_EQ(r.findings.size(), 1u) << texts(r);
    if (r.findings.size() != 1) return;
    EXPECT_STREQ(finding_name(r.findings[0].kind), finding_name(kind)) << texts(r);
    last = r.findings[0];
  });
  return last;
}

inline void expect_clean(const GpuProgram& g, const std::function<Arguments()>& arguments) {
  for_each_schedule([&](const SimOptions& options) { EXPECT_EQ(texts(run(g, arguments(), options)), ""); });
}

// Tensors of 1024 elements of 4 bytes that every run starts anew from.
struct SimFindings : ::testing::Test {
  std::vector<int32_t> x, y;
  std::function<Arguments()> none = [] { return Arguments(); };
  std::function<Arguments()> one = [this] { return refill(), Arguments().tensor(y); };
  std::function<Arguments()> two = [this] { return refill(), Arguments().tensor(x).tensor(y); };
  void refill() {
    x.resize(1024), y.assign(1024, -1);
    std::iota(x.begin(), x.end(), 0);
  }
};

inline E as_i32(E e) { return cast(DType::i32, e); }

}  // namespace tilegen::sim::test
