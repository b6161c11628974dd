// Assertions, in statements that executors have: what does not hold is told by the launch's status.
//
//   assert x[i, j] >= 0, "negative"  ->  if not(x[i, j] >= 0) {
//                                          atomic_max(failed[0], last - (b * 4096 + i * 64 + j))
//                                        }
//
// `failed` is a workspace that no text declares, i64, an element for each assertion, all 0 when the first
// kernel begins. Of all places where an assertion fails the first (ir/report_place.h) remains there.
//
// requires: a program being made; the statements that are open around the assertion. ensures: the block of
//   its own has one Branch more, which assertion_at() knows; outside of parallel loops with one of one point
//   inside.
// why here: parser and builder make the same statements of it, and printing and the runtime read them.
#pragma once

#include <optional>

#include "ir/report_place.h"

namespace tilegen::ir {

struct Assertion {
  ExprId condition;  // bool
  std::string message;
  std::vector<StmtId> around;  // open loops and ifs, outermost first
};
// Statements it adds, at most.
constexpr int64_t kAssertionStatements = 3;

void add_assertion(Program& p, const Assertion& what, const SourceLocation& location, Block& block);

struct AssertionText {
  ExprId failing;    // the negation of what is asserted
  size_t index = 0;  // of its message, and its element
};
// What a statement asserts, if it is an assertion.
std::optional<AssertionText> assertion_at(const Program& p, StmtId stmt);

constexpr int64_t kLastPlace = (int64_t{1} << 62) - 1;  // minus the place: what is stored

}  // namespace tilegen::ir
