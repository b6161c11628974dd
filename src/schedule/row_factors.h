// Rows that are scaled by a factor which mostly is 1: threads leave the work out.
//
// A loop that carries the largest (least) element of a row so far scales what it has summed up by how far
// that element has moved, and the longer it runs the less often it moves: a factor exp(before - now) is 1
// then, and multiplying by 1 changes nothing. The lanes of a warp ask together, and go over the products
// where one of them has another factor.
//
// requires: layouts; the engines of products.
// ensures: OpPlan::unless_one of element-wise ops in a loop that only multiply the sums of a warpgroup's
// product by a factor of the row, where a thread has at least 16 elements for each factor. Results are the
// same bits.
// why here: it needs the layouts to know how many elements share a factor.
// refuses: schedule_illegal, a given factor that the op does not multiply all its elements by.
#pragma once

#include "infer/infer_layouts.h"
#include "plan/schedule.h"

namespace tilegen::schedule {

Checked plan_row_factors(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                         const plan::KernelSchedule* given, infer::InferResult& layouts);

}  // namespace tilegen::schedule
