// The parts in which blocks share a loop, and where their sums meet: the shortest by estimate.
//
// requires: a candidate that is planned with one block a point, and a loop of loop_to_share. ensures: the
// candidate has the plan of the parts, its scheduled program and its accesses, or is as it was and notes why.
// why here: what is shorter shows in plans. refuses: nothing; forms whose plan or expansion is rejected are
// passed over.
#pragma once

#include <functional>

#include "driver/candidate_stages.h"

namespace tilegen::driver {

// Told of what the checks of a plan's code reject.
using OnRejected = std::function<void(const Error&)>;

void choose_split(const CandidateStages& stages, Candidate& c, ir::StmtId loop, const OnRejected& rejected);

}  // namespace tilegen::driver
