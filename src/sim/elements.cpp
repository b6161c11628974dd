// Elements between their form in memory and the cells that lanes compute with.
#include <bit>
#include <cmath>
#include <cstring>

#include "sim/lanes.h"

namespace tilegen::sim {

using ir::DType;

namespace {

template <class T>
T read(const std::byte* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class T>
void write(T v, std::byte* to) {
  std::memcpy(to, &v, sizeof v);
}

double half_value(uint16_t h) {
  const uint64_t sign = uint64_t{h & 0x8000u} << 48, mantissa = h & 0x3ffu;
  const uint64_t exponent = (h >> 10) & 31u;
  if (exponent == 0) return std::copysign(static_cast<double>(mantissa) * 0x1p-24, sign != 0 ? -1.0 : 1.0);
  const uint64_t wide = exponent == 31 ? 0x7ff : exponent + 1008;
  return std::bit_cast<double>(sign | wide << 52 | mantissa << 42);
}

uint16_t half_bits(double v) {
  const auto bits = std::bit_cast<uint64_t>(v);
  const auto sign = static_cast<uint16_t>((bits >> 48) & 0x8000u);
  const double magnitude = std::fabs(v);
  if (magnitude < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<uint16_t>(magnitude * 0x1p24));
  if (!(magnitude <= 65504.0)) return static_cast<uint16_t>(ir::float_to_bits(DType::f16, v));
  return static_cast<uint16_t>(sign | (((bits >> 42) & 0x1fffff) - (uint64_t{1008} << 10)));
}

// A conversion between float and double would make a NaN that signals quiet.
double single_value(float v) {
  return v == v ? v : ir::float_from_bits(DType::f32, std::bit_cast<uint32_t>(v));
}
float single_of(double v) {
  if (v == v) return static_cast<float>(v);
  return std::bit_cast<float>(static_cast<uint32_t>(ir::float_to_bits(DType::f32, v)));
}
double brain_value(uint16_t b) { return single_value(std::bit_cast<float>(uint32_t{b} << 16)); }
uint16_t brain_bits(double v) {
  if (v != v) return static_cast<uint16_t>(ir::float_to_bits(DType::bf16, v));
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(v)) >> 16);
}

}  // namespace

Cell decode_one(DType type, const std::byte* from) {
  Cell c{.i = 0};
  switch (type) {
    case DType::e4m3:
    case DType::e5m2:
    case DType::e4m3fnuz:
    case DType::e5m2fnuz:
      c.f = ir::float_from_bits(type, read<uint8_t>(from));
      break;
    case DType::f16:
      c.f = half_value(read<uint16_t>(from));
      break;
    case DType::bf16:
      c.f = brain_value(read<uint16_t>(from));
      break;
    case DType::f32:
      c.f = single_value(read<float>(from));
      break;
    case DType::f64:
      c.f = read<double>(from);
      break;
    case DType::i8:
      c.i = read<int8_t>(from);
      break;
    case DType::u8:
      c.i = read<uint8_t>(from);
      break;
    case DType::i16:
      c.i = read<int16_t>(from);
      break;
    case DType::u16:
      c.i = read<uint16_t>(from);
      break;
    case DType::i32:
      c.i = read<int32_t>(from);
      break;
    case DType::u32:
      c.i = read<uint32_t>(from);
      break;
    case DType::boolean:
      c.i = read<uint8_t>(from) != 0;
      break;
    default:
      c.i = read<int64_t>(from);
      break;
  }
  return c;
}

void encode_one(DType type, Cell value, std::byte* to) {
  switch (type) {
    case DType::e4m3:
    case DType::e5m2:
    case DType::e4m3fnuz:
    case DType::e5m2fnuz:
      return write(static_cast<uint8_t>(ir::float_to_bits(type, value.f)), to);
    case DType::f16:
      return write(half_bits(value.f), to);
    case DType::bf16:
      return write(brain_bits(value.f), to);
    case DType::f32:
      return write(single_of(value.f), to);
    case DType::f64:
      return write(value.f, to);
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return write(static_cast<uint8_t>(value.i), to);
    case DType::i16:
    case DType::u16:
      return write(static_cast<uint16_t>(value.i), to);
    case DType::i32:
    case DType::u32:
      return write(static_cast<uint32_t>(value.i), to);
    default:
      return write(value.i, to);
  }
}

}  // namespace tilegen::sim
