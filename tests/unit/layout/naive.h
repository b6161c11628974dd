// Definitions by enumeration that the symbolic answers are compared with, and seeded random layouts.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "layout/fragment.h"

namespace tilegen::layout::naive {

using Point = std::vector<int64_t>;

// Calls `visit` with every point of the box, last dimension fastest.
template <class Visit>
void for_each_point(const std::vector<int64_t>& box, Visit visit) {
  Point p(box.size(), 0);
  for (;;) {
    visit(static_cast<const Point&>(p));
    size_t k = box.size();
    while (k > 0 && ++p[k - 1] == box[k - 1]) p[--k] = 0;
    if (k == 0) return;
  }
}

inline std::vector<int64_t> padded_box(const Layout& l) {
  std::vector<int64_t> box;
  for (int k = 0; k < l.rank(); ++k) box.push_back(l.padded_extent(k));
  return box;
}

// Peels digits off each index by repeated division, without the weights; XORs bit by bit.
inline Point eval(const Layout& l, const Point& index, int64_t replica) {
  Point out(l.outputs(), 0), left = index;
  for (const Digit& d : l.digits()) {
    int64_t& rest = d.dim == kReplica ? replica : left[d.dim];
    out[d.output] += rest % d.extent * d.stride;
    rest /= d.extent;
  }
  const Swizzle& s = l.swizzle();
  if (s.bits > 0) {
    const int64_t address = out[0] * l.element_bytes();
    int64_t swizzled = address;
    for (int b = 0; b < s.bits; ++b)
      if (address >> (s.base + s.shift + b) & 1) swizzled ^= int64_t{1} << (s.base + b);
    out[0] = swizzled / l.element_bytes();
  }
  return out;
}

inline bool same_map(const Layout& a, const Layout& b, const std::vector<int64_t>& box) {
  bool same = a.outputs() == b.outputs() && a.replicas() == b.replicas();
  for_each_point(box, [&](const Point& p) {
    for (int64_t r = 0; same && r < a.replicas(); ++r) same = a.eval(p, r) == b.eval(p, r);
  });
  return same;
}

inline bool is_injective(const Layout& l) {
  std::set<Point> seen;
  bool injective = true;
  for_each_point(l.shape(), [&](const Point& p) {
    for (int64_t r = 0; injective && r < l.replicas(); ++r) injective = seen.insert(eval(l, p, r)).second;
  });
  return injective;
}

inline bool is_bijective(const Layout& l) {
  std::set<Point> seen;
  int64_t points = 0, box = 1;
  bool inside = true;
  for (int o = 0; o < l.outputs(); ++o) box *= l.output_extent(o);
  for_each_point(l.shape(), [&](const Point& p) {
    for (int64_t r = 0; r < l.replicas(); ++r, ++points) {
      Point at = eval(l, p, r);
      for (int o = 0; o < l.outputs(); ++o) inside = inside && at[o] < l.output_extent(o);
      seen.insert(std::move(at));
    }
  });
  return inside && points == box && static_cast<int64_t>(seen.size()) == box;
}

// Largest divisor r of the padded extent such that aligned runs of r are consecutive in `output`, equal in
// the others.
inline int64_t contiguous_run(const Layout& l, int dim, int output) {
  const int64_t extent = l.padded_extent(dim);
  auto holds = [&](int64_t r) {
    bool ok = true;
    for_each_point(padded_box(l), [&](const Point& p) {
      if (!ok || p[dim] % r == 0) return;
      Point before = p;
      --before[dim];
      for (int64_t rep = 0; ok && rep < l.replicas(); ++rep) {
        Point expected = eval(l, before, rep);
        ++expected[output];
        ok = eval(l, p, rep) == expected;
      }
    });
    return ok;
  };
  for (int64_t r = extent; r > 1; --r)
    if (extent % r == 0 && holds(r)) return r;
  return 1;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t range(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  bool chance(int percent) { return range(1, 100) <= percent; }
  template <class T>
  void shuffle(std::vector<T>& v) {
    std::shuffle(v.begin(), v.end(), engine_);
  }

 private:
  std::mt19937_64 engine_;
};

// Digits without strides: extents per dimension, at most `box` points in the padded box.
inline std::vector<Digit> random_radices(Random& random, int rank, int64_t box, bool with_replicas,
                                         std::vector<int64_t>& shape) {
  std::vector<Digit> digits;
  int64_t points = 1;
  shape.assign(rank, 1);
  for (int k = 0; k < rank + (with_replicas ? 1 : 0); ++k) {
    const int dim = k == rank ? kReplica : k;
    int64_t weight = 1, below_top = 1;
    for (int64_t n = random.range(k == rank ? 1 : 0, 3); n > 0; --n) {
      const int64_t extent = random.chance(60) ? int64_t{1} << random.range(1, 2) : random.range(2, 6);
      if (points * extent > box) break;
      points *= extent;
      digits.push_back({.dim = dim, .extent = extent, .weight = weight});
      below_top = weight;
      weight *= extent;
    }
    if (dim == kReplica) continue;
    shape[k] = weight;
    if (weight > 1 && random.chance(25)) shape[k] = random.range(random.chance(20) ? 1 : below_top, weight);
  }
  return digits;
}

// Compact strides in a random order (most of them bijective), gaps, broadcasts, or anything small.
inline void random_strides(Random& random, int outputs, bool replicas_on_first, std::vector<Digit>& digits) {
  const int64_t mode = random.range(0, 3);
  std::vector<size_t> order(digits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (random.chance(70)) random.shuffle(order);
  std::vector<int64_t> next(outputs, 1);
  for (size_t i : order) {
    Digit& d = digits[i];
    d.output = static_cast<int>(d.dim == kReplica && replicas_on_first ? 0 : random.range(0, outputs - 1));
    d.stride = next[d.output];
    next[d.output] *= d.extent;
    if (mode == 1 && random.chance(40)) next[d.output] += random.range(1, 4);
    if (mode == 2) d.stride = random.range(0, 12);
    if (mode == 3 && random.chance(15)) d.stride = 0;
  }
}

inline Layout random_layout(Random& random, int64_t box = 256) {
  for (;;) {
    const int outputs = random.chance(70) ? 1 : 2;
    std::vector<int64_t> shape;
    const int rank = static_cast<int>(random.range(0, 3));
    auto digits = random_radices(random, rank, box, random.chance(20), shape);
    random_strides(random, outputs, false, digits);
    Swizzle s;
    int element_bytes = 1 << random.range(0, 2);
    if (outputs == 1 && random.chance(40)) {
      s.bits = static_cast<int>(random.range(1, 3));
      s.base = static_cast<int>(random.range(2, 3));
      s.shift = s.bits + static_cast<int>(random.range(0, 1));
    }
    auto l = Layout::make(shape, digits, outputs, s, element_bytes);
    if (l) return *l;
  }
}

// A fragment of few threads, so that tables stay small.
inline Fragment random_fragment(Random& random, std::vector<int64_t> want_shape = {}, int64_t box = 96) {
  for (;;) {
    std::vector<int64_t> shape;
    const int rank =
        want_shape.empty() ? static_cast<int>(random.range(1, 3)) : static_cast<int>(want_shape.size());
    auto digits = random_radices(random, rank, box, random.chance(50), shape);
    if (!want_shape.empty()) {
      bool fits = true;
      std::vector<int64_t> reach(rank, 1);
      for (const Digit& d : digits)
        if (d.dim != kReplica) reach[d.dim] *= d.extent;
      for (int k = 0; k < rank; ++k) fits = fits && reach[k] >= want_shape[k];
      if (!fits) continue;
      shape = want_shape;
    }
    random_strides(random, 2, true, digits);
    auto map = Layout::make(shape, digits, 2);
    if (!map) continue;
    auto f = Fragment::make(*map, map->output_extent(kThread) + random.range(0, 3));
    if (f) return *f;
  }
}

}  // namespace tilegen::layout::naive
