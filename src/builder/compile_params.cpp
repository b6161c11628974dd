// Compile-time parameters of a program.
#include <algorithm>
#include <string>

#include "builder/builder.h"
#include "support/diag_codes.h"
#include "support/spelling.h"

namespace tilegen::builder {
namespace {

constexpr std::string_view kParam = "tl_param";

bool holds(std::span<const int64_t> domain, int64_t value) {
  return std::find(domain.begin(), domain.end(), value) != domain.end();
}

}  // namespace

void Builder::bind(std::string_view name, int64_t value) {
  constexpr std::string_view kCall = "tl_builder_bind";
  if (!ready(kCall) || !check_name(kCall, name)) return;
  for (const ir::CompileParam& p : program_.compile_params)
    if (p.name == name)
      return fail(DiagCode::bad_binding, kCall,
                  "parameter '" + p.name + "' is bound after tl_param has given its value",
                  "call tl_builder_bind before tl_param");
  if (static_cast<int64_t>(bindings_.size()) >= limits_.buffers)
    return fail(DiagCode::limit_nodes, kCall,
                "more than " + std::to_string(limits_.buffers) + " parameters are bound", "bind fewer");
  if (!bindings_.emplace(std::string(name), value).second)
    fail(DiagCode::bad_binding, kCall, "parameter '" + std::string(name) + "' is bound twice",
         "bind it once");
}

bool Builder::check_domain(std::string_view name, std::span<const int64_t> domain) {
  const std::string what = "the domain of parameter '" + std::string(name) + "'";
  if (static_cast<int64_t>(domain.size()) > limits_.domain_values) {
    fail(DiagCode::limit_nodes, kParam,
         what + " has more than " + std::to_string(limits_.domain_values) + " values",
         "give fewer values, or split the parameter");
    return false;
  }
  if (domain.empty()) {
    fail(DiagCode::bad_domain, kParam, what + " is empty", "give at least one value");
    return false;
  }
  for (size_t i = 1; i < domain.size(); ++i) {
    if (!holds(domain.first(i), domain[i])) continue;
    fail(DiagCode::bad_domain, kParam,
         what + " has " + std::to_string(domain[i]) + " twice, expected distinct values",
         "remove one of them");
    return false;
  }
  return true;
}

int64_t Builder::param(std::string_view name, std::span<const int64_t> domain) {
  const int64_t first = domain.empty() ? 1 : domain[0];
  if (!ready(kParam) || !before_kernels(kParam)) return first;
  if (static_cast<int64_t>(program_.params.size() + program_.compile_params.size()) >= limits_.buffers) {
    fail(DiagCode::limit_nodes, kParam,
         "a program has at most " + std::to_string(limits_.buffers) + " parameters", "declare fewer");
    return first;
  }
  if (!declare(kParam, name, "compile-time parameter") || !check_domain(name, domain)) return first;
  ir::CompileParam p;
  p.name = name;
  p.domain.assign(domain.begin(), domain.end());
  p.value = first;
  p.location = location_;
  if (const auto bound = bindings_.find(name); bound != bindings_.end()) {
    p.value = bound->second;
    bindings_.erase(bound);
    if (!holds(domain, p.value)) {
      fail(DiagCode::bad_binding, kParam,
           "parameter '" + p.name + "' is bound to " + std::to_string(p.value) +
               ", which is no value of its domain",
           "bind one of the values that are given to tl_param");
      return first;
    }
  }
  program_.compile_params.push_back(std::move(p));
  return program_.compile_params.back().value;
}

std::string Builder::param_names() const {
  std::string known;
  for (const ir::CompileParam& p : program_.compile_params) known += (known.empty() ? "" : ", ") + p.name;
  return known;
}

void Builder::check_bindings(std::string_view call) {
  const std::string known = param_names();
  for (const auto& [name, value] : bindings_) {
    NearestName nearest(name);
    for (const ir::CompileParam& p : program_.compile_params) nearest.offer(p.name);
    fail(DiagCode::bad_binding, call,
         "'" + name + "' is bound, but program '" + program_.name +
             (known.empty() ? "' has no compile-time parameters"
                            : "' has no such compile-time parameter; it has " + known),
         nearest.hint(known.empty() ? "declare it with tl_param" : "bind one of " + known));
  }
}

}  // namespace tilegen::builder
