// What the code of an op's accesses would be, as far as the layouts, the target and what is known of the
// program's sizes tell: facts, by the op's path. Lowering finds them (lower/access_facts.h), the schedule
// decides by them (schedule/access_plan.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include <cstdint>

namespace tilegen::plan {

// A thread's points in parts, each taken as its warp knows a condition on indices.
struct MaskParts {
  int64_t parts = 0, elements = 0;
  int64_t open = 0, known = 0;  // operations of a thread: where no warp knows it, and on average
  int64_t instructions = 0;     // code of all forms
  bool operator==(const MaskParts&) const = default;
};

struct OpAccessFacts {
  std::set<int64_t> wide;        // widths at which accesses are vectors, ...
  std::set<int64_t> misaligned;  // ... one of which may be unaligned, or has lanes that wait for each other
  // Widths at which blocks inside the tensors do without predicates that differ between lanes: operations of
  // a thread in the version for the others, which has no vectors.
  std::map<int64_t, int64_t> edge_operations;
  // A condition on indices is the same for all elements of some blocks.
  bool masked = false;
  int64_t unmasked_operations = 0;  // of a thread in the version for those
  std::optional<MaskParts> mask_parts;
  // By width: copies of the body in loops that need not be unrolled, when they are.
  std::map<int64_t, int64_t> copies;
  bool in_memory = false;  // no access is to a register
  // Of asynchronous copies: widths that are known to be legal, and those with which blocks inside the tensors
  // need no predicates.
  bool async_seen = false;
  std::set<int64_t> async, async_interior;
};

using AccessFacts = std::map<std::string, OpAccessFacts>;

}  // namespace tilegen::plan
