#include "layout/layout.h"

#include <algorithm>
#include <cassert>
#include <tuple>

#include "layout/layout_refusal.h"
#include "support/checked.h"

namespace tilegen::layout {

int64_t Swizzle::apply(int64_t byte_address) const {
  if (bits == 0) return byte_address;
  const int64_t mask = ((int64_t{1} << bits) - 1) << base;
  return byte_address ^ ((byte_address >> shift) & mask);
}

namespace {

std::string dim_name(int dim) {
  return dim == kReplica ? "the replica index" : "dimension " + std::to_string(dim);
}

// Replicas sort after every dimension.
int sort_key(int dim) { return dim == kReplica ? INT32_MAX : dim; }

std::optional<Error> check_digit(const Digit& d, int rank, int outputs) {
  if (d.dim != kReplica && (d.dim < 0 || d.dim >= rank))
    return refuse_layout(
        "a digit names dimension " + std::to_string(d.dim) + " of a layout of rank " + std::to_string(rank),
        "number dimensions from 0 to rank - 1");
  if (d.extent < 1)
    return refuse_layout("a digit of " + dim_name(d.dim) + " has extent " + std::to_string(d.extent),
                         "digit extents are at least 1");
  if (d.output < 0 || d.output >= outputs)
    return refuse_layout("a digit of " + dim_name(d.dim) + " adds to output " + std::to_string(d.output) +
                             " of " + std::to_string(outputs),
                         "number outputs from 0");
  if (d.stride < 0)
    return refuse_layout("a digit of " + dim_name(d.dim) + " has stride " + std::to_string(d.stride),
                         "strides are zero or positive");
  return std::nullopt;
}

std::optional<Error> check_swizzle(const Swizzle& s, int outputs, int element_bytes) {
  if (element_bytes < 1)
    return refuse_layout("element size " + std::to_string(element_bytes) + " bytes",
                         "use a size of at least 1 byte");
  if (s.none()) return std::nullopt;
  if (outputs != 1)
    return refuse_layout("a swizzle on a layout of " + std::to_string(outputs) + " outputs",
                         "swizzles apply to memory layouts, which have one output");
  const std::string name = "swizzle(" + std::to_string(s.bits) + "," + std::to_string(s.base) + "," +
                           std::to_string(s.shift) + ")";
  if (s.bits < 0 || s.base < 0 || s.shift < s.bits || s.bits > 62 || s.base > 62 || s.shift > 62 ||
      s.bits + s.base + s.shift > 62)
    return refuse_layout(name + " is not an involution on addresses",
                         "use bits >= 0, base >= 0, shift >= bits and bits + base + shift <= 62");
  if ((int64_t{1} << s.base) % element_bytes != 0)
    return refuse_layout(name + " would tear elements of " + std::to_string(element_bytes) + " bytes apart",
                         "the element size must divide 2^base");
  return std::nullopt;
}

// Digits are sorted: within a dimension each weight is the product of the extents before it.
std::optional<Error> check_radices(const std::vector<int64_t>& shape, const std::vector<Digit>& digits) {
  std::vector<int64_t> next(shape.size() + 1,
                            1);  // weight expected next; the last entry is the replica index
  for (const Digit& d : digits) {
    int64_t& expected = d.dim == kReplica ? next.back() : next[d.dim];
    if (d.weight != expected)
      return refuse_layout("digits of " + dim_name(d.dim) + " are no mixed radix system: a digit of extent " +
                               std::to_string(d.extent) + " has weight " + std::to_string(d.weight) +
                               ", expected " + std::to_string(expected),
                           "each weight is the product of the extents of the digits below it");
    auto product = checked_mul(expected, d.extent);
    if (!product)
      return refuse_layout("digit extents of " + dim_name(d.dim) + " overflow", "use smaller extents");
    expected = *product;
  }
  for (size_t k = 0; k < shape.size(); ++k)
    if (next[k] < shape[k])
      return refuse_layout("digits of dimension " + std::to_string(k) + " reach " + std::to_string(next[k]) +
                               " of its extent " + std::to_string(shape[k]),
                           "add a digit; one of stride 0 makes indices share a coordinate");
  if (!checked_product(next)) return refuse_layout("the padded box overflows", "use a smaller shape");
  return std::nullopt;
}

std::optional<Error> check_extents(const std::vector<Digit>& digits, int outputs, int element_bytes) {
  std::vector<int64_t> reach(outputs, 1);
  for (const Digit& d : digits) {
    auto span = checked_mul(d.extent - 1, d.stride);
    auto sum = span ? checked_add(reach[d.output], *span) : std::nullopt;
    if (!sum || !checked_mul(*sum, element_bytes))
      return refuse_layout("coordinates of output " + std::to_string(d.output) + " overflow",
                           "use smaller strides or extents");
    reach[d.output] = *sum;
  }
  if (!checked_product(reach))
    return refuse_layout("the box of the outputs overflows", "use smaller strides");
  return std::nullopt;
}

Layout must(Expected<Layout> l) {
  assert(l && "layout built from checked parts was refused");
  return std::move(*l);
}

}  // namespace

std::string describe_dim(const Layout& l, int dim) {
  std::string text = dim_name(dim);
  if (dim != kReplica)
    text += " (extent " + std::to_string(l.shape()[dim]) + ", digits ";
  else
    text += " (digits ";
  std::string digits;
  for (const Digit& d : l.digits())
    if (d.dim == dim) digits += (digits.empty() ? "" : "x") + std::to_string(d.extent);
  return text + (digits.empty() ? "none" : digits) + ")";
}

Expected<Layout> Layout::make(std::vector<int64_t> shape, std::vector<Digit> digits, int outputs,
                              Swizzle swizzle, int element_bytes) {
  if (outputs < 1)
    return refuse_layout("a layout of " + std::to_string(outputs) + " outputs",
                         "a layout has at least one output");
  for (size_t k = 0; k < shape.size(); ++k)
    if (shape[k] < 1)
      return refuse_layout("dimension " + std::to_string(k) + " has extent " + std::to_string(shape[k]),
                           "extents of a layout are at least 1");
  for (const Digit& d : digits)
    if (auto error = check_digit(d, static_cast<int>(shape.size()), outputs)) return std::move(*error);
  std::erase_if(digits, [](const Digit& d) { return d.extent == 1; });
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) {
    return std::tuple(sort_key(a.dim), a.weight) < std::tuple(sort_key(b.dim), b.weight);
  });
  if (auto error = check_swizzle(swizzle, outputs, element_bytes)) return std::move(*error);
  if (auto error = check_radices(shape, digits)) return std::move(*error);
  if (auto error = check_extents(digits, outputs, element_bytes)) return std::move(*error);
  Layout l;
  l.shape_ = std::move(shape);
  l.digits_ = std::move(digits);
  l.outputs_ = outputs;
  l.swizzle_ = swizzle.none() ? Swizzle{} : swizzle;
  l.element_bytes_ = element_bytes;
  return l;
}

namespace {

// One digit per dimension; `order` from the fastest growing to the slowest.
Layout compact(std::span<const int64_t> shape, std::span<const int> order, int64_t pad_after_first) {
  std::vector<Digit> digits;
  int64_t stride = 1;
  for (size_t i = 0; i < order.size(); ++i) {
    const int k = order[i];
    digits.push_back({.dim = k, .extent = shape[k], .weight = 1, .output = 0, .stride = stride});
    stride *= shape[k];
    if (i == 0) stride += pad_after_first;
  }
  return must(Layout::make({shape.begin(), shape.end()}, std::move(digits), 1));
}

std::vector<int> counting(size_t n, bool reversed) {
  std::vector<int> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = static_cast<int>(reversed ? n - 1 - i : i);
  return order;
}

}  // namespace

Layout Layout::row_major(std::span<const int64_t> shape) {
  return compact(shape, counting(shape.size(), true), 0);
}

Layout Layout::column_major(std::span<const int64_t> shape) {
  return compact(shape, counting(shape.size(), false), 0);
}

Layout Layout::padded_row_major(std::span<const int64_t> shape, int64_t pad) {
  return compact(shape, counting(shape.size(), true), pad);
}

int64_t Layout::elements() const {
  int64_t n = 1;
  for (int64_t e : shape_) n *= e;
  return n;
}

int64_t Layout::padded_extent(int dim) const {
  int64_t n = 1;
  for (const Digit& d : digits_)
    if (d.dim == dim) n *= d.extent;
  return n;
}

int64_t Layout::output_extent(int output) const {
  int64_t n = 1;
  for (const Digit& d : digits_)
    if (d.output == output) n += (d.extent - 1) * d.stride;
  return n;
}

int64_t Layout::replicas() const { return padded_extent(kReplica); }

std::vector<int64_t> Layout::eval(std::span<const int64_t> index, int64_t replica) const {
  assert(index.size() == shape_.size());
  std::vector<int64_t> out(outputs_, 0);
  for (const Digit& d : digits_) {
    const int64_t i = d.dim == kReplica ? replica : index[d.dim];
    out[d.output] += i / d.weight % d.extent * d.stride;
  }
  if (!swizzle_.none()) out[0] = swizzle_.apply(out[0] * element_bytes_) / element_bytes_;
  return out;
}

int64_t Layout::offset(std::span<const int64_t> index) const {
  assert(outputs_ == 1 && index.size() == shape_.size());
  int64_t sum = 0;
  for (const Digit& d : digits_)
    if (d.dim != kReplica) sum += index[d.dim] / d.weight % d.extent * d.stride;
  return swizzle_.none() ? sum : swizzle_.apply(sum * element_bytes_) / element_bytes_;
}

Layout Layout::canonical() const {
  Layout c = *this;
  c.digits_.clear();
  for (Digit d : digits_) {
    if (d.stride == 0) d.output = 0;  // a broadcast adds to no coordinate in particular
    if (!c.digits_.empty()) {
      Digit& below = c.digits_.back();
      if (below.dim == d.dim && below.output == d.output && below.stride * below.extent == d.stride) {
        below.extent *= d.extent;
        continue;
      }
    }
    c.digits_.push_back(d);
  }
  return c;
}

Layout Layout::permute(std::span<const int> order) const {
  assert(order.size() == shape_.size());
  std::vector<int64_t> shape(shape_.size());
  std::vector<int> place(shape_.size(), -1);  // where a dimension went
  for (size_t i = 0; i < order.size(); ++i) {
    assert(order[i] >= 0 && order[i] < rank() && place[order[i]] < 0 && "order is a permutation");
    shape[i] = shape_[order[i]];
    place[order[i]] = static_cast<int>(i);
  }
  std::vector<Digit> digits = digits_;
  for (Digit& d : digits)
    if (d.dim != kReplica) d.dim = place[d.dim];
  return must(make(std::move(shape), std::move(digits), outputs_, swizzle_, element_bytes_));
}

Expected<Layout> Layout::with_swizzle(Swizzle s, int element_bytes) const {
  if (outputs_ != 1)
    return refuse_layout("a swizzle on a layout of " + std::to_string(outputs_) + " outputs",
                         "swizzles apply to memory layouts, which have one output");
  return make(shape_, digits_, outputs_, s, element_bytes);
}

}  // namespace tilegen::layout
