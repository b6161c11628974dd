#include "check/index_form.h"

namespace tilegen::check {

using arith::Interval;
using arith::Sum;
using ir::DType;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

namespace {

// Longer sums are kept as one opaque term, which bounds the work on chains of additions.
constexpr size_t kMaxTerms = 32;

Interval type_range(DType t) {
  switch (t) {
    case DType::boolean:
      return Interval::boolean();
    case DType::i8:
      return {-128, 127};
    case DType::u8:
      return {0, 255};
    case DType::i16:
      return {INT16_MIN, INT16_MAX};
    case DType::u16:
      return {0, UINT16_MAX};
    case DType::i32:
      return {INT32_MIN, INT32_MAX};
    case DType::u32:
      return {0, UINT32_MAX};
    default:
      return Interval::whole();
  }
}

}  // namespace

const Sum& IndexForms::linear(ExprId e) {
  if (auto it = sums_.find(e); it != sums_.end()) return it->second;
  Sum s = linear_node(e);
  if (s.terms.size() > kMaxTerms) s = Sum::of_atom(e);
  return sums_.emplace(e, std::move(s)).first->second;
}

int64_t IndexForms::coefficient(ExprId e, ir::VarId v) {
  for (const arith::Term& t : linear(e).terms)
    if (const ExprNode& n = pool_[t.atom]; n.op == ExprOp::var && n.var() == v) return t.coeff;
  return 0;
}

// Recursion is bounded by Limits::expr_depth; every node is worked out once.
Sum IndexForms::linear_node(ExprId e) {
  const ExprNode& n = pool_[e];
  if (n.type != DType::i64) return Sum::of_atom(e);
  std::optional<Sum> s;
  switch (n.op) {
    case ExprOp::const_int:
      return Sum::of_constant(n.imm);
    case ExprOp::neg:
      s = arith::scaled(linear(n.a), -1);
      break;
    case ExprOp::add:
    case ExprOp::sub: {
      const Sum a = linear(n.a);
      s = arith::add_scaled(a, linear(n.b), n.op == ExprOp::add ? 1 : -1);
      break;
    }
    case ExprOp::mul: {
      const Sum a = linear(n.a);
      const Sum& b = linear(n.b);
      if (b.is_constant())
        s = arith::scaled(a, b.constant);
      else if (a.is_constant())
        s = arith::scaled(b, a.constant);
      break;
    }
    default:
      break;
  }
  return s ? *s : Sum::of_atom(e);
}

// Ends of a sum are attained together when every term is a variable of its own, or when there is one term
// only.
Bounds IndexForms::bounds(ExprId e) {
  if (pool_[e].type != DType::i64) return atom_bounds(e);
  const Sum s = linear(e);
  if (s.terms.size() == 1 && s.terms[0].coeff == 1 && s.constant == 0) return atom_bounds(s.terms[0].atom);
  Bounds r{Interval::point(s.constant), true};
  for (const arith::Term& t : s.terms) {
    const Bounds b = atom_bounds(t.atom);
    const bool independent = pool_[t.atom].op == ExprOp::var || s.terms.size() == 1;
    r.range = arith::interval_add(r.range, arith::interval_scale(b.range, t.coeff));
    r.attained = r.attained && b.attained && independent;
  }
  const bool may_wrap = !s.terms.empty() && !r.range.is_finite();
  return may_wrap ? Bounds{} : r;
}

Bounds IndexForms::atom_bounds(ExprId atom) {
  if (auto it = atoms_.find(atom); it != atoms_.end()) return it->second;
  return atoms_[atom] = compute_atom_bounds(atom);
}

Bounds IndexForms::compute_atom_bounds(ExprId atom) {
  const ExprNode& n = pool_[atom];
  const Bounds unknown{type_range(n.type), false};
  if (!ir::is_integer(n.type) && !ir::is_bool(n.type)) return unknown;
  if (n.op == ExprOp::const_int) return {Interval::point(n.imm), true};
  if (n.op == ExprOp::var) {
    const auto it = vars_.find(n.var());
    return it == vars_.end() ? unknown : it->second;
  }
  const auto both = [&](auto combine) {
    return Bounds{arith::intersect(combine(bounds(n.a).range, bounds(n.b).range), unknown.range), false};
  };
  switch (n.op) {
    case ExprOp::floordiv: {
      // Division by a positive constant is monotone: the ends stay attained.
      const Bounds a = bounds(n.a), b = bounds(n.b);
      const bool monotone = b.range.is_point() && b.range.lo > 0;
      return {arith::intersect(arith::interval_floordiv(a.range, b.range), unknown.range),
              a.attained && monotone};
    }
    case ExprOp::floormod: {
      const Bounds a = bounds(n.a), b = bounds(n.b);
      if (b.range.is_point() && a.range.lo >= 0 && a.range.hi < b.range.lo) return a;
      return {arith::intersect(arith::interval_floormod(a.range, b.range), unknown.range), false};
    }
    case ExprOp::min:
      return both(arith::interval_min);
    case ExprOp::max:
      return both(arith::interval_max);
    case ExprOp::bit_and:
      return both(arith::interval_bit_and);
    case ExprOp::bit_or:
      return both(arith::interval_bit_or);
    case ExprOp::bit_xor:
      return both(arith::interval_bit_xor);
    case ExprOp::shr:
      return both(arith::interval_shr);
    case ExprOp::select:
      return {arith::hull(bounds(n.b).range, bounds(n.c).range), false};
    case ExprOp::cast: {
      const DType from = pool_.type(n.a);
      if (!ir::is_integer(from) && !ir::is_bool(from)) return unknown;
      const Bounds a = bounds(n.a);
      return a.range.within(unknown.range) ? a : unknown;
    }
    default:
      return unknown;
  }
}

}  // namespace tilegen::check
