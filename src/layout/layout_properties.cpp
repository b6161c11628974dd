// Injective, bijective, contiguous: answered on digits.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "layout/collision.h"
#include "support/checked.h"
#include "support/small_vector.h"

namespace tilegen::layout {

std::vector<Digit> effective_digits(const Layout& l, Domain domain) {
  std::vector<Digit> out;
  for (Digit d : l.digits()) {
    if (domain == Domain::shape && d.dim != kReplica) {
      const int64_t n = l.shape()[d.dim];
      if (d.weight >= n) continue;
      d.extent = std::min(d.extent, ceil_div(n, d.weight));
    }
    out.push_back(d);
  }
  return out;
}

namespace {

// Two points collide when the difference of their digits, not all zero, has a zero sum of stride * difference
// in every output. The search assigns differences output by output, from the largest stride down; what is
// left must stay within what the smaller strides can still take back.
class CollisionSearch {
 public:
  CollisionSearch(const Layout& l, Domain domain, bool broadcast_allowed) {
    for (const Digit& d : effective_digits(l, domain)) {
      if (d.extent < 2) continue;
      if (d.stride == 0) {
        if (!broadcast_allowed) broadcast_ = true;
        continue;
      }
      digits_.push_back(d);
    }
    std::sort(digits_.begin(), digits_.end(), [](const Digit& a, const Digit& b) {
      return a.output != b.output ? a.output < b.output : a.stride > b.stride;
    });
    delta_.assign(digits_.size(), 0);
    cap_.assign(digits_.size() + 1, 0);
    for (size_t i = digits_.size(); i-- > 0;) {
      const bool last = i + 1 == digits_.size() || digits_[i + 1].output != digits_[i].output;
      cap_[i] = (last ? 0 : cap_[i + 1]) + (digits_[i].extent - 1) * digits_[i].stride;
    }
    if (domain == Domain::shape) find_ragged_tops(l);
  }

  bool run() { return broadcast_ || search(0, 0, false); }

 private:
  // A top digit that the shape cuts in the middle: its last value goes with the low indices below `rest`
  // only.
  struct RaggedTop {
    int dim;
    int64_t weight, last, rest;
  };

  void find_ragged_tops(const Layout& l) {
    for (int k = 0; k < l.rank(); ++k) {
      RaggedTop top{k, 0, 0, 0};
      for (const Digit& d : l.digits())
        if (d.dim == k && d.weight < l.shape()[k]) top.weight = d.weight;
      if (top.weight <= 1) continue;
      top.last = (l.shape()[k] - 1) / top.weight;
      top.rest = l.shape()[k] - top.last * top.weight;
      if (top.rest < top.weight) ragged_.push_back(top);
    }
  }

  // Of two points whose top digits differ by all of `last`, the upper one sits in the cut part: its low index
  // is at least the sum of the positive differences below.
  bool fits_ragged_tops() const {
    for (const RaggedTop& top : ragged_) {
      int64_t difference = 0, up = 0, down = 0;
      for (size_t i = 0; i < digits_.size(); ++i) {
        const Digit& d = digits_[i];
        if (d.dim != top.dim) continue;
        if (d.weight == top.weight)
          difference = delta_[i];
        else
          (delta_[i] > 0 ? up : down) += std::abs(delta_[i]) * d.weight;
      }
      if (difference == top.last && up >= top.rest) return false;
      if (difference == -top.last && down >= top.rest) return false;
    }
    return true;
  }

  bool search(size_t i, int64_t left, bool differs) {
    if (++steps_ > kSteps) return true;
    if (i == digits_.size()) return differs && fits_ragged_tops();
    const Digit& d = digits_[i];
    const bool last = i + 1 == digits_.size() || digits_[i + 1].output != d.output;
    const int64_t cap = last ? 0 : cap_[i + 1];
    const int64_t lowest = std::max(differs ? -(d.extent - 1) : int64_t{0}, ceil_div(-cap - left, d.stride));
    const int64_t highest = std::min(d.extent - 1, floor_div(cap - left, d.stride));
    for (int64_t v = lowest; v <= highest; ++v) {
      delta_[i] = v;
      if (search(i + 1, left + v * d.stride, differs || v != 0)) return true;
    }
    delta_[i] = 0;
    return false;
  }

  static constexpr int64_t kSteps = 1 << 20;  // an adversarial set of strides is a subset-sum problem
  std::vector<Digit> digits_;
  std::vector<int64_t> delta_, cap_;
  std::vector<RaggedTop> ragged_;
  bool broadcast_ = false;
  int64_t steps_ = 0;
};

// XOR maps [0, bytes) onto itself when the block of addresses that `bytes` ends in is closed under its XOR
// value.
bool swizzle_keeps_box(const Swizzle& s, int64_t bytes) {
  if (s.none()) return true;
  const int64_t block = int64_t{1} << (s.base + s.bits);
  const int64_t rest = bytes % block;
  if (rest == 0) return true;
  const int64_t flipped = s.apply(bytes - rest) ^ (bytes - rest);
  if (flipped == 0) return true;
  int64_t top = 1;
  while (top * 2 <= flipped) top *= 2;
  return rest % (top * 2) == 0;
}

// Which starts of a run occur, modulo the period of the swizzle.
class Residues {
 public:
  explicit Residues(int64_t period) : seen_(period, false) { seen_[0] = true; }

  void add_digit(int64_t extent, int64_t stride) {
    const int64_t period = static_cast<int64_t>(seen_.size());
    const int64_t step = stride % period;
    if (step == 0) return;
    const int64_t around = std::gcd(step, period), turns = std::min(extent, period / around);
    std::vector<char> next(seen_.size(), false);
    if (turns == period / around) {  // it reaches all that are as far from a multiple of `around`
      for (int64_t start = 0; start < period; ++start) next[start % around] |= seen_[start];
      for (int64_t at = around; at < period; ++at) next[at] = next[at - around];
      seen_ = std::move(next);
      return;
    }
    for (int64_t start = 0; start < period; ++start) {
      if (!seen_[start]) continue;
      int64_t at = start;
      for (int64_t v = 0; v < turns; ++v) {
        next[at] = true;
        at += step;
        if (at >= period) at -= period;
      }
    }
    seen_ = std::move(next);
  }
  bool has(int64_t residue) const { return seen_[residue] != 0; }

 private:
  std::vector<char> seen_;
};

int64_t swizzled_place(const Layout& l, int64_t offset) {
  return l.swizzle().apply(offset * l.element_bytes()) / l.element_bytes();
}

// The swizzle moves the elements of one chunk as a whole: those tell that lie next to a border.
bool keeps_run(const Layout& l, int64_t start, int64_t run) {
  const int64_t chunk = (int64_t{1} << l.swizzle().base) / l.element_bytes();
  const int64_t first = swizzled_place(l, start);
  for (int64_t i = chunk - start % chunk; i < run; i += chunk)
    if (swizzled_place(l, start + i) != first + i) return false;
  return true;
}

// Where the runs of one dimension start: sums of digits, with the period of the swizzle.
struct RunStarts {
  int64_t period = 1;
  std::vector<std::pair<int64_t, int64_t>> digits;  // extent, stride
};

// Runs of `run` elements from every reachable start stay consecutive under the swizzle. `starts`: those of
// the `straight` elements that hold the runs. Most answers need no list of all starts: aligned runs that the
// swizzle moves as a whole stay, and a start of one digit alone may already be one that breaks.
bool swizzle_keeps_runs(const Layout& l, const RunStarts& of, std::optional<Residues>& starts,
                        int64_t straight, int64_t run) {
  const int64_t chunk = (int64_t{1} << l.swizzle().base) / l.element_bytes();
  const auto aligned = [&](const auto& digit) { return digit.second % of.period % run == 0; };
  if (run <= chunk && chunk % run == 0 && of.period % run == 0 &&
      std::all_of(of.digits.begin(), of.digits.end(), aligned))
    return true;
  const int64_t seen = std::min(run, of.period + 1);
  for (const auto& [extent, stride] : of.digits)
    if (extent > 1 && !keeps_run(l, stride % of.period, seen)) return false;
  if (!starts) {
    starts.emplace(of.period);
    for (const auto& [extent, stride] : of.digits) starts->add_digit(extent, stride);
  }
  Residues all = *starts;
  all.add_digit(straight / run, run);
  for (int64_t start = 0; start < of.period; ++start)
    if (all.has(start) && !keeps_run(l, start, seen)) return false;
  return true;
}

}  // namespace

namespace {

// In every output each stride goes beyond what the smaller ones reach, at every point of the padded box: most
// layouts.
bool is_mixed_radix(const Layout& l, bool broadcast_allowed) {
  SmallVector<Digit, 16> digits;
  for (const Digit& d : l.digits()) {
    if (d.stride == 0 && !broadcast_allowed) return false;
    if (d.stride > 0) digits.push_back(d);
  }
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) {
    return a.output != b.output ? a.output < b.output : a.stride < b.stride;
  });
  int64_t reach = 0;  // of the smaller strides
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && digits[i].output != digits[i - 1].output) reach = 0;
    if (digits[i].stride <= reach) return false;
    reach += (digits[i].extent - 1) * digits[i].stride;
  }
  return true;
}

}  // namespace

bool has_collision(const Layout& l, Domain domain, bool broadcast_allowed) {
  return !is_mixed_radix(l, broadcast_allowed) && CollisionSearch(l, domain, broadcast_allowed).run();
}

bool Layout::is_injective() const { return !has_collision(*this, Domain::shape, false); }

bool Layout::is_bijective() const {
  int64_t box = 1;
  for (int o = 0; o < outputs_; ++o) box *= output_extent(o);
  // A padding point may reach beyond what the shape reaches, so the box is counted, not assumed.
  if (box != elements() * replicas()) return false;
  return is_injective() && swizzle_keeps_box(swizzle_, box * element_bytes_);
}

int64_t Layout::contiguous_run(int dim, int output) const {
  int64_t straight = 1;
  for (const Digit& d : digits_) {
    if (d.dim != dim) continue;
    if (d.output != output || d.stride != straight) break;
    straight *= d.extent;
  }
  if (swizzle_.none() || straight == 1) return straight;
  const int64_t reach = output_extent(0) * element_bytes_;
  if (reach <= int64_t{1} << (swizzle_.base + swizzle_.shift)) return straight;  // no source bit is ever set
  // Beyond the reach of the layout a longer period changes nothing.
  int64_t period = 1;
  while (period < reach && period < int64_t{1} << (swizzle_.base + swizzle_.shift + swizzle_.bits))
    period *= 2;
  RunStarts of{period / element_bytes_, {}};
  for (const Digit& d : digits_)
    if (d.dim != dim || d.weight >= straight) of.digits.push_back({d.extent, d.stride});
  std::optional<Residues> starts;
  for (int64_t parts = 1; parts < straight; ++parts)
    if (straight % parts == 0 && swizzle_keeps_runs(*this, of, starts, straight, straight / parts))
      return straight / parts;
  return 1;
}

}  // namespace tilegen::layout
