// Division of small numbers by one that is known before a kernel runs: a multiplication and a shift.
//
// For 1 <= d < 2^31 and 0 <= x < 2^31, with s the least shift such that d <= 2^s and m = ceil(2^(31 + s) /
// d), which is less than 2^32: x / d = m * x >> (31 + s), since m exceeds the exact quotient by less than 2^s
// / d <= 1 of 2^31 parts (Granlund and Montgomery, "Division by Invariant Integers using Multiplication",
// 1994).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tilegen::thread {

constexpr int64_t kMaxDivided = INT32_MAX - 1;  // of the numbers divided

// m in the low half, s in the high one. Divisors from 2^31 on divide like 2^31 - 1: to nothing; below 1 they
// do not occur.
constexpr uint64_t reciprocal(int64_t divisor) {
  const auto d = static_cast<uint64_t>(std::clamp<int64_t>(divisor, 1, INT32_MAX));
  const auto shift = static_cast<uint64_t>(std::bit_width(d - 1));
  const uint64_t scale = uint64_t{1} << (31 + shift);
  return shift << 32 | (scale / d + (scale % d != 0));
}

// As the kernel divides: the high half of a product of 32-bit numbers, shifted.
constexpr uint32_t divide_by(uint64_t reciprocal, uint32_t x) {
  const uint64_t product = uint64_t{2 * x} * static_cast<uint32_t>(reciprocal);
  return static_cast<uint32_t>(product >> 32) >> (reciprocal >> 32);
}

}  // namespace tilegen::thread
