#include "fuzz_target.h"

#include <cstdio>
#include <cstdlib>

#include "support/diag_codes.h"

namespace tilegen::fuzz {

void require(bool promise, const std::string& what) {
  if (promise) return;
  std::fprintf(stderr, "broken promise: %s\n", what.c_str());
  std::abort();
}

void require_stated(const Error& error) {
  for (const Diagnostic& d : error.diagnostics) require(d.code != DiagCode::internal_error, error.to_text());
}

Limits small_limits() {
  Limits limits;
  limits.text_bytes = 1 << 16;
  limits.expr_nodes = 1 << 12;
  limits.statements = 1 << 8;
  limits.buffers = 1 << 6;
  limits.nesting = 16;
  limits.tile_elements = 1 << 16;
  limits.unroll = 1 << 6;
  return limits;
}

Expected<std::shared_ptr<const driver::Artifact>> compile_briefly(std::shared_ptr<const ir::Program> program,
                                                                  const char* target,
                                                                  std::optional<plan::Schedule> schedule) {
  const auto found = target::find_target(target);
  require(bool(found), target);
  driver::CompileOptions options;
  options.verify = true;
  options.schedule = std::move(schedule);
  const Cancellation second({}, Cancellation::deadline_in(1000));
  options.cancellation = &second;
  auto artifact = driver::compile(std::move(program), *found, options);
  if (!artifact) require_stated(artifact.error());
  return artifact;
}

}  // namespace tilegen::fuzz
