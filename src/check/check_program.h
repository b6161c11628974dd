// Program-level diagnostics: everything that can be said of a tile program without a target.
//
// requires: a Program whose ids are in range (builder or parser made it).
// ensures: no error left means shapes, dtypes, scopes and operand rules of every op hold (ops/*.cpp), indices
// of on-chip
//   buffers are in range where provable, parallel loops write each element at most once where decidable, no
//   on-chip buffer is read before a write could have reached it, variables are used under their loops, sizes
//   do not overflow.
// why here: before any target is known, so that every executor may rely on it.
// All errors are reported, up to Limits::diagnostics.
#pragma once

#include "ir/program.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"
#include "support/limits.h"

namespace tilegen::check {

// What remains is left unchecked once `cancellation` asks to stop, which then is the one error.
std::vector<Diagnostic> check_program(const ir::Program& program, const Limits& limits,
                                      const Cancellation* cancellation = nullptr);

}  // namespace tilegen::check
