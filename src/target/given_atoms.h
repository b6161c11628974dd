// Matrix instructions of a program (ir/matrix_atom.h) as rows of a target's table.
//
// requires: a program's atoms. ensures: rows whose layouts hold each element once, in as many registers as
//   the instruction has; those of a program before are gone. Products that name a row take it, others do not.
// why here: before planning, which takes rows from the target alone.
// refuses (schedule_illegal): layouts that are no fragments.
#pragma once

#include <memory>
#include <span>

#include "ir/native.h"
#include "target/target.h"

namespace tilegen::target {

// Whatever target takes its text.
Expected<MmaAtom> given_atom(const std::shared_ptr<const ir::NativeFunction>& atom);

// `t` with a row for each atom of which it takes the text. Where the program says nothing of an atom's
// cycles they are those of a row of the same shape and types, or in proportion to the fastest row of the
// types.
Expected<Target> with_given_atoms(Target t,
                                  std::span<const std::shared_ptr<const ir::NativeFunction>> natives);

}  // namespace tilegen::target
