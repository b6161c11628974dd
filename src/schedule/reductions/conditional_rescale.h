// Rows that are scaled by a factor which mostly is 1: threads leave the work out.
//
// A loop that carries the largest (least) element of a row so far scales what it has summed up by how far
// that element has moved, and the longer it runs the less often it moves: a factor exp(before - now) is 1
// then, and multiplying by 1 changes nothing. The lanes of a warp ask together, and go over the products
// where one of them has another factor.
//
// requires: layouts.
// ensures: OpPlan::skip_if_identity of element-wise ops that change nothing where a factor is 1, in a loop in
// which the factor is 1 whenever what the loop carries stays as it was (analysis/iteration_values.h), where a
// thread has at least 16 elements for each factor. Results are the same bits. Refused ones leave a note.
// why here: it needs the layouts to know how many elements share a factor.
// refuses: schedule_illegal, a given factor that the op does not multiply all its elements by.
#pragma once

#include "infer/infer_layouts.h"
#include "plan/schedule.h"

namespace tilegen::schedule {

Checked plan_conditional_rescale(const ir::Program& p, const analysis::KernelOps& ops,
                                 const target::Target& t, const plan::KernelSchedule* given,
                                 infer::InferResult& layouts);

}  // namespace tilegen::schedule
