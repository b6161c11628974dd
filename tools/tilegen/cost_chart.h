// The cost model's word, for people.
#pragma once

#include <cstdio>
#include <string>

#include "library.h"

namespace tool {

// What the plan loses, one warning a line; nothing where there is none.
void print_warnings(const Artifact& artifact, std::FILE* out);

// One SVG per kernel in `folder`, which must exist: how busy each pipe is. The number written.
int write_cost_charts(const std::string& cost_json, const std::string& folder);

}  // namespace tool
