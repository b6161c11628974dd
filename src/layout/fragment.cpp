#include "layout/fragment.h"

#include <algorithm>
#include <cassert>

#include "layout/collision.h"
#include "layout/layout_refusal.h"
#include "support/checked.h"

namespace tilegen::layout {

namespace {

// For maps built from checked parts.
Fragment must(Expected<Layout> map, int64_t threads) {
  assert(map && "fragment map built from checked parts was refused");
  Expected<Fragment> f = Fragment::make(std::move(*map), threads);
  assert(f && "fragment built from checked parts was refused");
  return std::move(*f);
}

Layout must_map(std::vector<int64_t> shape, std::vector<Digit> digits) {
  Expected<Layout> map = Layout::make(std::move(shape), std::move(digits), 2);
  assert(map && "fragment map built from checked parts was refused");
  return std::move(*map);
}

void drop_idle_replicas(std::vector<Digit>& digits) {
  std::erase_if(digits, [](const Digit& d) { return d.dim == kReplica && d.stride == 0; });
}

// Replica weights follow from the order in which the digits stand.
void reweigh_replicas(std::vector<Digit>& digits) {
  int64_t weight = 1;
  for (Digit& d : digits) {
    if (d.dim != kReplica) continue;
    d.weight = weight;
    weight *= d.extent;
  }
}

}  // namespace

Expected<Fragment> Fragment::make(Layout map, int64_t threads) {
  if (map.outputs() != 2 || !map.swizzle().none())
    return refuse_layout(
        "a fragment map needs the two outputs thread and register and no swizzle, got " + map.to_text(),
        "swizzles belong to memory layouts");
  if (threads < 1 || map.output_extent(kThread) > threads)
    return refuse_layout("digits reach thread " + std::to_string(map.output_extent(kThread) - 1) + " of " +
                             std::to_string(threads) + " threads",
                         "use fewer or smaller thread digits, or more threads");
  std::vector<Digit> digits = map.digits();
  for (const Digit& d : digits)
    if (d.dim == kReplica && d.output != kThread)
      return refuse_layout("a replica digit adds to the register of " + map.to_text(),
                           "replicas are copies held by further threads");
  const size_t before = digits.size();
  drop_idle_replicas(digits);
  if (digits.size() != before) {
    reweigh_replicas(digits);
    map = must_map(map.shape(), std::move(digits));
  }
  if (has_collision(map, Domain::padded_box, true))
    return refuse_layout("two elements of one thread share a register in " + map.to_text(),
                         "give every digit a stride of its own; a stride of 0 shares on purpose");
  Fragment f;
  f.map_ = std::move(map);
  f.threads_ = threads;
  return f;
}

Fragment Fragment::replicated(std::span<const int64_t> shape, int64_t threads) {
  std::vector<Digit> digits = Layout::row_major(shape).digits();
  for (Digit& d : digits) d.output = kRegister;
  digits.push_back({.dim = kReplica, .extent = threads, .weight = 1, .output = kThread, .stride = 1});
  return must(Layout::make({shape.begin(), shape.end()}, std::move(digits), 2), threads);
}

Fragment Fragment::single_thread(const Layout& registers) {
  assert(registers.outputs() == 1 && registers.swizzle().none() && registers.replicas() == 1);
  std::vector<Digit> digits = registers.digits();
  for (Digit& d : digits) d.output = kRegister;
  return must(Layout::make(registers.shape(), std::move(digits), 2), 1);
}

namespace {

// Chooses how many threads go along each dimension. Fewest registers first; among choices within a quarter of
// the fewest the one with most threads on the last dimensions, where memory is contiguous.
class ThreadSplit {
 public:
  ThreadSplit(std::vector<int64_t> extents, int64_t threads) : extents_(std::move(extents)) {
    for (int64_t t = 1; t * t <= threads; ++t) {
      if (threads % t != 0) continue;
      divisors_.push_back(t);
      if (t * t != threads) divisors_.push_back(threads / t);
    }
    std::sort(divisors_.begin(), divisors_.end());
    along_.assign(extents_.size(), 1);
    least_ = INT64_MAX;
    least_ = find_least(extents_.size(), threads, 1);
    find_widest(extents_.size(), threads, 1);
  }
  const std::vector<int64_t>& along() const { return along_; }

 private:
  // Largest useful count along an extent: the first divisor that covers it.
  int64_t cover(int64_t extent, int64_t threads) const {
    for (int64_t t : divisors_)
      if (threads % t == 0 && t >= extent) return t;
    return threads;
  }
  // Registers this dimension and those before it cannot get below.
  int64_t bound(size_t dims, int64_t threads, int64_t registers) const {
    int64_t vectors = registers;
    for (size_t k = 0; k < dims; ++k) vectors *= extents_[k];
    return std::max(registers, ceil_div(vectors, threads));
  }
  int64_t find_least(size_t dims, int64_t threads, int64_t registers) {
    if (dims == 0) return registers;
    const int64_t extent = extents_[dims - 1], most = cover(extent, threads);
    int64_t best = least_;
    for (int64_t t : divisors_) {
      if (t > most || threads % t != 0) continue;
      const int64_t here = registers * ceil_div(extent, t);
      if (bound(dims - 1, threads / t, here) >= best) continue;
      best = least_ = std::min(best, find_least(dims - 1, threads / t, here));
    }
    return best;
  }
  bool find_widest(size_t dims, int64_t threads, int64_t registers) {
    if (dims == 0) return true;
    const int64_t extent = extents_[dims - 1], most = cover(extent, threads);
    for (size_t i = divisors_.size(); i-- > 0;) {
      const int64_t t = divisors_[i];
      if (t > most || threads % t != 0) continue;
      const int64_t here = registers * ceil_div(extent, t);
      if (bound(dims - 1, threads / t, here) > least_ + least_ / 4) continue;
      along_[dims - 1] = t;
      if (find_widest(dims - 1, threads / t, here)) return true;
    }
    along_[dims - 1] = 1;
    return false;
  }

  std::vector<int64_t> extents_, divisors_, along_;
  int64_t least_ = 0;
};

}  // namespace

Fragment Fragment::row_major_vectors(std::span<const int64_t> shape, int64_t threads, int64_t vector) {
  assert(threads >= 1 && vector >= 1);
  std::vector<int64_t> extents(shape.begin(), shape.end());  // in vectors
  if (extents.empty())
    vector = 1;
  else
    extents.back() = ceil_div(extents.back(), vector);
  const std::vector<int64_t> along = ThreadSplit(extents, threads).along();

  std::vector<Digit> digits;
  int64_t thread_stride = 1, register_stride = vector;
  for (size_t i = shape.size(); i-- > 0;) {
    const int k = static_cast<int>(i);
    int64_t weight = 1;
    if (i + 1 == shape.size()) {
      digits.push_back({.dim = k, .extent = vector, .weight = 1, .output = kRegister, .stride = 1});
      weight = vector;
    }
    const int64_t rounds = ceil_div(extents[i], along[i]);
    digits.push_back(
        {.dim = k, .extent = along[i], .weight = weight, .output = kThread, .stride = thread_stride});
    digits.push_back({.dim = k,
                      .extent = rounds,
                      .weight = weight * along[i],
                      .output = kRegister,
                      .stride = register_stride});
    thread_stride *= along[i];
    register_stride *= rounds;
  }
  digits.push_back({.dim = kReplica,
                    .extent = threads / thread_stride,
                    .weight = 1,
                    .output = kThread,
                    .stride = thread_stride});
  return must(Layout::make({shape.begin(), shape.end()}, std::move(digits), 2), threads);
}

namespace {

// New most significant digits of each dimension on one output; returns the factor by which that output grows.
int64_t append_repeats(const Layout& map, std::span<const int64_t> multipliers,
                       std::span<const int> dim_order, int output, int64_t stride,
                       std::vector<int64_t>& shape, std::vector<Digit>& digits) {
  assert(static_cast<int>(multipliers.size()) == map.rank() && dim_order.size() == multipliers.size());
  int64_t grown = 1;
  std::vector<bool> seen(multipliers.size(), false);
  for (int k : dim_order) {
    assert(k >= 0 && k < map.rank() && !seen[k] && multipliers[k] >= 1);
    seen[k] = true;
    if (multipliers[k] == 1) continue;
    assert(map.padded_extent(k) == shape[k] && "padding cannot be repeated");
    digits.push_back(
        {.dim = k, .extent = multipliers[k], .weight = shape[k], .output = output, .stride = stride});
    shape[k] *= multipliers[k];
    stride *= multipliers[k];
    grown *= multipliers[k];
  }
  return grown;
}

}  // namespace

Fragment Fragment::repeat(std::span<const int64_t> multipliers, std::span<const int> dim_order) const {
  std::vector<int64_t> new_shape = shape();
  std::vector<Digit> digits = map_.digits();
  append_repeats(map_, multipliers, dim_order, kRegister, registers(), new_shape, digits);
  return must(Layout::make(std::move(new_shape), std::move(digits), 2), threads_);
}

Fragment Fragment::repeat_on_thread(std::span<const int64_t> multipliers,
                                    std::span<const int> dim_order) const {
  std::vector<int64_t> new_shape = shape();
  std::vector<Digit> digits = map_.digits();
  const int64_t grown = append_repeats(map_, multipliers, dim_order, kThread, threads_, new_shape, digits);
  return must(Layout::make(std::move(new_shape), std::move(digits), 2), threads_ * grown);
}

Fragment Fragment::replicate(int64_t copies) const {
  assert(copies >= 1);
  std::vector<Digit> digits = map_.digits();
  digits.push_back(
      {.dim = kReplica, .extent = copies, .weight = replicas(), .output = kThread, .stride = threads_});
  return must(Layout::make(shape(), std::move(digits), 2), threads_ * copies);
}

namespace {

// Register strides renumbered without gaps, in their old order.
void compact_registers(std::vector<Digit>& digits) {
  std::vector<Digit*> order;
  for (Digit& d : digits)
    if (d.output == kRegister && d.stride != 0) order.push_back(&d);
  std::stable_sort(order.begin(), order.end(),
                   [](const Digit* a, const Digit* b) { return a->stride < b->stride; });
  int64_t stride = 1;
  for (Digit* d : order) {
    d->stride = stride;
    stride *= d->extent;
  }
}

}  // namespace

Fragment Fragment::reduce(int axis, bool keep_dim) const {
  assert(axis >= 0 && axis < rank());
  std::vector<int64_t> new_shape = shape();
  if (keep_dim)
    new_shape[axis] = 1;
  else
    new_shape.erase(new_shape.begin() + axis);
  std::vector<Digit> digits, replicas;
  for (Digit d : map_.digits()) {
    if (d.dim == kReplica || (d.dim == axis && d.output == kThread && d.stride != 0)) {
      d.dim = kReplica;
      replicas.push_back(d);
    } else if (d.dim != axis) {
      if (!keep_dim && d.dim > axis) --d.dim;
      digits.push_back(d);
    }
  }
  std::stable_sort(replicas.begin(), replicas.end(),
                   [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
  digits.insert(digits.end(), replicas.begin(), replicas.end());
  reweigh_replicas(digits);
  compact_registers(digits);
  return must(Layout::make(std::move(new_shape), std::move(digits), 2), threads_);
}

std::vector<int64_t> Fragment::holders(std::span<const int64_t> index) const {
  std::vector<int64_t> out(replicas());
  for (size_t r = 0; r < out.size(); ++r) out[r] = map_.eval(index, static_cast<int64_t>(r))[kThread];
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

int64_t Fragment::register_of(std::span<const int64_t> index) const { return map_.eval(index)[kRegister]; }

// The order of the copies means nothing, so replica digits are sorted by stride before they merge.
Fragment Fragment::canonical() const {
  std::vector<Digit> digits = map_.digits();
  std::stable_sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) {
    const bool ra = a.dim == kReplica, rb = b.dim == kReplica;
    return ra != rb ? rb : (ra && a.stride < b.stride);
  });
  reweigh_replicas(digits);
  Fragment f;
  f.map_ = must_map(shape(), std::move(digits)).canonical();
  f.threads_ = threads_;
  return f;
}

bool Fragment::equivalent(const Fragment& other) const { return canonical() == other.canonical(); }

}  // namespace tilegen::layout
