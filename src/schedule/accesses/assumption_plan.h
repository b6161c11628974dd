// What a version of a kernel's code relies on though the program does not promise it: addresses of tensors
// that wide accesses and the copy engine are aligned to, row pitches that are multiples of a vector.
//
// requires: engines, iterations and vectors of all ops.
// ensures: s.assumptions is set, to what is given where all is allowed; nothing is assumed of a param that
//   the program's facts exclude.
// why here: after the ops' vectors, which are what asks for it; lowering only makes guards of them.
// refuses: schedule_mismatch, a given assumption of a param that the program does not have; schedule_illegal,
//   one that its facts exclude.
#pragma once

#include "analysis/kernel_ops.h"
#include "schedule/plan_program.h"

namespace tilegen::schedule {

Checked plan_assumptions(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                         Assumptions allowed, const plan::KernelSchedule* given, plan::KernelSchedule& s);

}  // namespace tilegen::schedule
