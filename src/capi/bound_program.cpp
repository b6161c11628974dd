#include "capi/bound_program.h"

#include "check/check_program.h"
#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::capi {

Expected<std::shared_ptr<const ir::Program>> checked_program(const Limits& limits, std::string_view text,
                                                             const std::string& file,
                                                             std::span<const ir::ParamBinding> bindings,
                                                             const Cancellation* cancellation,
                                                             const ir::IncludeText& include) {
  auto parsed = ir::parse_program(text, file, limits, cancellation, bindings, include);
  if (!parsed) return parsed.error();
  Error error;
  for (Diagnostic& d : check::check_program(*parsed, limits, cancellation))
    if (d.severity == Severity::error) error.diagnostics.push_back(std::move(d));
  if (!error.diagnostics.empty()) return error;
  return std::make_shared<const ir::Program>(std::move(*parsed));
}

Checked has_text_to_bind(const tl_program& program) {
  if (program.source || program.program->compile_params.empty()) return Unit{};
  return Error(
      DiagCode::bad_binding, "",
      "program '" + program.program->name + "' was made by a builder, which keeps no text to bind anew",
      "build it again, with tl_builder_bind before tl_param");
}

void hand_out_program(std::shared_ptr<const ir::Program> program, std::shared_ptr<const ProgramSource> source,
                      tl_program** out_program) {
  auto made = std::make_unique<tl_program>();
  made->program = std::move(program);
  made->source = std::move(source);
  *out_program = made.release();
}

}  // namespace tilegen::capi
