// How threads access what an op walks over: the width of vectors, versions of the code for blocks inside the
// tensors and for blocks that a mask leaves alone, loops that stay rolled.
//
// requires: a plan of the kernel with assumptions, and the facts that its lowering finds.
// ensures: vectors are such as are known to be aligned; asynchronous copies of which none is are the threads'
//   own; versions are on where there is something that they do without and their code is not too large (a
//   note); what is given stays. The plan is complete: lowering chooses nothing.
// why here: last step of planning; addresses are known when layouts, slots and places are.
// refuses: schedule_illegal, by its op, given vectors that may be unaligned, and versions that do without
//   nothing.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/access_facts.h"
#include "schedule/plan_program.h"

namespace tilegen::schedule {

// `must_hold`: what is given, which a fallback version takes as far as it can hold. `expansion_changed`: the
// kernel is to be expanded again.
Checked plan_accesses(const analysis::KernelOps& ops, const plan::AccessFacts& facts, Assumptions allowed,
                      const plan::KernelSchedule* given, bool must_hold, plan::KernelSchedule& s,
                      bool& expansion_changed);

// A plan that was made for a version with assumptions, for one with none; its accesses are planned again.
plan::KernelSchedule without_assumptions(plan::KernelSchedule s);

}  // namespace tilegen::schedule
