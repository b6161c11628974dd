#include "tune/configuration.h"

#include "support/diag_codes.h"

namespace tilegen::tune {

Expected<size_t> count_configurations(const ir::Program& program) {
  size_t count = 1;
  for (const ir::CompileParam& p : program.compile_params) {
    // A domain has a few hundred values at most, so the product is looked at before it can wrap.
    count *= p.domain.size();
    if (count > kMaxConfigurations)
      return Error(DiagCode::limit_nodes, program.name,
                   "the compile-time parameters of '" + program.name + "' have more than " +
                       std::to_string(kMaxConfigurations) + " configurations",
                   "leave out values that are not worth trying");
  }
  return count;
}

std::vector<ir::ParamBinding> values_of(const ir::Program& program, size_t index) {
  std::vector<ir::ParamBinding> values(program.compile_params.size());
  for (size_t i = values.size(); i-- > 0;) {
    const ir::CompileParam& p = program.compile_params[i];
    values[i] = {p.name, p.domain[index % p.domain.size()]};
    index /= p.domain.size();
  }
  return values;
}

std::string values_text(const std::vector<ir::ParamBinding>& values) {
  std::string text;
  for (const ir::ParamBinding& v : values)
    text += (text.empty() ? "" : ", ") + v.name + " " + std::to_string(v.value);
  return text;
}

Error no_estimates(const ir::Program& program, const std::string& target) {
  return Error(DiagCode::target_unsupported, program.name,
               "there are no estimates for target '" + target + "', which has no threads",
               "measure, with the option 'tune' = 'measure', or bind the compile-time parameters to values");
}

Error all_refused(const ir::Program& program, const std::string& target, const char* cannot_be,
                  const std::vector<Configuration>& all) {
  Error error = *all.front().refused;
  for (Diagnostic& d : error.diagnostics)
    d.message = "of " + std::to_string(all.size()) + " configurations of '" + program.name +
                "' none can be " + cannot_be + " for " + target + "; the first (" +
                values_text(all.front().values) + "): " + d.message;
  return error;
}

}  // namespace tilegen::tune
