#include "sim/lanes.h"

#include <bit>
#include <cmath>
#include <limits>

#include "support/checked.h"

namespace tilegen::sim {

using ir::DType;
using ir::ScalarValue;

namespace {

// A binary format narrower than f32, as what rounding to it does to a double.
struct NarrowFormat {
  int dropped;      // mantissa bits of a double that it lacks
  double smallest;  // normal
  double anchor;    // 1.5 * 2^52 units of its subnormals: adding it rounds to such a unit
  double largest;
};
constexpr NarrowFormat kHalf = {42, 0x1p-14, 0x1.8p28, 65504.0};
constexpr NarrowFormat kBrain = {45, 0x1p-126, 0x1.8p-81, 0x1.fep127};

double round_narrow(const NarrowFormat& f, double v) {
  const double magnitude = std::fabs(v);
  if (!(magnitude >= f.smallest)) {
    if (v != v) return v;
    return std::copysign((magnitude + f.anchor) - f.anchor, v);
  }
  auto bits = std::bit_cast<uint64_t>(v);
  bits += ((uint64_t{1} << (f.dropped - 1)) - 1) + ((bits >> f.dropped) & 1);
  bits &= ~((uint64_t{1} << f.dropped) - 1);
  const double rounded = std::bit_cast<double>(bits);
  return std::fabs(rounded) > f.largest ? std::copysign(std::numeric_limits<double>::infinity(), v) : rounded;
}

double to_f32(double v) { return static_cast<double>(static_cast<float>(v)); }

template <class F>
void map1(const Instr& n, const Values& v, F f) {
  const Cell* a = v.at(n.a);
  Cell* d = v.at(n.dst);
  if (n.uniform) {
    *d = f(*a);
  } else if (n.a.stride() == 0) {
    const Cell r = f(*a);
    for (int l = 0; l < v.lanes; ++l) d[l] = r;
  } else {
    for (int l = 0; l < v.lanes; ++l) d[l] = f(a[l]);
  }
}

template <class F>
void map2(const Instr& n, const Values& v, F f) {
  const Cell *a = v.at(n.a), *b = v.at(n.b);
  Cell* d = v.at(n.dst);
  if (n.uniform) {
    *d = f(*a, *b);
  } else if (n.a.stride() == 0) {
    const Cell x = *a;
    const int step = n.b.stride();
    for (int l = 0; l < v.lanes; ++l) d[l] = f(x, b[l * step]);
  } else if (n.b.stride() == 0) {
    const Cell y = *b;
    for (int l = 0; l < v.lanes; ++l) d[l] = f(a[l], y);
  } else {
    for (int l = 0; l < v.lanes; ++l) d[l] = f(a[l], b[l]);
  }
}

template <class F>
void map3(const Instr& n, const Values& v, F f) {
  const Cell *a = v.at(n.a), *b = v.at(n.b), *c = v.at(n.c);
  Cell* d = v.at(n.dst);
  if (n.uniform) {
    *d = f(*a, *b, *c);
    return;
  }
  const int sa = n.a.stride(), sb = n.b.stride(), sc = n.c.stride();
  for (int l = 0; l < v.lanes; ++l) d[l] = f(a[l * sa], b[l * sb], c[l * sc]);
}

Cell of(int64_t v) { return {.i = v}; }
Cell of_float(double v) {
  Cell c;
  c.f = v == v ? v : std::numeric_limits<double>::quiet_NaN();
  return c;
}
uint64_t bits(Cell c) { return static_cast<uint64_t>(c.i); }

template <class F>
void for_results(const Instr& n, const Values& v, F f) {
  Cell* d = v.at(n.dst);
  const int count = n.uniform ? 1 : v.lanes;
  for (int l = 0; l < count; ++l) f(d[l]);
}

void wrap_results(const Instr& n, const Values& v) {
  switch (n.type) {
    case DType::i32:
      return for_results(n, v, [](Cell& c) { c.i = static_cast<int32_t>(c.i); });
    case DType::i8:
      return for_results(n, v, [](Cell& c) { c.i = static_cast<int8_t>(c.i); });
    case DType::u8:
      return for_results(n, v, [](Cell& c) { c.i = static_cast<uint8_t>(c.i); });
    case DType::i16:
      return for_results(n, v, [](Cell& c) { c.i = static_cast<int16_t>(c.i); });
    case DType::u16:
      return for_results(n, v, [](Cell& c) { c.i = static_cast<uint16_t>(c.i); });
    case DType::u32:
      return for_results(n, v, [](Cell& c) { c.i = static_cast<uint32_t>(c.i); });
    default:
      return;
  }
}

// An operation on a narrow float is done as if in f32 first.
void round_results(const Instr& n, const Values& v) {
  if (n.type == DType::f64) return;
  for_results(n, v, [](Cell& c) { c.f = to_f32(c.f); });
  if (n.type == DType::f16) for_results(n, v, [](Cell& c) { c.f = round_narrow(kHalf, c.f); });
  if (n.type == DType::bf16) for_results(n, v, [](Cell& c) { c.f = round_narrow(kBrain, c.f); });
}

void general(const Instr& n, const Values& v) {
  const int arity = ir::expr_arity(n.op);
  const bool float_in = ir::is_float(n.operand), float_out = ir::is_float(n.type);
  const auto scalar = [&](Cell c) {
    ScalarValue s{n.operand, 0, 0};
    float_in ? void(s.f = c.f) : void(s.i = c.i);
    return s;
  };
  const auto cell = [&](ScalarValue s) {
    Cell c;
    float_out ? void(c.f = s.f) : void(c.i = s.i);
    return c;
  };
  if (arity == 1)
    map1(n, v, [&](Cell a) {
      const ScalarValue x = scalar(a);
      return cell(n.op == ir::ExprOp::cast ? ir::eval_cast(n.type, x) : ir::eval_unary(n.op, n.type, x));
    });
  else if (arity == 2)
    map2(n, v, [&](Cell a, Cell b) { return cell(ir::eval_binary(n.op, n.type, scalar(a), scalar(b))); });
  else
    map3(n, v, [&](Cell a, Cell b, Cell c) {
      return cell(ir::eval_ternary(n.op, n.type, scalar(a), scalar(b), scalar(c)));
    });
}

void select(const Instr& n, const Values& v) {
  map3(n, v, [](Cell a, Cell b, Cell c) { return a.i != 0 ? b : c; });
}

void integer(const Instr& n, const Values& v) {
  const int width = ir::dtype_bits(n.type) - 1;
  switch (n.code) {
    case Code::add_i:
      map2(n, v, [](Cell a, Cell b) { return of(static_cast<int64_t>(bits(a) + bits(b))); });
      break;
    case Code::sub_i:
      map2(n, v, [](Cell a, Cell b) { return of(static_cast<int64_t>(bits(a) - bits(b))); });
      break;
    case Code::mul_i:
      map2(n, v, [](Cell a, Cell b) { return of(static_cast<int64_t>(bits(a) * bits(b))); });
      break;
    case Code::div_i:
      map2(n, v, [](Cell a, Cell b) { return of(floor_div(a.i, b.i)); });
      break;
    case Code::mod_i:
      map2(n, v, [](Cell a, Cell b) { return of(floor_mod(a.i, b.i)); });
      break;
    case Code::div_pow2:
      map1(n, v, [s = n.imm](Cell a) { return of(a.i >> s); });
      break;
    case Code::mod_pow2:
      map1(n, v, [m = n.imm](Cell a) { return of(a.i & m); });
      break;
    case Code::min_i:
      map2(n, v, [](Cell a, Cell b) { return of(a.i < b.i ? a.i : b.i); });
      break;
    case Code::max_i:
      map2(n, v, [](Cell a, Cell b) { return of(a.i < b.i ? b.i : a.i); });
      break;
    case Code::shl_i:
      map2(n, v, [width](Cell a, Cell b) { return of(static_cast<int64_t>(bits(a) << (b.i & width))); });
      break;
    case Code::shr_i:
      map2(n, v, [width](Cell a, Cell b) { return of(a.i >> (b.i & width)); });
      break;
    default:  // wrap: a cast
      map1(n, v, [](Cell a) { return a; });
      break;
  }
  wrap_results(n, v);
}

void floating(const Instr& n, const Values& v) {
  switch (n.code) {
    case Code::add_f:
      map2(n, v, [](Cell a, Cell b) { return of_float(a.f + b.f); });
      break;
    case Code::sub_f:
      map2(n, v, [](Cell a, Cell b) { return of_float(a.f - b.f); });
      break;
    case Code::mul_f:
      map2(n, v, [](Cell a, Cell b) { return of_float(a.f * b.f); });
      break;
    default:
      map2(n, v, [](Cell a, Cell b) { return of_float(a.f / b.f); });
      break;
  }
  round_results(n, v);
}

}  // namespace

double round_value(DType type, double v) {
  if (type == DType::f16) return round_narrow(kHalf, v);
  if (type == DType::bf16) return round_narrow(kBrain, v);
  if (ir::is_storage_only(type)) return ir::round_to(type, v);
  return type == DType::f32 ? to_f32(v) : v;
}

void evaluate(const Instr& n, const Values& v) {
  switch (n.code) {
    case Code::general:
    case Code::load:
      return general(n, v);
    case Code::select:
      return select(n, v);
    case Code::lt_i:
      return map2(n, v, [](Cell a, Cell b) { return of(a.i < b.i); });
    case Code::le_i:
      return map2(n, v, [](Cell a, Cell b) { return of(a.i <= b.i); });
    case Code::eq_i:
      return map2(n, v, [](Cell a, Cell b) { return of(a.i == b.i); });
    case Code::ne_i:
      return map2(n, v, [](Cell a, Cell b) { return of(a.i != b.i); });
    case Code::lt_f:
      return map2(n, v, [](Cell a, Cell b) { return of(a.f < b.f); });
    case Code::le_f:
      return map2(n, v, [](Cell a, Cell b) { return of(a.f <= b.f); });
    case Code::eq_f:
      return map2(n, v, [](Cell a, Cell b) { return of(a.f == b.f); });
    case Code::ne_f:
      return map2(n, v, [](Cell a, Cell b) { return of(a.f != b.f); });
    case Code::and_i:
      return map2(n, v, [](Cell a, Cell b) { return of(a.i & b.i); });
    case Code::or_i:
      return map2(n, v, [](Cell a, Cell b) { return of(a.i | b.i); });
    case Code::xor_i:
      return map2(n, v, [](Cell a, Cell b) { return of(a.i ^ b.i); });
    case Code::not_b:
      return map1(n, v, [](Cell a) { return of(a.i == 0); });
    case Code::round:
      return map1(n, v, [t = n.type](Cell a) {
        Cell c;
        c.f = round_value(t, a.f);
        return c;
      });
    case Code::add_f:
    case Code::sub_f:
    case Code::mul_f:
    case Code::div_f:
      return floating(n, v);
    default:
      return integer(n, v);
  }
}

}  // namespace tilegen::sim
