// Simplification of expressions under the facts of a Context.
//
// requires: an expression of the context's pool.
// ensures: an expression of the same type with the same value for every assignment that fits the facts.
// i64 expressions become a sum "coefficient * atom + ... + constant", largest coefficient first, with
//   (a*c + b) // c -> a + b // c     (a*c + b) % c -> b % c
//                                    and b's quotient or remainder folded by its range
//   (x // a) // b -> x // (a*b)      (x % (a*b)) // a -> (x // a) % b      (x % (a*b)) % b -> x % b
//   (x // c)*c + x % c -> x          digits of one value joined again, whatever their order
//   (8*a + b) // 16 -> a // 2        where 0 <= b < 8, in products, comparisons and XOR swizzles alike
// Shifts and masks by constants become quotients and remainders. min, max, abs, select and comparisons fold
// by range and by assumed facts; comparisons lose common terms and factors. Floating-point operations keep
// their shape, only their operands (load indices, select conditions) are simplified.
#pragma once

#include "arith/context.h"

namespace tilegen::arith {

ir::ExprId simplify(Context& ctx, ir::ExprId e);

}  // namespace tilegen::arith
