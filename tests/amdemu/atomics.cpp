// Results of atomic operations.
#include <algorithm>

#include "machine.h"

namespace tilegen::amdemu {

namespace {

template <class T>
T lesser(T a, T b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : std::min(a, b);
}
template <class T>
T greater(T a, T b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b);
}

// Two numbers of 16 bits.
template <class Sum>
uint32_t in_halves(uint64_t a, uint64_t b, Sum sum) {
  const auto low = [](uint64_t v) { return static_cast<uint16_t>(v); };
  return sum(low(a), low(b)) | uint32_t{sum(low(a >> 16), low(b >> 16))} << 16;
}

uint64_t float_result(int op, uint64_t old, uint64_t data) {
  const auto a = std::bit_cast<float>(static_cast<uint32_t>(old));
  const auto b = std::bit_cast<float>(static_cast<uint32_t>(data));
  const auto x = std::bit_cast<double>(old), y = std::bit_cast<double>(data);
  switch (op) {
    case kAddF32:
      return std::bit_cast<uint32_t>(a + b);
    case kMinF32:
      return std::bit_cast<uint32_t>(lesser(a, b));
    case kMaxF32:
      return std::bit_cast<uint32_t>(greater(a, b));
    case kAddF64:
      return std::bit_cast<uint64_t>(x + y);
    case kMinF64:
      return std::bit_cast<uint64_t>(lesser(x, y));
    case kMaxF64:
      return std::bit_cast<uint64_t>(greater(x, y));
    case kAddHalves:
      return in_halves(old, data, [](uint16_t u, uint16_t v) {
        return float_to_half(half_to_float(u) + half_to_float(v));
      });
    case kAddBf16:
      return in_halves(old, data, [](uint16_t u, uint16_t v) {
        return float_to_bf16(bf16_to_float(u) + bf16_to_float(v));
      });
  }
  fail("an atomic operation of number %d", op);
}

}  // namespace

uint64_t atomic_result(int op, uint64_t old, uint64_t d, uint64_t cmp, bool x2) {
  auto m = [&](uint64_t v) { return x2 ? v : (uint32_t)v; };
  int64_t so = x2 ? (int64_t)old : (int32_t)old, sd = x2 ? (int64_t)d : (int32_t)d;
  switch (op) {
    case kSwap:
      return d;
    case kCompareSwap:
      return m(old) == m(cmp) ? d : old;
    case kAdd:
      return m(old + d);
    case kSub:
      return m(old - d);
    case kReverseSub:
      return m(d - old);
    case kSignedMin:
      return m(so < sd ? so : sd);
    case kSignedMax:
      return m(so > sd ? so : sd);
    case kUnsignedMin:
      return std::min(m(old), m(d));
    case kUnsignedMax:
      return std::max(m(old), m(d));
    case kAnd:
      return old & d;
    case kOr:
      return old | d;
    case kXor:
      return m(old ^ d);
    case kIncrement:
      return m(old) >= m(d) ? 0 : m(old + 1);
    case kDecrement:
      return m(old) == 0 || m(old) > m(d) ? m(d) : m(old - 1);
    case kMaskedOr:
      return (old & ~d) | cmp;
  }
  return float_result(op, old, d);
}

}  // namespace tilegen::amdemu
