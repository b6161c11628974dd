#include "driver/artifact_cost.h"

#include "schedule/form/canonical_form.h"

namespace tilegen::driver {

namespace {

template <class Ask>
auto ask(const Artifact& a, const Ask& question) -> decltype(question(*a.program)) {
  if (!a.target.has_block_threads()) return {};
  const std::optional<ir::Program> canonical = schedule::canonical_form(*a.program, a.target);
  return question(canonical ? *canonical : *a.program);
}

}  // namespace

cost::Estimate estimate(const Artifact& a) {
  return ask(a, [&](const ir::Program& p) { return cost::estimate(p, a.schedule, a.target, a.sizes); });
}

std::vector<cost::Cliff> cliffs(const Artifact& a) {
  return ask(a, [&](const ir::Program& p) { return cost::find_cliffs(p, a.schedule, a.target, a.sizes); });
}

}  // namespace tilegen::driver
