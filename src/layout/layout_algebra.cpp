// Compose, invert, divide, refine: digit by digit, refused where radices do not refine each other.
#include <algorithm>
#include <cassert>

#include "layout/collision.h"
#include "layout/layout_refusal.h"
#include "support/checked.h"

namespace tilegen::layout {

namespace {

std::string digit_name(const Digit& d) {
  return "the digit of extent " + std::to_string(d.extent) + " at weight " + std::to_string(d.weight);
}

// The digits of one dimension of the outer layout, and how much of each the inner digits use up.
struct Rung {
  Digit digit;
  int64_t used = 0;
};

class Composer {
 public:
  Composer(const Layout& outer, const Layout& inner) : outer_(outer.canonical()), inner_(inner) {
    rungs_.resize(outer_.rank());
    for (const Digit& d : outer_.digits()) {
      if (d.dim == kReplica)
        digits_.push_back(d);
      else
        rungs_[d.dim].push_back({d});
    }
  }

  Expected<Layout> run() {
    for (const Digit& d : inner_.digits())
      if (auto error = place(d)) return std::move(*error);
    return Layout::make(inner_.shape(), std::move(digits_), outer_.outputs(), outer_.swizzle(),
                        outer_.element_bytes());
  }

 private:
  // Walks one inner digit up the rungs of the dimension it adds to, splitting it where a rung is full.
  std::optional<Error> place(Digit d) {
    const int k = d.output;
    while (d.extent > 1) {
      if (d.stride == 0) {
        digits_.push_back({d.dim, d.extent, d.weight, 0, 0});
        return std::nullopt;
      }
      const auto parts = split_stride(k, d.stride);
      if (parts.empty())
        return refuse(d, k, "its stride " + std::to_string(d.stride) + " lies beyond the dimension");
      int64_t fits = d.extent;  // values of this digit that carry into no rung above
      for (auto [rung, count] : parts) fits = std::min(fits, (rungs_[k][rung].digit.extent - 1) / count + 1);
      if (fits < d.extent && parts.size() > 1) return refuse(d, k, "its stride straddles two digits");
      if (fits < d.extent) {
        // The part that exactly fills the rung goes here, the rest starts at the next rung.
        const auto [rung, count] = parts.front();
        const int64_t room = rungs_[k][rung].digit.extent;
        if (room % count != 0 || d.extent % (room / count) != 0)
          return refuse(d, k, "the radices do not refine");
        fits = room / count;
      }
      if (auto error = emit({d.dim, fits, d.weight, k, d.stride}, parts)) return error;
      d.extent /= fits;
      d.weight *= fits;
      d.stride *= fits;
    }
    return std::nullopt;
  }

  // stride = sum of count * weight of the rungs; empty when it lies beyond the top.
  std::vector<std::pair<size_t, int64_t>> split_stride(int k, int64_t stride) const {
    std::vector<std::pair<size_t, int64_t>> parts;
    for (size_t r = 0; r < rungs_[k].size(); ++r) {
      const Digit& digit = rungs_[k][r].digit;
      const int64_t count = stride / digit.weight % digit.extent;
      if (count != 0) parts.emplace_back(r, count);
    }
    if (rungs_[k].empty() || stride >= rungs_[k].back().digit.weight * rungs_[k].back().digit.extent)
      parts.clear();
    return parts;
  }

  std::optional<Error> emit(Digit d, const std::vector<std::pair<size_t, int64_t>>& parts) {
    int64_t stride = 0;
    int output = 0;
    for (auto [rung, count] : parts) {
      Rung& r = rungs_[d.output][rung];
      r.used += (d.extent - 1) * count;
      if (r.used >= r.digit.extent) return refuse(d, d.output, "sums of digits carry across a radix");
      if (r.digit.stride == 0) continue;
      if (stride != 0 && r.digit.output != output)
        return refuse(d, d.output, "one digit would add to two outputs");
      output = r.digit.output;
      auto term = checked_mul(r.digit.stride, count);
      auto sum = term ? checked_add(stride, *term) : std::nullopt;
      if (!sum) return refuse(d, d.output, "the strides overflow");
      stride = *sum;
    }
    digits_.push_back({d.dim, d.extent, d.weight, output, stride});
    return std::nullopt;
  }

  Error refuse(const Digit& d, int k, const std::string& why) const {
    return refuse_layout("cannot compose " + describe_dim(outer_, k) + " after " +
                             describe_dim(inner_, d.dim) + ": " + digit_name(d) + " does not fit, " + why,
                         "choose extents whose radices divide each other");
  }

  Layout outer_;
  const Layout& inner_;
  std::vector<std::vector<Rung>> rungs_;
  std::vector<Digit> digits_;
};

}  // namespace

Expected<Layout> Layout::compose(const Layout& inner) const {
  if (inner.outputs() != rank())
    return refuse_layout("cannot compose a layout of rank " + std::to_string(rank()) + " after one of " +
                             std::to_string(inner.outputs()) + " outputs",
                         "each output of the inner layout is one dimension of the outer one");
  if (!inner.swizzle().none() || inner.replicas() != 1)
    return refuse_layout("cannot compose after a layout with a swizzle or replicas",
                         "compose first and swizzle the result");
  return Composer(*this, inner).run();
}

}  // namespace tilegen::layout
