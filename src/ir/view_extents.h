// What is known of extents and indices while a program is made, for views of tensors (ir/tile_view.h): which
// products are the same, which numbers divide them, and which boxes lie within an extent. All by facts of
// dims and bounds of loops; what is not seen here counts as unknown, never as false.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/draft.h"

namespace tilegen::ir {

// An extent as a number times other expressions: dims and what no product is seen in. A quotient by a
// constant that the facts of dims divide it by is one, too.
struct ExtentProduct {
  int64_t times = 1, over = 1;  // without a common factor
  std::map<ExprId, int> factors;
  bool operator==(const ExtentProduct&) const = default;
};

class ExtentFacts {
 public:
  explicit ExtentFacts(const Program& p) : p_(p) {}

  // Nothing where a number leaves i64.
  std::optional<ExtentProduct> product(ExprId extent) const { return product(extent, kDepth); }
  static std::optional<ExtentProduct> product(const ExtentProduct& a, const ExtentProduct& b);
  // Of all extents.
  std::optional<ExtentProduct> product(std::span<const ExprId> extents) const;
  bool divides(int64_t d, ExprId extent) const;
  // a == b, as sums of terms.
  bool same(ExprId a, ExprId b) const;

 private:
  static constexpr int kDepth = 12;
  std::optional<ExtentProduct> product(ExprId extent, int depth) const;
  std::optional<ExtentProduct> quotient(ExprId a, ExprId b, int depth) const;
  bool add_terms(ExprId e, int64_t sign, std::map<ExprId, int64_t>& terms, int64_t& constant,
                 int depth) const;
  bool divides(int64_t d, const ExtentProduct& e) const;

  const Program& p_;
};

class IndexBounds {
 public:
  // Of the variables of the program as it is now; others become known by add.
  IndexBounds(const Program& p, const Draft& draft);
  // A variable that counts from 0.
  void add(VarId v, ExprId extent);

  // 0 <= index
  bool not_negative(ExprId index) const { return range(index, kDepth).first >= 0; }
  // index + extent <= end
  bool ends_within(ExprId index, int64_t extent, ExprId end) const;

 private:
  static constexpr int kDepth = 12;
  using Range = std::pair<int64_t, int64_t>;  // both included
  Range range(ExprId e, int depth) const;
  Range range_of(VarId v, int depth) const;
  bool counts_within(ExprId index, int64_t extent, ExprId end, int depth) const;

  const Program& p_;
  const Draft& draft_;
  ExtentFacts facts_;
  struct Count {
    ExprId begin, extent;  // no begin: 0
  };
  std::map<VarId, Count> counts_;
  std::map<VarId, ExprId> values_;   // of names that are not assigned again
  std::map<VarId, int64_t> limits_;  // dims that tensors are made of are not above it
};

}  // namespace tilegen::ir
