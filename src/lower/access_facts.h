// Facts of a kernel's accesses: which vectors are aligned, where predicates are the same for whole blocks,
// how much code versions and unrolled loops come to.
//
// requires: as lower_kernel. ensures: facts of every op whose points threads walk, of the widest vectors that
// it can have, and of narrower ones where these are asked for; nothing is decided.
// why here: addresses are made by lowering alone; the schedule decides by these facts, and lowering obeys.
// refuses: what lower_kernel refuses of the ops that it looks at.
#pragma once

#include "lower/lower_kernel.h"
#include "plan/access_facts.h"

namespace tilegen::lower {

// What is found for those alone that ask: it takes time.
struct FactsAsked {
  bool all_widths = false;
  bool beside_copies = false;  // walks of ops whose asynchronous copies are legal, too
  bool for_estimate = false;   // only what decides something that an estimate sees
  bool operator==(const FactsAsked&) const = default;
};

Expected<plan::AccessFacts> find_access_facts(const ir::Program& p, const expand::ScheduledKernel& scheduled,
                                              const target::Target& target, const FactsAsked& asked);

}  // namespace tilegen::lower
