// Coverage. Thread and register coordinates are sums over dimensions, so a statement about
// every element splits into one small table per dimension and the set of sums over the tables: exact for
// padded and non-refining radices too, and linear in the extents rather than in the elements of the tile.
#include <algorithm>
#include <cassert>

#include "layout/coverage.h"

namespace tilegen::layout {

namespace {

// Coordinate added by index 0..extent-1 of a dimension (kReplica: by the replica index) to one output.
std::vector<int64_t> table(const Layout& map, int dim, int output, int64_t extent) {
  std::vector<int64_t> t{0};
  t.reserve(extent);
  for (const Digit& d : map.digits()) {
    if (d.dim != dim) continue;
    const size_t block = t.size();
    const int64_t stride = d.output == output ? d.stride : 0;
    for (int64_t v = 1; v < d.extent && static_cast<int64_t>(t.size()) < extent; ++v)
      for (size_t i = 0; i < block && static_cast<int64_t>(t.size()) < extent; ++i)
        t.push_back(t[i] + v * stride);
  }
  assert(static_cast<int64_t>(t.size()) == extent);
  return t;
}

// A set of integers, kept as its distinct values ascending.
using Values = std::vector<int64_t>;

// Collects values of [lowest, highest]: marks them where the range is dense, sorts them otherwise.
class DistinctValues {
 public:
  DistinctValues(int64_t lowest, int64_t highest, size_t count) : lowest_(lowest) {
    if (highest - lowest <= static_cast<int64_t>(16 * count + 1024))
      seen_.assign(highest - lowest + 1, 0);
    else
      values_.reserve(count);
  }
  void add(int64_t v) {
    if (seen_.empty())
      values_.push_back(v);
    else
      seen_[v - lowest_] = 1;
  }
  Values ascending() && {
    for (size_t i = 0; i < seen_.size(); ++i)
      if (seen_[i]) values_.push_back(lowest_ + static_cast<int64_t>(i));
    if (!seen_.empty()) return std::move(values_);
    std::sort(values_.begin(), values_.end());
    values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
    return std::move(values_);
  }

 private:
  int64_t lowest_;
  std::vector<char> seen_;
  Values values_;
};

void make_distinct(Values& v) {
  const auto [low, high] = std::minmax_element(v.begin(), v.end());
  DistinctValues set(*low, *high, v.size());
  for (int64_t x : v) set.add(x);
  v = std::move(set).ascending();
}

// Both ascending; so is the result.
Values sums(const Values& a, const Values& b) {
  if (b.size() == 1 && b[0] == 0) return a;
  DistinctValues set(a.front() + b.front(), a.back() + b.back(), a.size() * b.size());
  for (int64_t x : a)
    for (int64_t y : b) set.add(x + y);
  return std::move(set).ascending();
}

bool all_in(const Values& some, const Values& set) {
  return std::includes(set.begin(), set.end(), some.begin(), some.end());
}

// One coordinate of a fragment: per dimension and for the replicas.
struct Coordinate {
  std::vector<Values> of_dim;
  Values of_replica;
};

Coordinate thread_coordinate(const Fragment& f) {
  Coordinate c;
  for (int k = 0; k < f.rank(); ++k) c.of_dim.push_back(table(f.map(), k, kThread, f.shape()[k]));
  c.of_replica = table(f.map(), kReplica, kThread, f.replicas());
  return c;
}

// For every element: each coordinate it has in `to` (over the replicas) is one it has in `from`.
bool sums_within(const Coordinate& from, const Coordinate& to) {
  Values difference{0}, have = from.of_replica, ask = to.of_replica;
  make_distinct(have);
  make_distinct(ask);
  for (size_t k = 0; k < to.of_dim.size(); ++k) {
    Values d(to.of_dim[k].size());
    for (size_t i = 0; i < d.size(); ++i) d[i] = to.of_dim[k][i] - from.of_dim[k][i];
    make_distinct(d);
    // Each difference needs a replica of its own.
    if (d.size() > have.size()) return false;
    difference = sums(difference, d);
    if (difference.size() > have.size()) return false;
  }
  return all_in(sums(difference, ask), have);
}

}  // namespace

bool same_registers(const Fragment& a, const Fragment& b) {
  if (a == b) return true;
  for (int k = 0; k < a.rank(); ++k)
    if (table(a.map(), k, kRegister, a.shape()[k]) != table(b.map(), k, kRegister, b.shape()[k]))
      return false;
  return true;
}

bool Fragment::covers(const Fragment& other, std::span<const int> index_map) const {
  assert(static_cast<int>(index_map.size()) == rank());
  bool identity = true;
  for (int k = 0; k < rank(); ++k) identity = identity && index_map[k] == k;
  if (identity && *this == other) return true;
  const Coordinate theirs = thread_coordinate(other);
  // What this fragment adds per dimension of the iteration; dimensions read at a fixed index add nothing.
  Coordinate here;
  for (int64_t extent : other.shape()) here.of_dim.emplace_back(extent, 0);
  here.of_replica = table(map_, kReplica, kThread, replicas());
  for (int k = 0; k < rank(); ++k) {
    const int m = index_map[k];
    if (m == kBroadcast) continue;
    assert(m >= 0 && m < other.rank());
    if (other.shape()[m] > shape()[k]) return false;  // reads elements that are not there
    const Values t = table(map_, k, kThread, other.shape()[m]);
    for (size_t i = 0; i < t.size(); ++i) here.of_dim[m][i] += t[i];
  }
  return sums_within(here, theirs);
}

bool covers(const Fragment& held, const Fragment& iteration,
            const std::vector<std::vector<int64_t>>& threads_by_dim) {
  assert(static_cast<int>(threads_by_dim.size()) == iteration.rank());
  const Values replicas = table(held.map(), kReplica, kThread, held.replicas());
  return sums_within({threads_by_dim, replicas}, thread_coordinate(iteration));
}

const char* conversion_name(ConversionKind k) {
  switch (k) {
    case ConversionKind::none:
      return "none";
    case ConversionKind::register_permute:
      return "register_permute";
    case ConversionKind::shuffle:
      return "shuffle";
    case ConversionKind::shared_bounce:
      return "shared_bounce";
  }
  return "unknown";
}

}  // namespace tilegen::layout
