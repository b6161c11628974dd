// Questions about expressions under the facts of a Context. "Unknown" is always a legal answer and the one
// given when the step budget runs out; a positive answer is a proof.
#pragma once

#include <map>
#include <optional>

#include "arith/context.h"

namespace tilegen::arith {

// True only when `condition` (bool) holds for every assignment that fits the facts.
bool prove(Context& ctx, ir::ExprId condition);

// Integers and bools: a range that holds all values. The whole of i64 for anything else.
Interval range_of(Context& ctx, ir::ExprId e);

// Largest constant known to divide an i64 expression; at least 1, and 0 for a value known to be 0 (so that
// `divisor_of(e) % 16 == 0` reads right).
int64_t divisor_of(Context& ctx, ir::ExprId e);

// e == sum of coefficient * atom + constant, modulo 2^64. Atoms are simplified expressions that are no sums.
struct Affine {
  std::map<ir::ExprId, int64_t> terms;
  int64_t constant = 0;
};
// Nothing for expressions that are not i64.
std::optional<Affine> to_affine(Context& ctx, ir::ExprId e);
ir::ExprId from_affine(Context& ctx, const Affine& a);

// a - b over the mathematical integers. Nothing where a or b may wrap, or their difference does not fit i64.
std::optional<Affine> exact_difference(Context& ctx, ir::ExprId a, ir::ExprId b);

// e == coefficient * var + rest modulo 2^64, with neither depending on var. The coefficient may be symbolic
// (a stride); `stride` is its value when it is a constant.
struct AffineSplit {
  ir::ExprId coefficient;
  ir::ExprId rest;
  std::optional<int64_t> stride;
};
// Nothing when e is not affine in var, or not i64.
std::optional<AffineSplit> split_affine(Context& ctx, ir::ExprId e, ir::VarId var);

// Does `e` read the variable, load indices included?
bool depends_on(const ir::ExprPool& pool, ir::ExprId e, ir::VarId var);

}  // namespace tilegen::arith
