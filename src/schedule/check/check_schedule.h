// A schedule that the caller gives: every field of it is looked at before planning uses any, and again when
// all is planned.
//
// requires: the schedule as it was read. ensures: what it names exists; layouts are of the shapes, scopes,
// threads and types of what they are for, tell every element's place and no two the same; then planning may
// take them without a look. When a kernel is planned, each field that was given stands in the result. why
// here: before planning, so that no stage meets a layout or a number it was not made for; and after it,
// since whether engines, vectors, stages and slots can be had is what planning finds out. refuses:
// schedule_mismatch, a name that the program does not have, another program or target; schedule_illegal, a
// field that cannot be had, by its name, with what was given, what was expected, and a way out.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// Target, program and kernels.
Checked check_schedule(const plan::Schedule& given, const ir::Program& p, const target::Target& t);

// Names of a kernel's ops, values, loops and pipelines.
Checked check_names(const plan::KernelSchedule& given, const ir::Program& p, int kernel,
                    const analysis::KernelOps& ops);

// Layouts of values and iterations (check_layouts.cpp).
Checked check_layouts(const plan::KernelSchedule& given, const ir::Program& p, const analysis::KernelOps& ops,
                      const target::Target& t, int64_t threads);

// The given conversion means the planned one, of the value held as `value` says: the op that takes or makes
// it otherwise, and the layouts that are given.
bool is_same_conversion(const plan::ConversionPlan& given, const plan::ConversionPlan& planned,
                        const plan::ValuePlan* value);

// The planned kernel has each field that was given (check_result.cpp). It is written as it was given then:
// reasons, origins, and what a conversion is called.
Checked check_result(const plan::KernelSchedule& given, const ir::Program& p, int kernel,
                     const analysis::KernelOps& ops, plan::KernelSchedule& result);

}  // namespace tilegen::schedule
