// Makes a failing case small: statements deleted, blocks flattened, expressions simplified, extents and trip
// counts lowered, unused declarations dropped, as long as the failure stays.
#pragma once

#include <functional>

#include "executors.h"

namespace tilegen::differential {

// requires: fails(c). ensures: the result parses, passes check_program and fails too; no single step of the
// list above keeps it failing, unless `max_tries` calls of `fails` were used up first.
Case shrink(const Case& c, const std::function<bool(const Case&)>& fails, int max_tries = 3000);

}  // namespace tilegen::differential
