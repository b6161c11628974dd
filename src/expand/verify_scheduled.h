// Checks of a scheduled program that need no target: short runs of its roles, statement by statement, against
// each other.
//
// requires: an expanded kernel.
// ensures: for loops of none, one, two and more iterations than any pipeline has slots, conditions held and
// not held, and several tiles of persistent blocks: no role waits for ever; every use of a slot is acquired,
// committed, awaited and released once, in this order, and read in between only; no product is in flight
// when its slot is released, its registers are touched or its operand is written; products are awaited in the
// order of issue, with as many pending as the wait allows; asynchronous copies are awaited before they are
// read and never fill a slot that is read later; turns of warpgroups are waited for and passed on in turn.
// Versions are of one operation, done in one way.
// why here: a fault of expansion, or of a plan that cannot be expanded, is named by operation and slot, which
// the checks of the thread program no longer know.
#pragma once

#include "expand/scheduled_kernel.h"

namespace tilegen::expand {

// What is broken, in words; empty: nothing. At most a few.
std::vector<std::string> verify_scheduled(const ir::Program& p, const ScheduledKernel& k);

}  // namespace tilegen::expand
