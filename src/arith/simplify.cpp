#include "arith/simplify.h"

#include "arith/analyzer.h"

namespace tilegen::arith {

// One pass leaves few chances after (a rule may enable another one level up); a second pass takes them.
ir::ExprId simplify(Context& ctx, ir::ExprId e) {
  Analyzer& an = ctx.analyzer();
  Analyzer::Question question(an);
  for (int pass = 0; pass < 3; pass++) {
    ir::ExprId r = an.simplify(e);
    if (r == e) break;
    e = r;
  }
  return e;
}

}  // namespace tilegen::arith
