// Layout: a map from the logical indices of a tile to output coordinates (paper section 4.1).
//
// Every logical dimension is split into mixed-radix digits. Digit d of dimension k has an extent and a
// weight:
//     value of digit = (index_k / weight) % extent
// and each digit adds value * stride to one output coordinate. Within a dimension the digits, sorted by
// weight, are a mixed radix system: weight 1 first, the next weight = previous weight * previous extent. The
// top digit may be padded: the product of a dimension's digit extents may exceed its shape; points beyond the
// shape are padding and become predicates. A digit of extent 1 is dropped, so a dimension of shape 1 has
// none.
//
// A memory layout has one output (the element offset) and may add one XOR swizzle on the byte address.
// Padding is a stride larger than compact. A Fragment has the outputs {thread, register} and may have replica
// digits: digits of no dimension (dim == kReplica) on the thread side; the element is held by every thread
// they reach.
//
// Operations are partial: where radices do not refine each other they refuse with a reason, never
// approximate.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tilegen::layout {

constexpr int kReplica = -1;

struct Digit {
  int dim = 0;         // logical dimension, or kReplica
  int64_t extent = 1;  // > 1
  int64_t weight = 1;  // of the digit within its dimension (replica digits: within the replica index)
  int output = 0;      // coordinate it adds to
  int64_t stride = 0;  // per unit of the digit; 0 = broadcast (several indices share a coordinate)
  bool operator==(const Digit&) const = default;
};

// XOR swizzle on byte addresses: bits [base+shift, base+shift+bits) are XORed into bits [base, base+bits).
// The NVIDIA 128-byte swizzle is {bits 3, base 4, shift 3}; 64: {2,4,3}; 32: {1,4,3}.
struct Swizzle {
  int bits = 0;  // 0 = none
  int base = 4;
  int shift = 3;
  bool operator==(const Swizzle&) const = default;
  bool none() const { return bits == 0; }
  int64_t apply(int64_t byte_address) const;  // an involution
};

class Layout {
 public:
  Layout() = default;

  // Refuses (bad_shape) digits that are not a mixed radix system as described above or do not reach the
  // shape, negative strides, overflow, and a swizzle that is no involution (shift < bits) or would tear
  // elements apart (element_bytes must divide 2^base).
  static Expected<Layout> make(std::vector<int64_t> shape, std::vector<Digit> digits, int outputs,
                               Swizzle swizzle = {}, int element_bytes = 1);
  static Layout row_major(std::span<const int64_t> shape);
  static Layout column_major(std::span<const int64_t> shape);
  // Row-major with `pad` extra elements after each row (last dimension).
  static Layout padded_row_major(std::span<const int64_t> shape, int64_t pad);

  int rank() const { return static_cast<int>(shape_.size()); }
  const std::vector<int64_t>& shape() const { return shape_; }
  const std::vector<Digit>& digits() const { return digits_; }  // sorted by (dim, weight); replicas last
  int outputs() const { return outputs_; }
  const Swizzle& swizzle() const { return swizzle_; }
  int element_bytes() const { return element_bytes_; }

  int64_t elements() const;                 // product of the shape
  int64_t padded_extent(int dim) const;     // product of the digit extents of a dimension
  int64_t output_extent(int output) const;  // 1 + largest coordinate over the padded box (before swizzle)
  int64_t replicas() const;                 // product of replica extents

  // Coordinates of one point; `replica` indexes the replica digits. The swizzle is applied to output 0.
  std::vector<int64_t> eval(std::span<const int64_t> index, int64_t replica = 0) const;
  int64_t offset(std::span<const int64_t> index) const;  // outputs() == 1

  // All four are symbolic, decided on digits alone. The first two speak of points inside the shape.
  bool is_injective() const;  // distinct (index, replica) points have distinct coordinates; false where the
                              // strides are so hostile that a bounded search proves nothing
  bool is_bijective() const;  // injective and onto the box of the output extents
  // Largest r that divides the padded extent of `dim` such that r elements along it, starting at any multiple
  // of r, have consecutive coordinates in `output` and equal others; at every point of the padded box, after
  // the swizzle. Any divisor of it is a legal vector width; a vector may reach into padding.
  int64_t contiguous_run(int dim, int output = 0) const;
  // Adjacent digits that act as one are merged. Equal maps on the padded box with the same padding, element
  // size and swizzle have equal canonical forms.
  Layout canonical() const;
  bool equivalent(const Layout& other) const { return canonical() == other.canonical(); }

  // (this after inner): inner's outputs are this layout's dimensions. Needs inner without swizzle or
  // replicas, and its padded box inside this one's. Refused where a digit of inner straddles two digits or
  // sums of digits carry.
  Expected<Layout> compose(const Layout& inner) const;
  // Layout of the dimensions reordered: result dim i is this dim order[i].
  Layout permute(std::span<const int> order) const;
  // The swizzle set or replaced; refused unless the layout has one output.
  Expected<Layout> with_swizzle(Swizzle s, int element_bytes) const;

  // "(128,32) -> [0: d0/1%128*32 + d1/1%32*1] swizzle(3,4,3)@2"; from_text reads exactly this back. "@2" is
  // the element size. Replica digits stand last, with the output they add to: "r: o0/1%4*32".
  std::string to_text() const;
  static Expected<Layout> from_text(std::string_view text);

  bool operator==(const Layout&) const = default;

 private:
  std::vector<int64_t> shape_;
  std::vector<Digit> digits_;
  int outputs_ = 1;
  Swizzle swizzle_;
  int element_bytes_ = 1;
};

}  // namespace tilegen::layout
