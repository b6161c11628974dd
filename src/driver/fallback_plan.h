// What a caller gave, in the plan of a fallback version: as far as it can hold without what the version does
// without.
//
// requires: decisions that the first version was planned with. ensures: a plan; each given field that it does
// not have, or has otherwise, is named by a note. refuses: what planning refuses with nothing given.
#pragma once

#include "driver/compile.h"
#include "schedule/plan_program.h"

namespace tilegen::driver {

// What of the copy engine a level does without, and what it relies on.
schedule::TensorCopies tensor_copies_at(AssumptionLevel level);
schedule::Assumptions assumptions_at(AssumptionLevel level);

// `options` as for a kernel of which nothing is given.
Expected<plan::KernelSchedule> plan_fallback(const ir::Program& program, int kernel,
                                             const target::Target& target, const plan::KernelSchedule& given,
                                             const schedule::PlanOptions& options);

// Notes of given fields that `plan`, made for `level`, does not have.
void note_what_is_otherwise(const plan::KernelSchedule& given, AssumptionLevel level,
                            plan::KernelSchedule& plan);

}  // namespace tilegen::driver
