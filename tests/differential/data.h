// Values of tensors and scalars, a pure function of a seed and the parameter's name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/dtype.h"

namespace tilegen::differential {

// What floating elements hold. Integer types: the narrow ones their whole range, the wide ones mostly small
// numbers.
enum class Data : uint8_t {
  integers,           // whole numbers up to a magnitude: sums and products stay exact
  integers_specials,  // and now and then an infinity, a NaN or a zero of either sign
  reals,              // uniform in -magnitude .. magnitude
  bit_patterns        // anything: special values and random bits, subnormals among them
};

// The largest magnitude of Data::integers unless told otherwise, small enough for sums of some hundred
// products.
double default_magnitude(ir::DType t);

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  Random(uint64_t seed, std::string_view name);
  uint64_t bits();
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }  // n > 0
  int64_t between(int64_t first, int64_t last) { return first + below(last - first + 1); }
  bool chance(int64_t of) { return below(of) == 0; }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  template <class T>
  const T& pick(std::span<const T> list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int64_t>(list.size()))];
  }

 private:
  uint64_t state_;
};

// Bits of one element; `magnitude` 0 = the default.
uint64_t random_element(Random& random, ir::DType t, Data data, double magnitude);

}  // namespace tilegen::differential
