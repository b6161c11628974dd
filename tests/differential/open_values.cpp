#include "open_values.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace tilegen::differential {

namespace {

constexpr int kFewRuns = 6, kManyRuns = 24;
constexpr double kBeyond = 4;  // errors of runs add up at random, those of executors may all go one way

double value_of(ir::DType t, uint64_t bits) {
  if (ir::is_float(t)) return ir::float_from_bits(t, bits);
  return static_cast<double>(ir::is_bool(t) ? static_cast<int64_t>(bits)
                                            : ir::wrap_to(t, static_cast<int64_t>(bits)));
}

// Both finite, both NaN, or the same infinity.
bool is_of_class(double x, double y) {
  return std::isfinite(x) ? std::isfinite(y) : std::isnan(x) ? std::isnan(y) : x == y;
}

}  // namespace

void OpenValues::widen(const Tensor& t, std::vector<Range>& ranges, std::span<const std::byte> bytes) {
  for (int64_t k = 0; k < t.elements; ++k) {
    const double v = value_of(t.type, t.element(bytes, t.offset(k)));
    Range& r = ranges[static_cast<size_t>(k)];
    r.open = r.open || !is_of_class(v, r.low);
    r.low = std::min(r.low, v);
    r.high = std::max(r.high, v);
  }
}

void OpenValues::run(const LaunchMemory& memory, const std::vector<GuardedMemory>& expected, int runs) {
  if (ranges_.empty())
    for (size_t i = 0; i < expected.size(); ++i) {
      const Tensor& t = memory.tensors()[i];
      std::vector<Range>& ranges = ranges_.emplace_back(static_cast<size_t>(t.elements));
      for (int64_t k = 0; k < t.elements; ++k) {
        Range& r = ranges[static_cast<size_t>(k)];
        r.low = r.high = value_of(t.type, t.element(expected[i].bytes(), t.offset(k)));
      }
    }
  for (; runs_ < runs && !all_open_; ++runs_) {
    SanitizedOptions options;
    options.max_steps = max_steps_;
    options.rounding = runs_ == 0 ? Rounding::up : runs_ == 1 ? Rounding::down : Rounding::random;
    options.seed = launch_.seed * 1000 + static_cast<uint64_t>(runs_);
    const std::vector<GuardedMemory> results = memory.fresh(false);
    all_open_ = run_sanitized(p_, memory.slots(results), options).kind != SanitizedResult::Kind::defined;
    for (size_t i = 0; i < results.size() && !all_open_; ++i)
      widen(memory.tensors()[i], ranges_[i], results[i].bytes());
  }
}

std::string OpenValues::differ_in(const Tensor& t, const std::vector<Range>& ranges,
                                  std::span<const std::byte> expected, std::span<const std::byte> got) const {
  std::vector<double> widths;
  for (const Range& r : ranges)
    if (!r.open && r.high > r.low) widths.push_back(r.high - r.low);
  std::sort(widths.begin(), widths.end());
  // An element's own runs may be near each other by chance; its neighbours' are not all.
  const double usual = ir::is_float(t.type) && !widths.empty() ? widths[widths.size() * 9 / 10] : 0;
  for (int64_t k = 0; k < t.elements; ++k) {
    const Range& r = ranges[static_cast<size_t>(k)];
    const uint64_t want = t.element(expected, t.offset(k)), have = t.element(got, t.offset(k));
    if (want == have || r.open) continue;
    const double x = value_of(t.type, want), y = value_of(t.type, have);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double room = kBeyond * (std::max(r.high - x, x - r.low) + usual);
    if (std::isfinite(x) && std::isfinite(y) && room > 0 &&
        std::fabs(x - y) <= room + (ir::is_float(t.type) ? unit_in_last_place(t.type, x) : 0))
      continue;
    std::ostringstream out;
    out.precision(17);
    out << t.element_name(k) << " is " << y << ", expected " << x << " with an error of at most " << room;
    return out.str();
  }
  return {};
}

std::string OpenValues::differ(const LaunchMemory& memory, const std::vector<GuardedMemory>& expected,
                               const std::vector<GuardedMemory>& got) {
  const std::string exact = memory.compare(expected, got, Bound::exact());
  if (exact.empty() || exact.find("memory beside") != std::string::npos ||
      exact.find("padding") != std::string::npos)
    return exact;
  std::string found;
  for (const int runs : {kFewRuns, kManyRuns}) {
    run(memory, expected, runs);
    if (all_open_) return {};
    found.clear();
    for (size_t i = 0; i < got.size() && found.empty(); ++i)
      if (!memory.tensors()[i].workspace)
        found = differ_in(memory.tensors()[i], ranges_[i], expected[i].bytes(), got[i].bytes());
    if (found.empty()) return {};
  }
  return found;
}

}  // namespace tilegen::differential
