// Facts of the walks of ops (lower/access_facts.h), while they are looked for.
#pragma once

#include "lower/gpu/element_nest.h"
#include "plan/access_facts.h"

namespace tilegen::lower {

// requires: facts are looked for.
plan::OpAccessFacts& facts_of(LoweringContext& k, const std::string& op);
// The widest vectors that a walk of the op can have.
void note_widest(LoweringContext& k, const std::string& op, int64_t width);
// Whatever the plan says of vectors and versions: what each would be. Nothing stays of what is tried.
void find_facts(LoweringContext& k, const Walk& walk, const EmitPoint& emit);

}  // namespace tilegen::lower
