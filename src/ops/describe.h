// Words for diagnostics about operands: the user's buffer names, extents, types and scopes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/program.h"
#include "support/diagnostic.h"

namespace tilegen::ops {

std::string extents_text(std::span<const int64_t> extents);           // "[128, 32]"
std::string region_text(const ir::Program& p, const ir::Region& r);   // "As[128, 32]"
std::string operand_text(const ir::Program& p, const ir::Region& r);  // "As[128, 32] (f16, shared)"

// Where an op's check writes: one op's path and location, filled into every diagnostic.
struct Reporter {
  const std::string& path;
  const SourceLocation& location;
  std::vector<Diagnostic>& out;

  void error(DiagCode code, std::string message, std::string hint) const;
};

// Reports a written operand that provably overlaps another operand of the same op: the elements of one op
// have no order, so such an op has no meaning. `in_place`: the very same region is no fault, each element is
// read before it is written.
void check_no_overlap(const ir::Program& p, const ir::TileOp& op, const Reporter& report,
                      bool in_place = false);

// Reports regions whose dimensions do not correspond (matched_groups of ops/op.h).
void check_matched(const ir::Program& p, const ir::Region& src, const ir::Region& dst,
                   const Reporter& report);

}  // namespace tilegen::ops
