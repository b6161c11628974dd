// Whether a kernel's last tiles overlap the ones before, as a schedule gives it or where the copy engine
// gains by it (bench/gpu/outside.py).
//
// requires: a program in canonical form. ensures: a form that has the program's meaning.
// why here: planning takes the form as it is. refuses: schedule_mismatch, schedule_illegal for what is given
// and not possible.
#pragma once

#include <memory>

#include "expand/overlap_form.h"

namespace tilegen::driver {

struct OverlapChoice {
  std::optional<plan::OverlapPlan> plan;
  std::shared_ptr<const ir::Program> form;  // null: the program as it is
  std::string note;                         // why not, where it would gain
};

// `given`: may be null. `copy_engine`: the kernel may use it.
Expected<OverlapChoice> choose_overlap(const ir::Program& p, int kernel, const target::Target& t,
                                       const plan::OverlapPlan* given, bool copy_engine);

}  // namespace tilegen::driver
