// What a PlanForm leaves a kernel of its target.
#pragma once

#include "schedule/plan_program.h"

namespace tilegen::schedule {

// The target as if it had less: asynchronous copies of no width, and for multiply_adds no other
// instruction where one can do the product.
target::Target target_of_form(const target::Target& t, PlanForm form);

// What the copy engine does in the form.
TensorCopies copies_of_form(PlanForm form);

}  // namespace tilegen::schedule
