#include "driver/artifact_cost.h"

#include "expand/overlap_form.h"
#include "schedule/form/canonical_form.h"

namespace tilegen::driver {

namespace {

template <class Ask>
auto ask(const Artifact& a, const Ask& question) -> decltype(question(*a.program)) {
  if (!a.target.has_block_threads()) return {};
  const std::optional<ir::Program> canonical = schedule::canonical_form(*a.program, a.target, &a.schedule);
  const ir::Program& form = canonical ? *canonical : *a.program;
  const std::optional<ir::Program> scheduled = expand::scheduled_form(form, a.schedule);
  return question(scheduled ? *scheduled : form);
}

}  // namespace

cost::Estimate estimate(const Artifact& a) { return estimate_at(a, a.sizes); }

cost::Estimate estimate_at(const Artifact& a, const cost::Sizes& sizes) {
  return ask(a, [&](const ir::Program& p) { return cost::estimate(p, a.schedule, a.target, sizes); });
}

std::vector<cost::Cliff> cliffs(const Artifact& a) {
  return ask(a, [&](const ir::Program& p) { return cost::find_cliffs(p, a.schedule, a.target, a.sizes); });
}

}  // namespace tilegen::driver
