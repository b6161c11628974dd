#include "target/mma_semantics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ir/dtype.h"

namespace tilegen::target::meaning {
namespace {

constexpr int kWidth = 8, kDepth = 32;  // of a panel of B

// sum[j] = step(sum[j], x, y[j]) down a panel. Sums of a constant number stay in vector registers.
template <int width, class Sum, class Step>
void panel_row(int n, int depth, const double* a, const Sum (&panel)[kDepth][kWidth], Sum (&sums)[kWidth],
               Step step) {
  Sum sum[kWidth];
  const int end = width > 0 ? width : n;
  for (int j = 0; j < end; ++j) sum[j] = sums[j];
  for (int k = 0; k < depth; ++k) {
    const Sum x = static_cast<Sum>(a[k]);
    for (int j = 0; j < end; ++j) sum[j] = step(sum[j], x, panel[k][j]);
  }
  for (int j = 0; j < end; ++j) sums[j] = sum[j];
}

// step(sum, a, b) for each k in ascending order, then finish(sum); panels of B are converted once for all
// rows.
template <class Sum, class Step, class Finish>
void rows(MmaExtents e, const double* a, const double* b, double* c, Step step, Finish finish) {
  Sum panel[kDepth][kWidth], sum[kWidth] = {};
  for (int first = 0; first < e.n; first += kWidth)
    for (int begin = 0; begin < e.k; begin += kDepth) {
      const int n = std::min(kWidth, e.n - first), depth = std::min(kDepth, e.k - begin);
      for (int k = 0; k < depth; ++k)
        for (int j = 0; j < n; ++j) panel[k][j] = static_cast<Sum>(b[(begin + k) * e.n + first + j]);
      for (int i = 0; i < e.m; ++i) {
        double* row = c + i * e.n + first;
        for (int j = 0; j < n; ++j) sum[j] = static_cast<Sum>(row[j]);
        const double* const of_a = a + i * e.k + begin;
        n == kWidth ? panel_row<kWidth>(n, depth, of_a, panel, sum, step)
                    : panel_row<0>(n, depth, of_a, panel, sum, step);
        const bool last = begin + depth == e.k;
        for (int j = 0; j < n; ++j) row[j] = last ? finish(sum[j]) : static_cast<double>(sum[j]);
      }
    }
}

double same(double v) { return v; }
constexpr auto kMultiplyAdd = [](auto sum, auto x, auto y) { return sum + x * y; };

void dot_reduced(MmaExtents e, const double* a, const double* b, double* c, double (*reduce)(double)) {
  std::vector<double> reduced(static_cast<size_t>((e.m + e.n) * e.k));
  double* const reduced_b = std::transform(a, a + e.m * e.k, reduced.data(), reduce);
  std::transform(b, b + e.k * e.n, reduced_b, reduce);
  dot_f32(e, reduced.data(), reduced_b, c);
}

}  // namespace

void dot_f32(MmaExtents e, const double* a, const double* b, double* c) {
  rows<float>(e, a, b, c, kMultiplyAdd, [](float v) { return static_cast<double>(v); });
}

void dot_f16(MmaExtents e, const double* a, const double* b, double* c) {
  rows<float>(e, a, b, c, kMultiplyAdd, [](float v) { return ir::round_to(ir::DType::f16, v); });
}

void dot_tf32(MmaExtents e, const double* a, const double* b, double* c) {
  dot_reduced(e, a, b, c, ir::round_to_tf32);
}

void dot_tf32_truncated(MmaExtents e, const double* a, const double* b, double* c) {
  dot_reduced(e, a, b, c, ir::truncate_to_tf32);
}

// Sums of one instruction stay far below 2^53, so doubles hold them exactly.
void dot_i32(MmaExtents e, const double* a, const double* b, double* c) {
  rows<double>(e, a, b, c, kMultiplyAdd, [](double v) {
    return static_cast<double>(ir::wrap_to(ir::DType::i32, static_cast<int64_t>(v)));
  });
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
