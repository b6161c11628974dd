// Ranges, divisors and exactness of what the other parts compute with.
#include <algorithm>

#include "arith/analyzer.h"
#include "support/checked.h"

namespace tilegen::arith {

using ir::DType;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

namespace {

Interval type_range(DType t) {
  switch (ir::dtype_kind(t)) {
    case ir::DTypeKind::boolean:
      return Interval::boolean();
    case ir::DTypeKind::unsigned_int:
      if (ir::dtype_bits(t) >= 64) return Interval::whole();
      return {0, (int64_t{1} << ir::dtype_bits(t)) - 1};
    case ir::DTypeKind::signed_int: {
      if (ir::dtype_bits(t) >= 64) return Interval::whole();
      int64_t half = int64_t{1} << (ir::dtype_bits(t) - 1);
      return {-half, half - 1};
    }
    default:
      return Interval::whole();
  }
}

// Of which an interval tells; not of u64, whose order is not that of its bits.
bool is_discrete(DType t) { return (ir::is_integer(t) && !ir::is_u64(t)) || ir::is_bool(t); }

int64_t power_of_two_in(int64_t v) { return v & -v; }

}  // namespace

Interval Analyzer::range(ExprId e) {
  if (const Interval* known = ranges_.find(e)) return *known;
  const DType t = pool_.type(e);
  if (!is_discrete(t)) return Interval::whole();
  if (!step() || depth_ > 300) return type_range(t);
  Interval r;
  if (t == DType::i64) {
    Sum s = linear(e);
    r = is_exact(s) ? sum_range(s) : Interval::whole();
  } else {
    depth_++;
    r = structural_range(e);
    depth_--;
  }
  if (!exhausted()) ranges_.insert(e, r);
  return r;
}

Interval Analyzer::atom_range(ExprId atom) {
  if (const Interval* known = ranges_.find(atom)) return *known;
  if (!step() || depth_ > 300) return type_range(pool_.type(atom));
  depth_++;
  Interval r = structural_range(atom);
  depth_--;
  if (const auto bounds = ctx_.assumed_bounds(atom)) r = intersect(r, *bounds);
  if (!exhausted()) ranges_.insert(atom, r);
  return r;
}

Interval Analyzer::structural_range(ExprId e) {
  const ExprNode n = pool_[e];
  const Interval type = type_range(n.type);
  if (ir::is_u64(n.type)) return type;
  Interval r = type;
  switch (n.op) {
    case ExprOp::const_int:
      return Interval::point(n.imm);
    case ExprOp::var:
      if (auto facts = ctx_.facts_of(n.var())) r = facts->range;
      break;
    case ExprOp::load:
      break;
    case ExprOp::cast:
      if (is_discrete(pool_.type(n.a))) {
        Interval a = range(n.a);
        r = ir::is_bool(n.type) ? interval_ne(a, Interval::point(0)) : a;
      }
      break;
    case ExprOp::logical_not:
      r = interval_eq(range(n.a), Interval::point(0));
      break;
    case ExprOp::logical_and:
      r = interval_min(range(n.a), range(n.b));
      break;
    case ExprOp::logical_or:
      r = interval_max(range(n.a), range(n.b));
      break;
    case ExprOp::lt:
    case ExprOp::le:
    case ExprOp::eq:
    case ExprOp::ne: {
      if (!is_discrete(pool_.type(n.a))) break;
      Interval a = range(n.a), b = range(n.b);
      r = n.op == ExprOp::lt   ? interval_lt(a, b)
          : n.op == ExprOp::le ? interval_le(a, b)
          : n.op == ExprOp::eq ? interval_eq(a, b)
                               : interval_ne(a, b);
      break;
    }
    case ExprOp::select: {
      Interval c = range(n.a);
      Interval a = range(n.b), b = range(n.c);
      r = interval_select(c, a, b);
      break;
    }
    default:
      if (ir::is_integer(n.type)) r = integer_range(n);
      break;
  }
  return r.within(type) ? r : type;
}

Interval Analyzer::integer_range(const ExprNode& n) {
  const Interval a = range(n.a);
  const Interval b = n.b.valid() ? range(n.b) : Interval::whole();
  auto unless_wrapped = [&](Interval r) {
    return n.type != DType::i64 || r.is_finite() ? r : Interval::whole();
  };
  switch (n.op) {
    case ExprOp::add:
      return unless_wrapped(interval_add(a, b));
    case ExprOp::sub:
      return unless_wrapped(interval_sub(a, b));
    case ExprOp::mul:
      return unless_wrapped(interval_mul(a, b));
    case ExprOp::neg:
      return unless_wrapped(interval_neg(a));
    case ExprOp::abs:
      return a.lo == Interval::kMin ? unless_wrapped(interval_abs(a)) : interval_abs(a);
    case ExprOp::floordiv:
      if (a.lo == Interval::kMin && b.contains(-1)) return unless_wrapped(interval_floordiv(a, b));
      return interval_floordiv(a, b);
    case ExprOp::floormod:
      return interval_floormod(a, b);
    case ExprOp::min:
      return interval_min(a, b);
    case ExprOp::max:
      return interval_max(a, b);
    case ExprOp::bit_and:
      return interval_bit_and(a, b);
    case ExprOp::bit_or:
      return interval_bit_or(a, b);
    case ExprOp::bit_xor: {
      Interval r = interval_bit_xor(a, b);
      if (n.type != DType::i64 || r.lo < 0 || !r.is_finite()) return r;
      // Low bits that neither has stay clear.
      const int64_t unit = power_of_two_in(gcd_of(divisor(linear(n.a)), divisor(linear(n.b))));
      if (unit > 1) r.hi -= r.hi % unit;
      return r;
    }
    case ExprOp::shr: {
      bool plain = b.lo >= 0 && b.hi < ir::dtype_bits(n.type);
      return interval_shr(a, plain ? b : Interval::whole());
    }
    case ExprOp::popcount:
    case ExprOp::clz:
    case ExprOp::ctz:
      return {0, ir::dtype_bits(n.type)};
    default:
      return Interval::whole();
  }
}

// Values of s are congruent to its constant modulo the gcd of its terms, which moves infinite-free ends
// inwards.
Interval Analyzer::sum_range(const Sum& s) {
  Interval r = Interval::point(s.constant);
  for (const Term& t : s.terms) r = interval_add(r, interval_scale(atom_range(t.atom), t.coeff));
  if (s.terms.empty() || r.is_point()) return r;
  int64_t g = divisor(Sum{s.terms, 0});
  if (g <= 1) return r;
  if (r.lo > -(int64_t{1} << 62)) {
    int64_t up = floor_mod(s.constant % g - r.lo % g, g);
    r.lo = checked_add(r.lo, up).value_or(r.lo);
  }
  if (r.hi < (int64_t{1} << 62)) {
    int64_t down = floor_mod(r.hi % g - s.constant % g, g);
    r.hi = checked_sub(r.hi, down).value_or(r.hi);
  }
  return r.lo <= r.hi ? r : Interval::point(s.constant);
}

bool Analyzer::is_exact(const Sum& s) {
  constexpr __int128 kFar = static_cast<__int128>(1) << 120;  // beyond what another term may take back
  __int128 lo = s.constant, hi = s.constant;
  for (const Term& t : s.terms) {
    if (lo < -kFar || hi > kFar) return false;
    Interval r = atom_range(t.atom);
    const __int128 at_lo = static_cast<__int128>(r.lo) * t.coeff,
                   at_hi = static_cast<__int128>(r.hi) * t.coeff;
    lo += std::min(at_lo, at_hi);
    hi += std::max(at_lo, at_hi);
  }
  return lo >= INT64_MIN && hi <= INT64_MAX;
}

bool Analyzer::is_exact_product(ExprId atom) {
  if (pool_[atom].op != ExprOp::mul) return true;
  Interval r = Interval::point(1);
  for (ExprId f : factors(atom)) r = interval_mul(r, range(f));
  return r.is_finite();
}

int64_t Analyzer::divisor(const Sum& s) {
  int64_t g = s.constant;
  for (const Term& t : s.terms) {
    int64_t d = atom_divisor(t.atom);
    if (d == 0) continue;
    std::optional<int64_t> both = checked_mul(gcd_of(t.coeff, 0), d);
    g = gcd_of(g, both ? *both : t.coeff);
  }
  g = gcd_of(g, 0);
  return is_exact(s) ? g : power_of_two_in(g);
}

int64_t Analyzer::atom_divisor(ExprId atom) {
  if (const int64_t* known = atom_divisors_.find(atom)) return *known;
  if (!step() || depth_ > 300) return 1;
  depth_++;
  int64_t d = structural_divisor(atom);
  depth_--;
  if (const auto known = ctx_.assumed_divisor(atom); known && d != 0) {
    std::optional<int64_t> lcm = checked_mul(d, *known / gcd_of(d, *known));
    d = lcm ? *lcm : std::max(d, *known);
  }
  if (!exhausted()) atom_divisors_.insert(atom, d);
  return d;
}

int64_t Analyzer::structural_divisor(ExprId atom) {
  const ExprNode n = pool_[atom];
  if (n.type != DType::i64) return 1;
  auto of = [&](ExprId e) { return divisor(linear(e)); };
  int64_t c = 0;
  switch (n.op) {
    case ExprOp::const_int:
      return gcd_of(n.imm, 0);
    case ExprOp::var:
      if (auto facts = ctx_.facts_of(n.var())) return facts->divisor;
      return 1;
    case ExprOp::mul: {
      int64_t a = of(n.a), b = of(n.b);
      std::optional<int64_t> both = checked_mul(a, b);
      if (!both) return power_of_two_in(std::max(a, b));
      return is_exact_product(atom) ? *both : power_of_two_in(*both);
    }
    case ExprOp::floordiv: {
      if (!pool_.is_const_int(n.b, &c) || c <= 0) return 1;
      int64_t a = of(n.a);
      return a % c == 0 ? a / c : 1;
    }
    case ExprOp::floormod:
      return gcd_of(of(n.a), of(n.b));
    case ExprOp::min:
    case ExprOp::max:
      return gcd_of(of(n.a), of(n.b));
    case ExprOp::select:
      return gcd_of(of(n.b), of(n.c));
    case ExprOp::abs:
      return of(n.a);
    case ExprOp::bit_or:
    case ExprOp::bit_xor:
      return power_of_two_in(gcd_of(of(n.a), of(n.b)));
    case ExprOp::bit_and:
      return std::max(power_of_two_in(of(n.a)), power_of_two_in(of(n.b)));
    case ExprOp::shl:
      return power_of_two_in(of(n.a));
    default:
      return 1;
  }
}

Sum Analyzer::exact_sum(ExprId e) {
  Sum s = linear(e);
  return is_exact(s) ? s : Sum::of_atom(build(s));
}

std::optional<Sum> Analyzer::exact_difference(ExprId a, ExprId b) {
  Sum x = exact_sum(a), y = exact_sum(b);
  std::optional<Sum> d = add_scaled(x, y, -1);
  if (!d) return std::nullopt;
  return joined(std::move(*d));
}

}  // namespace tilegen::arith
