// The normal form of i64 expressions and the walk over everything else.
#include "arith/analyzer.h"

#include <algorithm>

#include "support/checked.h"

namespace tilegen::arith {

using ir::DType;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

namespace {
constexpr int kMaxDepth = 300;           // of recursion, operand chains of the pool are bounded by less
constexpr size_t kMaxTerms = 48;         // of one sum
constexpr size_t kMaxProductTerms = 16;  // of a product that is multiplied out
constexpr int kMaxResultDepth = 200;     // leaves room below Limits::expr_depth for what is built on a result
}  // namespace

Analyzer::Question::Question(Analyzer& a) : analyzer_(a) {
  if (a.open_++ == 0) a.steps_ = a.ctx_.step_budget();
}

void Analyzer::forget() {
  sums_.forget();
  simplified_.forget();
  ranges_.forget();
  atom_divisors_.forget();
}

Sum Analyzer::opaque(ExprId e) {
  int64_t v = 0;
  if (pool_.is_const_int(e, &v)) return Sum::of_constant(v);
  Interval r = atom_range(e);
  if (r.is_point() && r.is_finite()) return Sum::of_constant(r.lo);
  return Sum::of_atom(e);
}

Sum Analyzer::atom_unless_folded(ExprOp op, ExprId e) { return pool_[e].op == op ? opaque(e) : linear(e); }

Sum Analyzer::linear(ExprId e) {
  if (const Sum* known = sums_.find(e)) return *known;
  if (!step() || depth_ >= kMaxDepth) return Sum::of_atom(e);
  // To fold an extremum, a select or a quotient facts are asked, and these may speak of that very value, as
  // max(x, 0) // 8 * 8 < n does: there it is an atom.
  if (std::find(open_sums_.rbegin(), open_sums_.rend(), e) != open_sums_.rend()) return opaque(e);
  open_sums_.push_back(e);
  depth_++;
  Sum s = linear_node(e);
  depth_--;
  open_sums_.pop_back();
  if (!exhausted()) sums_.insert(e, s);
  return s;
}

Sum Analyzer::combine(const Sum& a, const Sum& b, int64_t k, ExprId fallback) {
  std::optional<Sum> s = add_scaled(a, b, k);
  if (!s || s->terms.size() > kMaxTerms) return opaque(fallback);
  return joined(std::move(*s));
}

Sum Analyzer::linear_node(ExprId e) {
  const ExprNode n = pool_[e];
  switch (n.op) {
    case ExprOp::add:
      return combine(linear(n.a), linear(n.b), 1, e);
    case ExprOp::sub:
      return combine(linear(n.a), linear(n.b), -1, e);
    case ExprOp::neg:
      return combine(Sum{}, linear(n.a), -1, e);
    case ExprOp::mul:
      return multiply(linear(n.a), linear(n.b));
    case ExprOp::floordiv:
    case ExprOp::floormod: {
      Sum a = linear(n.a), b = linear(n.b);
      if (!b.is_constant()) return symbolic_division(n.op, a, b);
      return n.op == ExprOp::floordiv ? quotient(a, b.constant) : remainder(a, b.constant);
    }
    case ExprOp::min:
    case ExprOp::max:
      return linear_extremum(n.op, n.a, n.b);
    case ExprOp::shl:
    case ExprOp::shr:
      return linear_shift(n);
    case ExprOp::bit_and:
    case ExprOp::bit_or:
    case ExprOp::bit_xor:
      return linear_bits(n.op, linear(n.a), linear(n.b));
    case ExprOp::bit_not:
      return combine(Sum::of_constant(-1), linear(n.a), -1, e);
    case ExprOp::abs: {
      Sum a = linear(n.a);
      ExprId operand = build(a);
      Interval r = range(operand);
      if (r.lo >= 0) return a;
      if (r.hi <= 0) return combine(Sum{}, a, -1, e);
      return atom_unless_folded(ExprOp::abs, pool_.unary(ExprOp::abs, operand));
    }
    case ExprOp::select: {
      ExprId cond = simplify(n.a);
      if (int64_t v = 0; pool_.is_const_int(cond, &v)) return linear(v != 0 ? n.b : n.c);
      Sum a = linear(n.b), b = linear(n.c);
      if (a == b) return a;
      if (pool_[cond].op == ExprOp::logical_not) {
        cond = pool_[cond].a;
        std::swap(a, b);
      }
      ExprId x = build(a), y = build(b);
      return atom_unless_folded(ExprOp::select, pool_.select(cond, x, y));
    }
    case ExprOp::cast:
      return linear_cast(n);
    case ExprOp::load:
      return opaque(simplify_load(e));
    default:
      return opaque(e);
  }
}

Sum Analyzer::linear_cast(const ExprNode& n) {
  ExprId operand = simplify(n.a);
  return atom_unless_folded(ExprOp::cast, pool_.cast(n.type, operand));
}

Sum Analyzer::linear_shift(const ExprNode& n) {
  Sum a = linear(n.a), amount = linear(n.b);
  if (amount.is_constant()) {
    int64_t bits = amount.constant & 63;
    if (bits <= 62) {
      Sum by = Sum::of_constant(int64_t{1} << bits);
      return n.op == ExprOp::shl ? multiply(a, by) : quotient(a, by.constant);
    }
  }
  ExprId x = build(a), y = build(amount);
  return atom_unless_folded(n.op, pool_.binary(n.op, x, y));
}

// min and max stay atoms unless one side is known to win; operands are ordered so that min(a,b) == min(b,a).
Sum Analyzer::linear_extremum(ExprOp op, ExprId a, ExprId b) {
  Sum x = linear(a), y = linear(b);
  if (x == y) return x;
  ExprId ex = build(x), ey = build(y);
  if (std::optional<Sum> d = exact_difference(ey, ex)) {  // y - x
    if (non_negative(*d)) return op == ExprOp::min ? x : y;
    std::optional<Sum> minus = scaled(*d, -1);
    if (minus && non_negative(*minus)) return op == ExprOp::min ? y : x;
  }
  if (ey < ex) std::swap(ex, ey);
  if (pool_.is_const_int(ex)) std::swap(ex, ey);
  return atom_unless_folded(op, pool_.binary(op, ex, ey));
}

// Products are multiplied out (exact modulo 2^64), so that (i + 1)*n and i*n share a term.
Sum Analyzer::multiply(const Sum& a, const Sum& b) {
  auto as_atom = [&] {
    ExprId x = build(a), y = build(b);
    return opaque(pool_.mul(x, y));
  };
  if (a.is_constant() || b.is_constant()) {
    const Sum& s = a.is_constant() ? b : a;
    std::optional<Sum> r = scaled(s, a.is_constant() ? a.constant : b.constant);
    return r ? joined(std::move(*r)) : as_atom();
  }
  if ((a.terms.size() + 1) * (b.terms.size() + 1) > kMaxProductTerms) return as_atom();
  std::optional<Sum> r = scaled(a, b.constant);
  if (r) r = add_scaled(*r, Sum{b.terms, 0}, a.constant);
  for (const Term& t : a.terms) {
    for (const Term& u : b.terms) {
      std::optional<int64_t> k = checked_mul(t.coeff, u.coeff);
      if (!k || !r) return as_atom();
      std::vector<ExprId> both = factors(t.atom), more = factors(u.atom);
      both.insert(both.end(), more.begin(), more.end());
      if (both.size() > 8) return as_atom();
      r = add_scaled(*r, opaque(product(std::move(both))), *k);
    }
  }
  return r ? joined(std::move(*r)) : as_atom();
}

std::vector<ExprId> Analyzer::factors(ExprId atom) const {
  std::vector<ExprId> out;
  std::vector<ExprId> open{atom};
  while (!open.empty()) {
    ExprId e = open.back();
    open.pop_back();
    const ExprNode& n = pool_[e];
    if (n.op == ExprOp::mul && n.type == DType::i64) {
      open.push_back(n.a);
      open.push_back(n.b);
    } else {
      out.push_back(e);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

ExprId Analyzer::product(std::vector<ExprId> factors) {
  std::sort(factors.begin(), factors.end());
  ExprId e = factors.empty() ? pool_.const_int(1) : factors[0];
  for (size_t i = 1; i < factors.size(); i++) e = pool_.mul(e, factors[i]);
  return e;
}

// Largest coefficients first, what is subtracted after what is added, the constant last.
ExprId Analyzer::build(const Sum& s) {
  Terms order = s.terms;
  auto magnitude = [](int64_t v) { return v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v); };
  std::sort(order.begin(), order.end(), [&](const Term& x, const Term& y) {
    if ((x.coeff < 0) != (y.coeff < 0)) return y.coeff < 0;
    if (x.coeff != y.coeff) return magnitude(x.coeff) > magnitude(y.coeff);
    return x.atom < y.atom;
  });
  if (order.empty()) return pool_.const_int(s.constant);
  bool constant_first = order[0].coeff < 0 && s.constant > 0;
  ExprId e = constant_first ? pool_.const_int(s.constant) : ExprId();
  for (const Term& t : order) {
    bool subtract = t.coeff < 0 && e.valid() && t.coeff != INT64_MIN;
    int64_t k = subtract ? -t.coeff : t.coeff;
    ExprId term = k == 1 ? t.atom : k == -1 ? pool_.unary(ExprOp::neg, t.atom) : pool_.mul(t.atom, k);
    e = !e.valid() ? term : subtract ? pool_.sub(e, term) : pool_.add(e, term);
  }
  if (s.constant == 0 || constant_first) return e;
  if (s.constant > 0 || s.constant == INT64_MIN) return pool_.add(e, s.constant);
  return pool_.sub(e, pool_.const_int(-s.constant));
}

ExprId Analyzer::simplify_load(ExprId e) {
  const ExprNode n = pool_[e];
  std::span<const ExprId> view = pool_.indices(e);
  std::vector<ExprId> indices(view.begin(), view.end());
  for (ExprId& i : indices) i = simplify(i);
  return pool_.load(n.object, n.type, indices);
}

ExprId Analyzer::simplify(ExprId e) {
  if (const ExprId* known = simplified_.find(e)) return *known;
  const ExprNode n = pool_[e];
  if (pool_.is_const(e)) return e;
  if (!step() || depth_ >= kMaxDepth) return e;
  depth_++;
  ExprId r = e;
  if (n.type == DType::i64) {
    r = build(linear(e));
  } else if (ir::is_bool(n.type)) {
    r = simplify_bool(e);
  } else if (n.op == ExprOp::load) {
    r = simplify_load(e);
  } else if (ir::expr_arity(n.op) > 0) {
    ExprId a = simplify(n.a), b = n.b.valid() ? simplify(n.b) : ExprId();
    ExprId c = n.c.valid() ? simplify(n.c) : ExprId();
    r = pool_.operation(n, a, b, c);
  }
  depth_--;
  if ((ir::is_integer(n.type) || ir::is_bool(n.type)) && !pool_.is_const(r)) {
    Interval known = range(r);
    if (known.is_point() && known.is_finite()) r = pool_.const_int(known.lo, n.type);
  }
  if (pool_[r].depth > std::max<int>(n.depth, kMaxResultDepth)) r = e;
  if (!exhausted()) simplified_.insert(e, r);
  return r;
}

}  // namespace tilegen::arith
