#include "ir/packed_codes.h"

#include <algorithm>

namespace tilegen::ir {
namespace {

ExprId number(ExprPool& e, int64_t v) { return e.const_int(v, DType::i32); }
ExprId masked(ExprPool& e, ExprId v, int64_t mask) { return e.binary(ExprOp::bit_and, v, number(e, mask)); }

// The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6, whose codes are 0 to 7: so many steps of a half below 2, of one
// from there to 4, of two above. A NaN is taken for 6. Texts repeat an operand: it is named as seldom as may
// be.
ExprId encoded_e2m1(ExprPool& e, ExprId value) {
  const DType t = e.type(value) == DType::f64 ? DType::f64 : DType::f32;
  const auto c = [&](double v) { return e.const_float(v, t); };
  const ExprId x = e.binary(ExprOp::min, e.cast(t, value), c(6)), size = e.unary(ExprOp::abs, x);
  const auto most = [&](ExprId v, double end) { return e.binary(ExprOp::min, v, c(end)); };
  const auto beyond = [&](double end) {
    return e.binary(ExprOp::sub, e.binary(ExprOp::max, most(size, end + 2), c(end)), c(end));
  };
  const auto steps = [&](ExprId v, double by) {
    return e.unary(ExprOp::rint, e.binary(ExprOp::mul, v, c(by)));
  };
  const ExprId below_4 = e.binary(ExprOp::add, steps(most(size, 2), 2), steps(beyond(2), 1));
  const ExprId code = e.binary(ExprOp::add, below_4, steps(beyond(4), 0.5));
  const DType bits = t == DType::f64 ? DType::u64 : DType::u32;
  const ExprId upper = e.binary(ExprOp::shr, e.bitcast(bits, x), e.const_int(dtype_bits(t) - 4, bits));
  return e.binary(ExprOp::bit_or, e.cast(DType::i32, code), masked(e, e.cast(DType::i32, upper), 8));
}

// The exponent, one more from one and a half on; what has a sign, or is none, lies above the largest number.
ExprId encoded_e8m0(ExprPool& e, ExprId value) {
  const ExprId bits = e.bitcast(DType::u64, e.cast(DType::f64, value));
  const auto c = [&](uint64_t v) { return e.const_int(static_cast<int64_t>(v), DType::u64); };
  const ExprId rounded = e.binary(ExprOp::shr, e.binary(ExprOp::add, bits, c(uint64_t{1} << 51)), c(52));
  ExprId code = e.binary(ExprOp::sub, e.cast(DType::i32, rounded), number(e, 1023 - 127));
  code = e.binary(ExprOp::min, e.binary(ExprOp::max, code, number(e, 0)), number(e, 254));
  return e.select(e.lt(bits, c(uint64_t{0x7ff} << 52)), code, number(e, 255));
}

// The sign reaches down to the exponent's place and is kept at its own; that exponent is 14 less than f16's.
ExprId decoded_e2m1(ExprPool& e, ExprId code) {
  const ExprId upper = e.binary(ExprOp::shl, code, number(e, 28));
  const ExprId bits = masked(e, e.binary(ExprOp::shr, upper, number(e, 19)), 0x8e00);
  return e.binary(ExprOp::mul, e.bitcast(DType::f16, e.cast(DType::u16, bits)),
                  e.const_float(16384, DType::f16));
}

// 2^-127 is below the exponents of f32; of 255 the infinity becomes a NaN.
ExprId decoded_e8m0(ExprPool& e, ExprId code) {
  const ExprId exponent =
      e.binary(ExprOp::max, e.binary(ExprOp::shl, code, number(e, 23)), number(e, 1 << 22));
  const ExprId last = e.binary(ExprOp::shr, e.binary(ExprOp::add, code, number(e, 1)), number(e, 8));
  const ExprId quiet = e.binary(ExprOp::shl, last, number(e, 22));
  return e.bitcast(DType::f32, e.binary(ExprOp::bit_or, exponent, quiet));
}

}  // namespace

DType decoded_type(DType packed) {
  return packed == DType::e2m1 ? DType::f16 : packed == DType::e8m0 ? DType::f32 : DType::i32;
}

ExprId decoded(ExprPool& e, DType packed, ExprId code, DType to) {
  ExprId value = code;
  if (packed == DType::e2m1) value = decoded_e2m1(e, code);
  if (packed == DType::e8m0) value = decoded_e8m0(e, code);
  if (dtype_kind(packed) == DTypeKind::signed_int) {
    const ExprId sign = number(e, int64_t{1} << (dtype_bits(packed) - 1));
    value = e.binary(ExprOp::sub, e.binary(ExprOp::bit_xor, code, sign), sign);
  }
  return e.cast(to, value);
}

ExprId encoded(ExprPool& e, DType packed, ExprId value) {
  const DType from = e.type(value);
  const int bits = dtype_bits(packed);
  const bool is_exact = e.is_const(value);
  if (is_exact && is_float(packed))
    return number(e, static_cast<int64_t>(float_to_bits(packed, e[e.cast(packed, value)].float_value())));
  if (is_float(packed)) {
    if (!is_float(from)) value = e.cast(DType::f32, value);
    return packed == DType::e2m1 ? encoded_e2m1(e, value) : encoded_e8m0(e, value);
  }
  ExprId whole = e.cast(DType::i32, value);
  if (is_float(from)) {
    const bool is_signed = dtype_kind(packed) == DTypeKind::signed_int;
    const int64_t end = int64_t{1} << (is_signed ? bits - 1 : bits);
    whole = e.binary(ExprOp::max, whole, number(e, is_signed ? -end : 0));
    whole = e.binary(ExprOp::min, whole, number(e, end - 1));
  }
  return masked(e, whole, (int64_t{1} << bits) - 1);
}

std::vector<ExprId> parts_of(const ExprPool& e, ExprId root, std::vector<bool>& known) {
  std::vector<ExprId> parts, todo{root};
  while (!todo.empty()) {
    const ExprId id = todo.back();
    todo.pop_back();
    if (!id.valid() || (id.value < known.size() && known[id.value])) continue;
    if (id.value >= known.size()) known.resize(std::max<size_t>(e.size(), id.value + 1), false);
    known[id.value] = true;
    parts.push_back(id);
    const ExprNode& n = e[id];
    todo.insert(todo.end(), {n.a, n.b, n.c});
    if (n.op == ExprOp::load)
      for (ExprId index : e.indices(id)) todo.push_back(index);
  }
  std::sort(parts.begin(), parts.end(), [](ExprId a, ExprId b) { return a.value < b.value; });
  return parts;
}

void PackedExprs::prepare(ExprId root) {
  for (ExprId id : parts_of(p_.exprs, root, prepared_)) {
    const ExprNode n = p_.exprs[id];
    if (is_packed(n.type)) {
      codes_[id] = made_code(id);
    } else if (n.a.valid() && is_packed(p_.exprs.type(n.a))) {
      const DType from = p_.exprs.type(n.a);
      ExprPool& e = p_.exprs;
      if (n.op == ExprOp::cast)
        replace(id, decoded(e, from, codes_.at(n.a), n.type));
      else
        replace(id, e.bitcast(n.type, e.cast(DType::u8, codes_.at(n.a))));
    }
  }
}

ExprId PackedExprs::made_code(ExprId id) {
  ExprPool& e = p_.exprs;
  const ExprNode n = e[id];
  switch (n.op) {
    case ExprOp::const_int:
      return number(e, n.imm & ((int64_t{1} << dtype_bits(n.type)) - 1));
    case ExprOp::const_float:
      return number(e, static_cast<int64_t>(float_to_bits(n.type, n.float_value())));
    case ExprOp::load:
      return loaded(id);
    case ExprOp::select:
      return e.select(rewrite(n.a), codes_.at(n.b), codes_.at(n.c));
    case ExprOp::bitcast:
      if (is_packed(e.type(n.a))) return codes_.at(n.a);
      return e.cast(DType::i32, e.bitcast(DType::u8, rewrite(n.a)));
    default: {  // a cast
      const DType from = e.type(n.a);
      if (!is_packed(from)) return encoded(e, n.type, rewrite(n.a));
      return encoded(e, n.type, decoded(e, from, codes_.at(n.a), decoded_type(from)));
    }
  }
}

ExprId PackedExprs::loaded(ExprId id) {
  ExprPool& e = p_.exprs;
  const ExprNode n = e[id];
  const PackedBuffer& b = buffers_.at(n.object);
  const std::vector<ExprId> written(e.indices(id).begin(), e.indices(id).end());
  std::vector<ExprId> at;
  for (ExprId index : written) at.push_back(rewrite(index));
  if (b.in_byte == 1) return e.cast(DType::i32, e.load(n.object, DType::u8, at));
  const PackedIndex::Split place = PackedIndex(p_).split(at.back(), b.in_byte);
  const ExprId in_byte = e.const_int(b.in_byte);
  at.back() = e.add(place.times, e.floordiv(place.rest, in_byte));
  const ExprId byte = e.cast(DType::i32, e.load(n.object, DType::u8, at));
  const int bits = dtype_bits(b.type);
  const ExprId by = e.cast(DType::i32, e.mul(e.floormod(place.rest, in_byte), bits));
  return masked(e, e.binary(ExprOp::shr, byte, by), (int64_t{1} << bits) - 1);
}

}  // namespace tilegen::ir
