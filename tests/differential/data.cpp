#include "data.h"

#include <array>
#include <cmath>
#include <limits>

namespace tilegen::differential {

using ir::DType;

double default_magnitude(DType t) { return ir::dtype_bits(t) == 16 ? 8 : 64; }

Random::Random(uint64_t seed, std::string_view name) : state_(seed) {
  for (char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  bits();
}

// splitmix64
uint64_t Random::bits() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double whole(Random& r, DType t, double magnitude) {
  const auto m = static_cast<int64_t>(magnitude > 0 ? magnitude : default_magnitude(t));
  return static_cast<double>(r.between(-m, m));
}

double floating(Random& r, DType t, Data data, double magnitude) {
  switch (data) {
    case Data::integers:
      return whole(r, t, magnitude);
    case Data::integers_specials:
      return r.chance(24) ? r.pick({kInf, -kInf, kNan, 0.0, -0.0}) : whole(r, t, magnitude);
    case Data::reals:
      return (2 * r.unit() - 1) * (magnitude > 0 ? magnitude : 1);
    case Data::bit_patterns:
      break;
  }
  if (r.chance(3))
    return r.pick({kInf,    -kInf,        kNan,         0.0,           -0.0,
                   1.0,     -1.0,         0.5,          1e-5,          127.0,
                   128.0,   255.5,        -128.5,       32767.5,       65504.0,
                   65520.0, 2147483647.0, 2147483648.0, -2147483649.0, 9.2233720368547758e18,
                   3e38,    1e-38,        6e-8,         1e-45});
  if (r.chance(2)) return std::ldexp(2 * r.unit() - 1, static_cast<int>(r.between(-12, 12)));
  return ir::float_from_bits(
      t, r.bits() & (ir::dtype_bits(t) == 64 ? ~uint64_t{0} : (uint64_t{1} << ir::dtype_bits(t)) - 1));
}

}  // namespace

uint64_t random_element(Random& r, DType t, Data data, double magnitude) {
  if (ir::is_float(t)) return ir::float_to_bits(t, floating(r, t, data, magnitude));
  if (ir::is_bool(t)) return r.bits() & 1;
  const uint64_t bits = r.bits();
  if (ir::dtype_bits(t) == 8 || r.chance(8))
    return bits & (ir::dtype_bits(t) == 64 ? ~uint64_t{0} : (uint64_t{1} << ir::dtype_bits(t)) - 1);
  return static_cast<uint64_t>(r.between(-100, 100)) & (ir::dtype_bits(t) == 64 ? ~uint64_t{0} : 0xffffffffu);
}

}  // namespace tilegen::differential
