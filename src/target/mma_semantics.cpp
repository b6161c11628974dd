#include "target/mma_semantics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ir/dtype.h"

namespace tilegen::target::meaning {
namespace {

// step(sum, a, b) for each k in ascending order; rows of C at once, which the compiler turns into vectors.
template <class Sum, class Step, class Finish>
void rows(MmaExtents e, const double* a, const double* b, double* c, Step step, Finish finish) {
  constexpr int kWidest = 16;
  Sum sum[kWidest];
  for (int i = 0; i < e.m; ++i) {
    for (int first = 0; first < e.n; first += kWidest) {
      const int n = e.n - first < kWidest ? e.n - first : kWidest;
      double* row = c + i * e.n + first;
      for (int j = 0; j < n; ++j) sum[j] = static_cast<Sum>(row[j]);
      for (int k = 0; k < e.k; ++k) {
        const Sum x = static_cast<Sum>(a[i * e.k + k]);
        const double* y = b + k * e.n + first;
        for (int j = 0; j < n; ++j) sum[j] = step(sum[j], x, static_cast<Sum>(y[j]));
      }
      for (int j = 0; j < n; ++j) row[j] = finish(sum[j]);
    }
  }
}

double same(double v) { return v; }
float multiply_add(float sum, float x, float y) { return sum + x * y; }

void dot_reduced(MmaExtents e, const double* a, const double* b, double* c, double (*reduce)(double)) {
  std::vector<double> reduced(static_cast<size_t>((e.m + e.n) * e.k));
  double* const reduced_b = std::transform(a, a + e.m * e.k, reduced.data(), reduce);
  std::transform(b, b + e.k * e.n, reduced_b, reduce);
  dot_f32(e, reduced.data(), reduced_b, c);
}

}  // namespace

void dot_f32(MmaExtents e, const double* a, const double* b, double* c) {
  rows<float>(e, a, b, c, multiply_add, [](float v) { return static_cast<double>(v); });
}

void dot_f16(MmaExtents e, const double* a, const double* b, double* c) {
  rows<float>(e, a, b, c, multiply_add, [](float v) { return ir::round_to(ir::DType::f16, v); });
}

void dot_tf32(MmaExtents e, const double* a, const double* b, double* c) {
  dot_reduced(e, a, b, c, ir::round_to_tf32);
}

void dot_tf32_truncated(MmaExtents e, const double* a, const double* b, double* c) {
  dot_reduced(e, a, b, c, ir::truncate_to_tf32);
}

// Sums of one instruction stay far below 2^53, so doubles hold them exactly.
void dot_i32(MmaExtents e, const double* a, const double* b, double* c) {
  rows<double>(
      e, a, b, c, [](double sum, double x, double y) { return sum + x * y; },
      [](double v) { return static_cast<double>(ir::wrap_to(ir::DType::i32, static_cast<int64_t>(v))); });
}

void fma_f32(MmaExtents e, const double* a, const double* b, double* c) {
  rows<float>(
      e, a, b, c, [](float sum, float x, float y) { return std::fma(x, y, sum); },
      [](float v) { return static_cast<double>(v); });
}

void fma_f64(MmaExtents e, const double* a, const double* b, double* c) {
  rows<double>(
      e, a, b, c, [](double sum, double x, double y) { return std::fma(x, y, sum); }, same);
}

}  // namespace tilegen::target::meaning
