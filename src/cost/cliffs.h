// What a plan loses beside one that has no such fault, by the model: warnings for the user.
//
// requires, why here: as estimate.h.
// ensures: for each fault that makes a kernel take kCliff times as long or longer, what it is, where, by
//   which factor, and a way out. The same input, the same output.
// refuses: nothing.
#pragma once

#include "cost/estimate.h"
#include "support/diagnostic.h"

namespace tilegen::cost {

// Less is not worth a word.
inline constexpr double kCliff = 1.25;

struct Cliff {
  Diagnostic diagnostic;  // a warning
  double factor = 1;      // the kernel's time to that without it
};

// The greatest first.
std::vector<Cliff> find_cliffs(const ir::Program& p, const plan::Schedule& schedule, const target::Target& t,
                               const Sizes& sizes);

}  // namespace tilegen::cost
