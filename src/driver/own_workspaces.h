// Workspaces that kernels have beyond those of the program's text, since blocks leave their sums there
// (expand/workspace_split.h): a launch makes memory for them as for any, after the parameters of the text.
//
// requires: versions of the program's kernels, each with the form that it was lowered from, or null for one
// without workspaces of its own. ensures: every version has the parameters of the program that is returned,
// in order; it names those that are its own. why here: forms are made kernel by kernel, and a launch has one
// list of slots for all. refuses: nothing.
#pragma once

#include <memory>
#include <span>

#include "driver/split_plan.h"
#include "thread/thread_program.h"

namespace tilegen::driver {

// Null where no version has any.
std::shared_ptr<const ir::Program> with_own_workspaces(const ir::Program& program,
                                                       std::span<const SplitProgram> forms,
                                                       std::span<thread::ThreadProgram> versions);

}  // namespace tilegen::driver
