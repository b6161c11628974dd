// Iteration layouts of a block of many threads: the digits of the thread index, and loops over what one
// thread does.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

struct ThreadDigit {
  layout::Digit digit;
  ExprId value;  // expression of the thread variable, inside the digit's extent for every thread
};
struct ThreadDigits {
  std::vector<ThreadDigit> digits;  // by descending stride
  ExprId reached;                   // the thread is one that the digits reach; invalid: all are
};
ThreadDigits thread_digits(LoweringContext& k, const layout::Fragment& f);

// Register digits become loops (unrolled, or serial where no register depends on them), the unit digit a
// vector. With `parts`, a divisor of the outermost loop's extent, that loop has as many iterations, and
// another inside of it the rest.
Nest make_thread_nest(LoweringContext& k, const layout::Fragment& iteration, int64_t vector,
                      const std::vector<int64_t>& extents, bool serial, int64_t parts = 0);
// Digit variables replaced by what they stand for, in the stores of `body` and below its loops.
void finish_thread_nest(LoweringContext& k, const Nest& nest, const thread::Block& body);

}  // namespace tilegen::lower
