#include "arith/linear_sum.h"

#include <algorithm>
#include <numeric>

#include "support/checked.h"

namespace tilegen::arith {

int64_t Sum::coeff_of(ir::ExprId atom) const {
  auto it = std::lower_bound(terms.begin(), terms.end(), atom,
                             [](const Term& t, ir::ExprId a) { return t.atom < a; });
  return it != terms.end() && it->atom == atom ? it->coeff : 0;
}

std::optional<Sum> add_scaled(const Sum& a, const Sum& b, int64_t k) {
  if (k == 0) return a;
  Sum r;
  r.terms.reserve(a.terms.size() + b.terms.size());
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    if (j == b.terms.size() || (i < a.terms.size() && a.terms[i].atom < b.terms[j].atom)) {
      r.terms.push_back(a.terms[i++]);
      continue;
    }
    std::optional<int64_t> c = checked_mul(b.terms[j].coeff, k);
    bool both = i < a.terms.size() && a.terms[i].atom == b.terms[j].atom;
    if (c && both) c = checked_add(*c, a.terms[i].coeff);
    if (!c) return std::nullopt;
    if (*c != 0) r.terms.push_back({b.terms[j].atom, *c});
    j++;
    i += both;
  }
  std::optional<int64_t> c = checked_mul(b.constant, k);
  if (c) c = checked_add(*c, a.constant);
  if (!c) return std::nullopt;
  r.constant = *c;
  return r;
}

std::optional<Sum> scaled(const Sum& a, int64_t k) { return add_scaled(Sum{}, a, k); }

Sum divided(const Sum& a, int64_t g) {
  Sum r = a;
  for (Term& t : r.terms) t.coeff /= g;
  r.constant = floor_div(r.constant, g);
  return r;
}

int64_t gcd_of(int64_t a, int64_t b) {
  auto magnitude = [](int64_t v) { return v == INT64_MIN ? int64_t{1} << 62 : v < 0 ? -v : v; };
  return std::gcd(magnitude(a), magnitude(b));
}

int64_t coefficient_gcd(const Sum& a) {
  int64_t g = 0;
  for (const Term& t : a.terms) g = gcd_of(g, t.coeff);
  return g;
}

}  // namespace tilegen::arith
