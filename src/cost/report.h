// An estimate as text and as JSON.
#pragma once

#include "cost/estimate.h"

namespace tilegen::cost {

// For each kernel its time and what that follows, a table of what its ops take of each pipe, and a bar chart
// of the pipes.
std::string estimate_to_text(const Estimate& e, const ir::Program& p, const target::Target& t,
                             const Sizes& sizes);
// The first part of it, one line a kernel.
std::string estimate_summary(const Estimate& e, const ir::Program& p, const target::Target& t,
                             const Sizes& sizes);
// {"sizes": {..}, "kernels": [{"kernel", "us", "bound", "blocks", "waves", "registers", .., "pipes": {..},
// "ops": [{"op", "times", "pipes": {..}, "bytes"}]}]}
std::string estimate_to_json(const Estimate& e, const ir::Program& p, const target::Target& t,
                             const Sizes& sizes);

}  // namespace tilegen::cost
