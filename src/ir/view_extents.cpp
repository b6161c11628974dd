#include "ir/view_extents.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <variant>

#include "ir/expr_nodes.h"
#include "support/checked.h"

namespace tilegen::ir {
namespace {

constexpr int64_t kMin = INT64_MIN, kMax = INT64_MAX;

int64_t clamped(__int128 v) { return v < kMin ? kMin : v > kMax ? kMax : static_cast<int64_t>(v); }

bool reduce_fraction(ExtentProduct& p) {
  if (p.over == 0) return false;
  const int64_t common = std::gcd(p.times, p.over);
  if (common > 1) p.times /= common, p.over /= common;
  return true;
}

std::optional<ExtentProduct> inverse(ExtentProduct p) {
  if (p.times <= 0) return std::nullopt;
  std::swap(p.times, p.over);
  for (auto& [of, power] : p.factors) power = -power;
  return p;
}

}  // namespace

std::optional<ExtentProduct> ExtentFacts::product(const ExtentProduct& a, const ExtentProduct& b) {
  ExtentProduct out = a;
  const auto times = checked_mul(a.times, b.times), over = checked_mul(a.over, b.over);
  if (!times || !over) return std::nullopt;
  out.times = *times, out.over = *over;
  for (const auto& [of, power] : b.factors)
    if ((out.factors[of] += power) == 0) out.factors.erase(of);
  return reduce_fraction(out) ? std::optional(out) : std::nullopt;
}

std::optional<ExtentProduct> ExtentFacts::product(std::span<const ExprId> extents) const {
  std::optional<ExtentProduct> all = ExtentProduct();
  for (ExprId e : extents) {
    const auto next = product(e);
    all = all && next ? product(*all, *next) : std::nullopt;
  }
  return all;
}

// Every value of the product is a multiple of d.
bool ExtentFacts::divides(int64_t d, const ExtentProduct& e) const {
  int64_t multiple = e.times;
  for (const auto& [of, power] : e.factors) {
    if (power < 0) return false;
    const ExprNode& n = p_.exprs[of];
    if (n.op != ExprOp::var) continue;
    for (int i = 0; i < power; ++i) {
      const auto more = checked_mul(multiple, p_.var(n.var()).divisor);
      if (!more) return false;
      multiple = *more;
    }
  }
  const auto by = checked_mul(d, e.over);
  return by && *by > 0 && multiple % *by == 0;
}

bool ExtentFacts::divides(int64_t d, ExprId extent) const {
  const auto e = product(extent);
  return e && divides(d, *e);
}

// a // b where it is exact.
std::optional<ExtentProduct> ExtentFacts::quotient(ExprId a, ExprId b, int depth) const {
  const auto of = product(a, depth), by = product(b, depth);
  const auto inverted = by ? inverse(*by) : std::nullopt;
  const auto exact = of && inverted ? product(*of, *inverted) : std::nullopt;
  if (!exact) return std::nullopt;
  if (int64_t d = 0; p_.exprs.is_const_int(b, &d)) return divides(d, *of) ? exact : std::nullopt;
  const bool whole = exact->over == 1 && std::all_of(exact->factors.begin(), exact->factors.end(),
                                                     [](const auto& f) { return f.second > 0; });
  return whole ? exact : std::nullopt;
}

std::optional<ExtentProduct> ExtentFacts::product(ExprId extent, int depth) const {
  const ExprNode& n = p_.exprs[extent];
  ExtentProduct out;
  if (p_.exprs.is_const_int(extent, &out.times)) return out;
  if (depth > 0 && n.op == ExprOp::mul) {
    const auto a = product(n.a, depth - 1), b = product(n.b, depth - 1);
    return a && b ? product(*a, *b) : std::nullopt;
  }
  if (depth > 0 && n.op == ExprOp::floordiv) {
    if (const auto exact = quotient(n.a, n.b, depth - 1)) return exact;
    // ceildiv(a, d), which the facts make a // d
    const ExprNode& sum = p_.exprs[n.a];
    int64_t d = 0, more = 0;
    if (sum.op == ExprOp::add && p_.exprs.is_const_int(n.b, &d) && p_.exprs.is_const_int(sum.b, &more) &&
        more == d - 1)
      if (const auto exact = quotient(sum.a, n.b, depth - 1)) return exact;
  }
  out.times = 1;
  out.factors[extent] = 1;
  return out;
}

bool ExtentFacts::add_terms(ExprId e, int64_t sign, std::map<ExprId, int64_t>& terms, int64_t& constant,
                            int depth) const {
  const ExprNode& n = p_.exprs[e];
  int64_t value = 0;
  if (p_.exprs.is_const_int(e, &value)) {
    const auto part = checked_mul(sign, value);
    const auto sum = part ? checked_add(constant, *part) : std::nullopt;
    if (sum) constant = *sum;
    return sum.has_value();
  }
  if (depth > 0 && (n.op == ExprOp::add || n.op == ExprOp::sub))
    return add_terms(n.a, sign, terms, constant, depth - 1) &&
           add_terms(n.b, n.op == ExprOp::add ? sign : -sign, terms, constant, depth - 1);
  if (depth > 0 && n.op == ExprOp::mul && p_.exprs.is_const_int(n.b, &value)) {
    const auto scaled = checked_mul(sign, value);
    return scaled && add_terms(n.a, *scaled, terms, constant, depth - 1);
  }
  const auto sum = checked_add(terms[e], sign);
  if (sum) terms[e] = *sum;
  return sum.has_value();
}

bool ExtentFacts::same(ExprId a, ExprId b) const {
  if (a == b) return true;
  std::map<ExprId, int64_t> terms;
  int64_t constant = 0;
  if (add_terms(a, 1, terms, constant, kDepth) && add_terms(b, -1, terms, constant, kDepth) &&
      constant == 0 && std::all_of(terms.begin(), terms.end(), [](const auto& t) { return t.second == 0; }))
    return true;
  const auto of_a = product(a), of_b = product(b);
  return of_a && of_b && *of_a == *of_b;
}

IndexBounds::IndexBounds(const Program& p, const Draft& draft) : p_(p), draft_(draft), facts_(p) {
  std::vector<ExprId> todo;
  for (const Param& param : p.params) {
    if (!param.buffer.valid()) continue;
    const Buffer& b = p.buffer(param.buffer);
    todo.insert(todo.end(), b.shape.begin(), b.shape.end());
    todo.insert(todo.end(), b.strides.begin(), b.strides.end());
  }
  ExprNodes nodes(p.exprs, std::move(todo));
  while (const ExprId e = nodes.next())
    if (const ExprNode& n = p.exprs[e]; n.op == ExprOp::var) limits_[n.var()] = kMaxExtent;
  for (const Kernel& k : p.kernels) {
    for (size_t d = 0; d < k.block_vars.size(); ++d) add(k.block_vars[d], k.grid[d]);
    for_each_statement(p, k.body, [&](StmtId s, int) {
      if (const auto* loop = p.as<Loop>(s))
        for (size_t d = 0; d < loop->vars.size(); ++d)
          counts_[loop->vars[d]] = {loop->kind == LoopKind::parallel ? ExprId() : loop->begin,
                                    loop->extents[d]};
    });
  }
  for (const auto& [s, assignment] : draft.assignments) {
    const auto it = draft.temporaries.find(assignment.var);
    if (it != draft.temporaries.end() && !it->second) values_[assignment.var] = assignment.value;
  }
}

void IndexBounds::add(VarId v, ExprId extent) { counts_[v] = {ExprId(), extent}; }

IndexBounds::Range IndexBounds::range_of(VarId v, int depth) const {
  const Var& var = p_.var(v);
  if (var.kind == VarKind::dim) {
    const auto limit = limits_.find(v);
    const int64_t most = limit == limits_.end() ? var.upper : std::min(var.upper, limit->second);
    return {std::max<int64_t>(var.lower, 0), std::max<int64_t>(most, 0)};
  }
  if (const auto value = values_.find(v); value != values_.end()) return range(value->second, depth);
  const auto it = counts_.find(v);
  if (it == counts_.end()) return {kMin, kMax};
  const Range from = it->second.begin.valid() ? range(it->second.begin, depth) : Range{0, 0};
  const int64_t trips = range(it->second.extent, depth).second;
  return {from.first, clamped(__int128{from.second} + std::max<int64_t>(trips, 1) - 1)};
}

IndexBounds::Range IndexBounds::range(ExprId e, int depth) const {
  const ExprNode& n = p_.exprs[e];
  constexpr Range kAny{kMin, kMax};
  int64_t value = 0;
  if (p_.exprs.is_const_int(e, &value)) return {value, value};
  if (depth == 0 || n.type != DType::i64) return kAny;
  if (n.op == ExprOp::var) return range_of(n.var(), depth - 1);
  const auto of = [&](ExprId operand) { return range(operand, depth - 1); };
  // What leaves i64 wraps, and is any value.
  const auto made = [&](__int128 least, __int128 most) {
    return least < kMin || most > kMax ? kAny
                                       : Range{static_cast<int64_t>(least), static_cast<int64_t>(most)};
  };
  if (n.op == ExprOp::select) {
    const Range a = of(n.b), b = of(n.c);
    return {std::min(a.first, b.first), std::max(a.second, b.second)};
  }
  if (n.op == ExprOp::add || n.op == ExprOp::sub || n.op == ExprOp::mul || n.op == ExprOp::min ||
      n.op == ExprOp::max) {
    const Range a = of(n.a), b = of(n.b);
    if (n.op == ExprOp::min) return {std::min(a.first, b.first), std::min(a.second, b.second)};
    if (n.op == ExprOp::max) return {std::max(a.first, b.first), std::max(a.second, b.second)};
    if (n.op == ExprOp::add) return made(__int128{a.first} + b.first, __int128{a.second} + b.second);
    if (n.op == ExprOp::sub) return made(__int128{a.first} - b.second, __int128{a.second} - b.first);
    const __int128 ends[] = {__int128{a.first} * b.first, __int128{a.first} * b.second,
                             __int128{a.second} * b.first, __int128{a.second} * b.second};
    return made(*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4));
  }
  if (n.op == ExprOp::floordiv && p_.exprs.is_const_int(n.b, &value) && value > 0) {
    const Range a = of(n.a);
    return {floor_div(a.first, value), floor_div(a.second, value)};
  }
  if (n.op == ExprOp::floormod && p_.exprs.is_const_int(n.b, &value) && value > 0) {
    const Range a = of(n.a);
    if (a.first >= 0 && a.second < value) return a;
    return {0, value - 1};
  }
  if (n.op == ExprOp::floormod || n.op == ExprOp::floordiv) {
    const Range a = of(n.a), b = of(n.b);
    if (b.first < 0 || (n.op == ExprOp::floordiv && a.first < 0)) return kAny;
    if (n.op == ExprOp::floordiv) return {0, a.second};
    return {0, std::max<int64_t>(b.second - 1, 0)};
  }
  return kAny;
}

// index is v * c + w with v below e, where e * c is the end: at most end - c + w.
bool IndexBounds::counts_within(ExprId index, int64_t extent, ExprId end, int depth) const {
  const ExprNode& n = p_.exprs[index];
  if (n.op == ExprOp::var) {
    if (const auto value = values_.find(n.var()); value != values_.end() && depth > 0)
      return counts_within(value->second, extent, end, depth - 1);
  }
  std::vector<std::pair<ExprId, ExprId>> splits{{index, ExprId()}};
  if (n.op == ExprOp::add) splits = {{n.a, n.b}, {n.b, n.a}};
  for (const auto& [scaled, rest] : splits) {
    const ExprNode& s = p_.exprs[scaled];
    int64_t c = 1;
    const bool multiplied = s.op == ExprOp::mul && p_.exprs.is_const_int(s.b, &c) && c > 0;
    const ExprNode& v = p_.exprs[multiplied ? s.a : scaled];
    if (v.op != ExprOp::var) continue;
    const auto it = counts_.find(v.var());
    int64_t begin = 0;
    if (it == counts_.end() ||
        (it->second.begin.valid() && !(p_.exprs.is_const_int(it->second.begin, &begin) && begin == 0)))
      continue;
    const auto below = facts_.product(it->second.extent), whole = facts_.product(end);
    ExtentProduct times;
    times.times = c;
    const auto reached = below ? ExtentFacts::product(*below, times) : std::nullopt;
    if (!reached || !whole || *reached != *whole) continue;
    const int64_t most = rest.valid() ? range(rest, kDepth).second : 0;
    if (__int128{most} + extent <= c) return true;
  }
  return false;
}

bool IndexBounds::ends_within(ExprId index, int64_t extent, ExprId end) const {
  if (__int128{range(index, kDepth).second} + extent <= range(end, kDepth).first) return true;
  return counts_within(index, extent, end, kDepth);
}

}  // namespace tilegen::ir
