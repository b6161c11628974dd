// Loops over a thread's points that are written out, and the size of the code that they come to.
#pragma once

#include <set>

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// Of the unrolled loops [first, last) around `body`, the outermost ones that may stay rolled, where all
// written out made more copies than planned. `copies`: that the others write out.
std::vector<bool> rolled_loops(LoweringContext& k, const Nest& nest, size_t first, size_t last,
                               const thread::Block& body, const std::string& origin, int64_t& copies);
// Up to `together` iterations are written out in one, to have their accesses under way at once.
thread::Block rolled_loop(LoweringContext& k, const NestLoop& l, int64_t together, thread::Block body,
                          const std::string& origin);
// Of one thread, as written out, in loops that are unrolled.
int64_t operations(LoweringContext& k, const thread::Block& block, const std::set<VarId>& unrolled = {});

}  // namespace tilegen::lower
