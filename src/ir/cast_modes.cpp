#include "ir/cast_modes.h"

#include <algorithm>
#include <cmath>

namespace tilegen::ir {
namespace {

// Every value of `from`, a number, is one of `to`.
bool is_exact(DType from, DType to) {
  if (from == to || is_bool(from)) return true;
  if (is_float(from))
    return to == DType::f64 || (to == DType::f32 && dtype_bits(from) < 32) ||
           (is_storage_only(from) && from != DType::e8m0 && is_float(to) && dtype_bits(to) >= 16);
  if (is_integer(to))
    return dtype_bits(to) > dtype_bits(from) &&
           (dtype_kind(to) == DTypeKind::signed_int || dtype_kind(from) == DTypeKind::unsigned_int);
  return (to == DType::f64 && dtype_bits(from) <= 32) || (to == DType::f32 && dtype_bits(from) <= 16) ||
         ((to == DType::f16 || to == DType::bf16) && dtype_bits(from) <= 8);
}

// The type that both are compared in, exactly.
DType common(DType from, DType to) {
  const bool wide = from == DType::f64 || to == DType::f64 || (is_integer(from) && dtype_bits(from) > 16);
  return wide ? DType::f64 : DType::f32;
}

DType bits_of(DType t) {
  return dtype_bits(t) == 64   ? DType::u64
         : dtype_bits(t) == 32 ? DType::u32
         : dtype_bits(t) == 16 ? DType::u16
                               : DType::u8;
}

// The nearest value of `to`, moved by one where it lies on the wrong side of the value.
ExprId rounded_float(ExprPool& e, CastRounding rounding, DType to, ExprId value) {
  const DType wide = common(e.type(value), to), unit = bits_of(to);
  const ExprId exact = e.cast(wide, value), near = e.cast(to, exact), back = e.cast(wide, near);
  const ExprId bits = e.bitcast(unit, near), one = e.const_int(1, unit);
  const auto moved = [&](ExprOp by) { return e.bitcast(to, e.binary(by, bits, one)); };
  if (rounding == CastRounding::zero) {
    const ExprId beyond = e.lt(e.unary(ExprOp::abs, exact), e.unary(ExprOp::abs, back));
    return e.select(beyond, moved(ExprOp::sub), near);
  }
  const bool down = rounding == CastRounding::down;
  const ExprId beyond = down ? e.lt(exact, back) : e.lt(back, exact);
  const ExprId sign = e.binary(ExprOp::shr, bits, e.const_int(dtype_bits(to) - 1, unit));
  const ExprId negative = e.binary(ExprOp::ne, sign, e.const_int(0, unit));
  const ExprId outwards = moved(ExprOp::add), inwards = moved(ExprOp::sub);
  return e.select(beyond,
                  down ? e.select(negative, outwards, inwards) : e.select(negative, inwards, outwards), near);
}

ExprId rounded(ExprPool& e, CastRounding rounding, DType to, ExprId value) {
  const DType from = e.type(value);
  if (rounding == CastRounding::given || is_exact(from, to)) return e.cast(to, value);
  if (is_integer(to)) {
    if (!is_float(from)) return e.cast(to, value);
    const ExprId x = is_storage_only(from) ? e.cast(DType::f32, value) : value;
    constexpr ExprOp kTo[] = {ExprOp::trunc, ExprOp::rint, ExprOp::trunc, ExprOp::floor, ExprOp::ceil};
    return e.cast(to, e.unary(kTo[static_cast<size_t>(rounding)], x));
  }
  return rounding == CastRounding::nearest ? e.cast(to, value) : rounded_float(e, rounding, to, value);
}

// An integer held to what `to` has, as far as its own type goes beyond.
ExprId held(ExprPool& e, DType to, ExprId value) {
  const DType from = e.type(value);
  const int bits = dtype_bits(to), own = dtype_bits(from);
  const bool to_signed = dtype_kind(to) == DTypeKind::signed_int;
  const bool from_signed = dtype_kind(from) == DTypeKind::signed_int;
  const int value_bits = to_signed ? bits - 1 : bits;  // of the greatest, all of them ones
  if (from_signed && (!to_signed || bits < own))
    value = e.binary(ExprOp::max, value, e.const_int(to_signed ? -(INT64_C(1) << (bits - 1)) : 0, from));
  if (value_bits < (from_signed ? own - 1 : own))
    value = e.binary(ExprOp::min, value,
                     e.const_int(static_cast<int64_t>((UINT64_C(1) << value_bits) - 1), from));
  return value;
}

double largest_finite(DType t) {
  switch (t) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return std::ldexp(255, 120);
    case DType::f32:
      return std::ldexp(16777215, 104);
    default:
      return 0;
  }
}

// From here on, or beyond it, a value is nearer to the number behind the largest finite one.
struct Beyond {
  double from;
  bool included;
  int64_t positive;  // the bits of what it becomes
};
Beyond beyond(DType t) {
  switch (t) {
    case DType::e4m3:
      return {464, false, 0x7f};
    case DType::e5m2:
      return {61440, true, 0x7c};
    case DType::e4m3fnuz:
      return {248, true, 0x80};
    default:
      return {61440, true, 0x80};
  }
}

ExprId overflowing(ExprPool& e, DType to, ExprId value) {
  const DType wide = common(e.type(value), to);
  const ExprId exact = e.cast(wide, value), size = e.unary(ExprOp::abs, exact);
  const Beyond end = beyond(to);
  const ExprId limit = e.const_float(end.from, wide);
  const ExprId over = end.included ? e.le(limit, size) : e.lt(limit, size);
  const ExprId positive = e.const_int(end.positive, DType::u8);
  const ExprId negative = e.const_int(end.positive | 0x80, DType::u8);
  const ExprId bits = e.select(e.lt(exact, e.const_float(0, wide)), negative, positive);
  return e.select(over, e.bitcast(to, bits), e.cast(to, value));
}

}  // namespace

bool set_cast_mode(CastMode& mode, std::string_view word) {
  constexpr std::string_view kRoundings[] = {"", "nearest", "zero", "down", "up"};
  constexpr std::string_view kEnds[] = {"", "saturate", "overflow"};
  for (size_t i = 1; i < std::size(kRoundings); ++i) {
    if (word != kRoundings[i]) continue;
    if (mode.rounding != CastRounding::given) return false;
    mode.rounding = static_cast<CastRounding>(i);
    return true;
  }
  for (size_t i = 1; i < std::size(kEnds); ++i) {
    if (word != kEnds[i]) continue;
    if (mode.end != CastEnd::given) return false;
    mode.end = static_cast<CastEnd>(i);
    return true;
  }
  return false;
}

std::optional<CastRefusal> cast_refusal(CastMode mode, DType from, DType to) {
  if (mode.plain()) return std::nullopt;
  const std::string what = std::string("a cast of ") + dtype_name(from) + " to " + dtype_name(to);
  if (is_bool(to) || to == DType::e8m0)
    return CastRefusal{what + " neither rounds nor ends otherwise",
                       "leave the words out: a bool is x != 0, an e8m0 the nearest exponent"};
  const bool directed = mode.rounding > CastRounding::nearest;
  if (directed && is_float(to) && !is_exact(from, to)) {
    if (dtype_bits(to) <= 8)
      return CastRefusal{what + " rounds to the nearest value alone",
                         "round to f16 first, or leave the word out"};
    if (is_integer(from) && dtype_bits(from) > 32)
      return CastRefusal{what + " rounds to the nearest value alone",
                         "cast halves of 32 bits, or leave the word out"};
  }
  if (mode.end == CastEnd::overflow && is_integer(to) && is_float(from))
    return CastRefusal{what + " has no value beyond the ends of the type",
                       "it saturates; leave the word out"};
  if (mode.end == CastEnd::overflow && to == DType::e2m1)
    return CastRefusal{what + " has neither infinities nor NaN to end with",
                       "it saturates; leave the word out"};
  return std::nullopt;
}

ExprId cast_by(ExprPool& e, CastMode mode, DType to, ExprId value) {
  const DType from = e.type(value);
  if (mode.end == CastEnd::saturate && is_integer(to) && is_integer(from))
    return e.cast(to, held(e, to, value));
  if (mode.end == CastEnd::overflow && is_storage_only(to) && is_float(to) && !is_exact(from, to))
    return overflowing(e, to, value);
  const ExprId made = rounded(e, mode.rounding, to, value);
  if (mode.end != CastEnd::saturate || is_storage_only(to) || !is_float(to) || is_exact(from, to))
    return made;
  if (to == DType::f64) return made;  // no other number is larger
  const ExprId most = e.const_float(largest_finite(to), to);
  return e.select(e.unary(ExprOp::isinf, made), e.binary(ExprOp::copysign, most, made), made);
}

}  // namespace tilegen::ir
