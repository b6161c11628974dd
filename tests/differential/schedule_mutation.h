// One field of a schedule, changed: left out, another value, an illegal one, one of another entry, another
// type, entries in another order.
#pragma once

#include <string>

#include "data.h"
#include "json_tree.h"

namespace tilegen::differential {

// What was done, for people.
std::string mutate_schedule(JsonTree& schedule, Random& random);

// Empty when every field that `given` says stands in `result`; or which does not.
std::string not_honoured(const JsonTree& given, const JsonTree& result);

}  // namespace tilegen::differential
