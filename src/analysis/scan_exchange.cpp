#include "analysis/scan_exchange.h"

#include <algorithm>

namespace tilegen::analysis {

using layout::Digit;
using layout::Fragment;
using layout::kRegister;

namespace {

constexpr int64_t kScratchBytes = 8192;  // of runs that are joined at once

}  // namespace

ScanExchange scan_exchange(const Fragment& iteration, int axis, ir::DType type, const target::Target& t) {
  ScanExchange x;
  if (axis < 0) return x;
  std::vector<Digit> along;
  int64_t runs = 1;  // of one point each, at first
  for (const Digit& d : iteration.map().digits()) {
    if (d.dim == axis && d.extent > 1) along.push_back(d);
    if (d.output == kRegister) runs *= d.extent;
  }
  std::sort(along.begin(), along.end(), [](const Digit& a, const Digit& b) { return a.weight < b.weight; });
  const std::vector<Digit> threads = thread_digits(iteration);
  for (const Digit& d : along) {
    if (d.output == kRegister) {
      x.levels.push_back({ScanLevel::Way::registers, d, 1, d.extent, runs});
      runs /= d.extent;
      continue;
    }
    const int64_t reached = reached_by_lanes(threads, d, type, t);
    if (reached > 1) x.levels.push_back({ScanLevel::Way::lanes, d, 1, reached, runs});
    if (reached == d.extent) continue;
    x.levels.push_back({ScanLevel::Way::scratch, d, reached, d.extent / reached, runs});
    const int64_t threads_bytes = iteration.threads() * ir::dtype_bytes(type);
    const int64_t at_once = std::clamp<int64_t>(kScratchBytes / threads_bytes, 1, runs);
    x.runs_at_once = std::max(x.runs_at_once, at_once);
  }
  if (!x.levels.empty()) x.levels.back().last = true;
  x.scratch_elements = x.runs_at_once * iteration.threads();
  return x;
}

std::string to_text(const ScanExchange& x) {
  std::string text;
  for (const ScanLevel& l : x.levels)
    text += (text.empty() ? "" : ", ") + std::to_string(l.extent) +
            (l.way == ScanLevel::Way::registers ? " registers"
             : l.way == ScanLevel::Way::lanes   ? " lanes"
                                                : " parts through scratch");
  return text;
}

double scan_cost(const Fragment& iteration, int axis, ir::DType type, const target::Target& t) {
  constexpr double kBarrier = 30;
  const ScanExchange x = scan_exchange(iteration, axis, type, t);
  const auto registers = static_cast<double>(iteration.registers());
  double cost = registers;
  for (const ScanLevel& l : x.levels) {
    const auto runs = static_cast<double>(l.runs), extent = static_cast<double>(l.extent);
    cost += registers;
    if (l.way == ScanLevel::Way::lanes)
      for (int64_t b = 1; b < l.extent; b *= 2) cost += 3 * runs;
    if (l.way == ScanLevel::Way::scratch)
      cost += runs * (1 + 2 * extent) + 2 * kBarrier * runs / static_cast<double>(x.runs_at_once);
  }
  return cost * static_cast<double>(iteration.threads()) / t.warp;
}

}  // namespace tilegen::analysis
