// What the parts of check_program share: the program, where diagnostics go, and which statements are already
// known to be wrong.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"
#include "support/limits.h"

namespace tilegen::check {

struct CheckContext {
  const ir::Program& program;
  const Limits& limits;
  std::vector<std::string> paths;  // by StmtId
  std::vector<bool> broken;        // by StmtId: later parts do not look at it
  std::vector<Diagnostic> out;
  StopCheck stop;  // of statements; once it says so the parts go over the rest without a look

  CheckContext(const ir::Program& p, const Limits& l, const Cancellation* cancellation)
      : program(p), limits(l), broken(p.stmts.size(), false), stop(cancellation) {}

  void error(DiagCode code, std::string op, const SourceLocation& location, std::string message,
             std::string hint) {
    Diagnostic d;
    d.code = code;
    d.op = std::move(op);
    d.message = std::move(message);
    d.hint = std::move(hint);
    d.location = location;
    d.stage = "check";
    out.push_back(std::move(d));
  }
  void error(DiagCode code, ir::StmtId id, std::string message, std::string hint) {
    broken[id.value] = true;
    error(code, paths[id.value], program.stmt(id).location, std::move(message), std::move(hint));
  }
};

// The parts, in the order check_program runs them.
void check_sizes(CheckContext& ctx);         // counts, depth and nesting: what later parts recurse over
void check_declarations(CheckContext& ctx);  // dims, scalars, buffers, grids
void check_scopes(CheckContext& ctx);        // where statements, variables and buffers may stand
void check_types(CheckContext& ctx);         // expressions, statements and tile ops
void check_bounds(CheckContext& ctx);        // indices and regions of on-chip buffers
void check_presence(CheckContext& ctx);      // accesses of optional tensors
void check_races(CheckContext& ctx);         // parallel loops
void check_copy_groups(CheckContext& ctx);   // asynchronous copies that the program awaits
void check_barriers(CheckContext& ctx);      // phases of transaction barriers
void check_initialised(CheckContext& ctx);   // reads nothing can have written before

}  // namespace tilegen::check
