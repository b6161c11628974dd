#include "result_comparison.h"

#include <cmath>
#include <cstdio>

#include "element.h"

namespace tool {

namespace {

struct Difference {
  double absolute = 0, relative = 0;  // largest; relative to 1 + |expected|
  int64_t wrong = 0, first_wrong = -1;
};

double default_tolerance(tl_dtype dtype) {
  switch (dtype) {
    case TL_F64:
      return 1e-12;
    case TL_F32:
      return 1e-5;
    case TL_F16:
      return 2e-3;
    case TL_BF16:
      return 2e-2;
    case TL_E4M3:
    case TL_E4M3FNUZ:
      return 0.13;
    case TL_E5M2:
    case TL_E5M2FNUZ:
      return 0.26;
    default:
      return 0;
  }
}

Difference compare(const Tensor& expected, const Tensor& actual, double tolerance) {
  Difference out;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double e = element_get(expected.dtype, expected.storage.data(), expected.position(i));
    const double a = element_get(actual.dtype, actual.storage.data(), actual.position(i));
    if (e == a || (std::isnan(e) && std::isnan(a))) continue;
    const double absolute = std::fabs(e - a), relative = absolute / (1 + std::fabs(e));
    if (!(relative <= tolerance) && out.wrong++ == 0) out.first_wrong = i;
    if (!(absolute <= out.absolute)) out.absolute = absolute;
    if (!(relative <= out.relative)) out.relative = relative;
  }
  return out;
}

}  // namespace

std::optional<double> tolerance_of(const CommandLine& line) { return line.non_negative("tolerance"); }

bool report_difference(const Tensor& expected, const Tensor& actual, std::optional<double> given) {
  const double tolerance = given.value_or(default_tolerance(expected.dtype));
  const Difference d = compare(expected, actual, tolerance);
  std::printf("%-10s %s at most %.3g from the interpreter (relative %.3g, allowed %.3g)\n",
              expected.name.c_str(), d.wrong ? "WRONG" : "right", d.absolute, d.relative, tolerance);
  if (d.wrong)
    std::printf("           %lld of %lld elements; element %lld is %.9g, expected %.9g\n",
                static_cast<long long>(d.wrong), static_cast<long long>(expected.elements()),
                static_cast<long long>(d.first_wrong),
                element_get(actual.dtype, actual.storage.data(), actual.position(d.first_wrong)),
                element_get(expected.dtype, expected.storage.data(), expected.position(d.first_wrong)));
  return d.wrong == 0;
}

bool agree(const Tensor& expected, const Tensor& actual, std::optional<double> tolerance) {
  return compare(expected, actual, tolerance.value_or(default_tolerance(expected.dtype))).wrong == 0;
}

}  // namespace tool
