// One form of every kernel whose code holds: planned, lowered and checked, and planned again with less where
// a kernel is rejected.
//
// requires: a checked program.
// ensures: code that lowering made and, on a GPU or where asked, the verifiers accept; a kernel that is not
// done as planned first has a note that says what it does without, and why. why here: only finished code
// shows whether a plan holds, and only planning knows what there is beside it. refuses: what planning and
// lowering refuse in every form; target_unsupported where the checks reject all of them; schedule_illegal, by
// its field, for a given decision without which the code holds. Nothing given is replaced in a first version;
// in a fallback version what cannot hold is, with a note (fallback_plan.h).
#pragma once

#include "driver/split_plan.h"
#include "driver/stages.h"

namespace tilegen::driver {

struct SettledPlan {
  plan::Schedule schedule;
  std::vector<thread::ThreadProgram> kernels;  // none with estimate_only
  std::optional<double> estimate;              // microseconds, with estimate_only
  std::vector<SplitProgram> splits;  // of each kernel: the form that it was made of, where its loop is split
};

// For one level. `planned`: decisions of another level to begin with as they are. With estimate_only
// lowering and checks are not asked.
Expected<SettledPlan> settle_plan(const ir::Program& program, const target::Target& target,
                                  const CompileOptions& options, AssumptionLevel level,
                                  const plan::Schedule* planned, Stages& stages);

}  // namespace tilegen::driver
