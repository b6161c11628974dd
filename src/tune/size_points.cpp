#include "tune/size_points.h"

#include <algorithm>

#include "tune/record.h"

namespace tilegen::tune {

namespace {

std::vector<int64_t> steps_between(int64_t least, int64_t most, const ir::Var& var) {
  least = std::max(least, var.lower);
  most = std::max(least, std::min(most, var.upper));
  const auto fitting = [&](int64_t size) {
    const int64_t below = size / var.divisor * var.divisor;
    return below == size || below > most - var.divisor ? below : below + var.divisor;
  };
  std::vector<int64_t> steps;
  for (int64_t size = size_bucket(least); size < most; size = size_bucket(size + 1)) {
    const int64_t step = fitting(size);
    if (step >= least && step < most && (steps.empty() || step > steps.back())) steps.push_back(step);
  }
  steps.push_back(most);
  return steps;
}

size_t points(const std::vector<driver::SizeAxis>& axes) {
  size_t count = 1;
  for (const driver::SizeAxis& a : axes) count *= a.upto.size();
  return count;
}

// Every other step, the last one among them.
void thin(std::vector<int64_t>& steps) {
  std::vector<int64_t> kept;
  for (size_t i = 0; i < steps.size(); ++i)
    if ((steps.size() - 1 - i) % 2 == 0) kept.push_back(steps[i]);
  steps = std::move(kept);
}

}  // namespace

std::vector<driver::SizeAxis> size_axes(const ir::Program& program, const std::vector<SizeRange>& ranges) {
  std::vector<driver::SizeAxis> axes;
  for (size_t i = 0; i < program.params.size(); ++i) {
    const ir::Param& param = program.params[i];
    if (param.kind == ir::Param::Kind::tensor) continue;
    const ir::Var& var = program.var(param.var);
    for (const SizeRange& r : ranges)
      if (r.name == var.name) axes.push_back({var.name, i, steps_between(r.least, r.most, var)});
  }
  while (points(axes) > kMaxPoints)
    thin(std::max_element(axes.begin(), axes.end(), [](const auto& a, const auto& b) {
           return a.upto.size() < b.upto.size();
         })->upto);
  return axes;
}

std::vector<driver::SizeAxis> middle_axes(const ir::Program& program, std::vector<driver::SizeAxis> axes) {
  for (driver::SizeAxis& a : axes) {
    const int64_t divisor = program.var(program.params[a.param].var).divisor;
    for (size_t i = a.upto.size(); i-- > 1;) {
      const int64_t below = a.upto[i - 1], half = (a.upto[i] - below) / 2;
      a.upto[i] -= half / divisor * divisor;
    }
  }
  return axes;
}

std::vector<cost::Sizes> size_points(const std::vector<driver::SizeAxis>& axes, const cost::Sizes& fixed) {
  std::vector<cost::Sizes> all(points(axes), fixed);
  size_t stride = all.size();
  for (const driver::SizeAxis& a : axes) {
    stride /= a.upto.size();
    for (size_t i = 0; i < all.size(); ++i) all[i][a.name] = a.upto[i / stride % a.upto.size()];
  }
  return all;
}

}  // namespace tilegen::tune
