#include "check/check_program.h"

#include "check/context.h"

namespace tilegen::check {

// Sizes and declarations come first because the rest recurses over the program and asks for constant extents.
// From there on a statement found wrong is left alone by later parts, so that one mistake gives one message.
std::vector<Diagnostic> check_program(const ir::Program& program, const Limits& limits,
                                      const Cancellation* cancellation) {
  CheckContext ctx(program, limits, cancellation);
  check_sizes(ctx);
  if (ctx.out.empty()) {
    check_declarations(ctx);
    if (ctx.out.empty()) {
      ctx.paths = ir::statement_paths(program);
      check_scopes(ctx);
      check_types(ctx);
      check_presence(ctx);
      check_bounds(ctx);
      check_races(ctx);
      check_copy_groups(ctx);
      check_barriers(ctx);
      check_initialised(ctx);
    }
  }
  if (ctx.stop()) return cancellation->error(program.name, "while the program was checked").diagnostics;
  if (ctx.out.size() > static_cast<size_t>(limits.diagnostics)) ctx.out.resize(limits.diagnostics);
  return std::move(ctx.out);
}

}  // namespace tilegen::check
