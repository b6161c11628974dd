// Work of the expressions of a parallel loop's body, by the points that each part of them differs along: what
// is the same for a row of points is computed once for it.
#pragma once

#include "cost/work.h"
#include "ir/program.h"
#include "layout/fragment.h"
#include "target/target.h"

namespace tilegen::cost {

// `iteration`: of the loop's points over the block's threads; null: every thread's share is that of the
// block's points over all of them. `unmasked`: conditions on indices hold, as far as versions of the code
// leave them out.
Work loop_work(const ir::Program& p, const ir::Loop& loop, const layout::Fragment* iteration, int64_t threads,
               bool unmasked, const target::Target& t);

}  // namespace tilegen::cost
