// Masks and XOR as arithmetic on digits.
//
//   x & 7            -> x % 8
//   (16*a + b) ^ s   -> ((16*a) ^ s) + b        for 0 <= b < 16 and s a multiple of 16: a swizzled
//                                               address stays affine in the part below the swizzle
//   (64*a + b) ^ s   -> 64*a + (b ^ s)          for 0 <= b, s < 64
//   x | y            -> x + y                   where they share no bit
#include <bit>

#include "arith/analyzer.h"
#include "support/checked.h"

namespace tilegen::arith {

using ir::ExprId;
using ir::ExprOp;

namespace {

int64_t power_of_two_in(int64_t v) {
  return static_cast<int64_t>(static_cast<uint64_t>(v) & (0 - static_cast<uint64_t>(v)));
}

// Terms of `s` that are multiples of g, and the others. The constant is split by digit.
void split_by(Analyzer& an, const Sum& s, int64_t g, Sum* high, Sum* low) {
  for (const Term& t : s.terms) {
    std::optional<int64_t> d =
        checked_mul(power_of_two_in(t.coeff), power_of_two_in(an.atom_divisor(t.atom)));
    bool multiple = !d || *d % g == 0;
    (multiple ? high : low)->terms.push_back(t);
  }
  low->constant = floor_mod(s.constant, g);
  high->constant = s.constant - low->constant;
}

}  // namespace

Sum Analyzer::linear_bits(ExprOp op, const Sum& a, const Sum& b) {
  if (op == ExprOp::bit_and) {
    if (b.is_constant()) return linear_mask(a, b.constant);
    if (a.is_constant()) return linear_mask(b, a.constant);
  }
  if (op == ExprOp::bit_xor) {
    if (a == b) return Sum{};
    if (auto s = split_low_bits(a, b)) return *s;
    if (auto s = split_low_bits(b, a)) return *s;
    if (auto s = split_high_bits(a, b)) return *s;
    if (auto s = split_high_bits(b, a)) return *s;
  }
  ExprId x = build(a), y = build(b);
  if (op == ExprOp::bit_or) {
    for (auto [high, low] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      Interval r = sum_range(*low);
      int64_t g = power_of_two_in(divisor(*high));
      if (is_exact(*low) && r.lo >= 0 && (g == 0 || r.hi < g))
        return combine(*high, *low, 1, pool_.binary(op, x, y));
    }
  }
  if (y < x) std::swap(x, y);
  if (pool_.is_const_int(x)) std::swap(x, y);
  return atom_unless_folded(op, pool_.binary(op, x, y));
}

// A mask of consecutive ones selects a digit: x & (2^t - 2^s) is x % 2^t - x % 2^s.
Sum Analyzer::linear_mask(const Sum& a, int64_t mask) {
  if (mask == 0) return Sum{};
  if (mask == -1) return a;
  int64_t low = power_of_two_in(mask);
  ExprId fallback = pool_.binary(ExprOp::bit_and, build(a), pool_.const_int(mask));
  if (mask == INT64_MIN) return opaque(fallback);
  if (mask < 0) {  // ones from `low` up
    if (mask != -low) return opaque(fallback);
    return combine(a, remainder(a, low), -1, fallback);
  }
  uint64_t top = static_cast<uint64_t>(mask) + static_cast<uint64_t>(low);
  if (!std::has_single_bit(top) || top > (uint64_t{1} << 62)) return opaque(fallback);
  Sum upper = remainder(a, static_cast<int64_t>(top));
  return low == 1 ? upper : combine(upper, remainder(a, low), -1, fallback);
}

std::optional<Sum> Analyzer::split_low_bits(const Sum& a, const Sum& b) {
  int64_t g = power_of_two_in(divisor(b));
  if (g <= 1) return std::nullopt;
  Sum high, low;
  split_by(*this, a, g, &high, &low);
  if (low.terms.empty() && low.constant == 0) return std::nullopt;
  Interval r = sum_range(low);
  if (r.lo < 0 || r.hi >= g) return std::nullopt;
  ExprId x = build(high), y = build(b);
  Sum mixed = linear_bits(ExprOp::bit_xor, linear(x), linear(y));
  std::optional<Sum> s = add_scaled(mixed, low, 1);
  return s ? std::optional<Sum>(joined(std::move(*s))) : std::nullopt;
}

std::optional<Sum> Analyzer::split_high_bits(const Sum& a, const Sum& b) {
  Interval rb = sum_range(b);
  if (!is_exact(b) || rb.lo < 0 || rb.hi >= (int64_t{1} << 40)) return std::nullopt;
  auto g = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rb.hi) + 1));
  for (; g < (int64_t{1} << 42); g *= 2) {
    Sum high, low;
    split_by(*this, a, g, &high, &low);
    if (high.terms.empty() && high.constant == 0) return std::nullopt;
    Interval r = sum_range(low);
    if (r.lo < 0 || r.hi >= g) continue;
    ExprId x = build(low), y = build(b);
    if (y < x) std::swap(x, y);
    if (pool_.is_const_int(x)) std::swap(x, y);
    std::optional<Sum> s =
        add_scaled(high, atom_unless_folded(ExprOp::bit_xor, pool_.binary(ExprOp::bit_xor, x, y)), 1);
    return s ? std::optional<Sum>(joined(std::move(*s))) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace tilegen::arith
