#include "driver/artifact_cost.h"

#include "expand/overlap_form.h"
#include "schedule/form/canonical_form.h"

namespace tilegen::driver {

namespace {

template <class Ask>
auto ask(const Artifact& a, const target::Target& t, const Ask& question) -> decltype(question(*a.program)) {
  if (!t.has_block_threads()) return {};
  const std::optional<ir::Program> canonical = schedule::canonical_form(*a.program, t, &a.schedule);
  const ir::Program& form = canonical ? *canonical : *a.program;
  const std::optional<ir::Program> scheduled = expand::scheduled_form(form, a.schedule);
  return question(scheduled ? *scheduled : form);
}

}  // namespace

cost::Estimate estimate(const Artifact& a) {
  return ask(a, a.target,
             [&](const ir::Program& p) { return cost::estimate(p, a.schedule, a.target, a.sizes); });
}

std::vector<double> microseconds_at(const Artifact& a, const target::Target& target,
                                    std::span<const cost::Sizes> sizes) {
  const target::Target& t = a.target.name.empty() ? target : a.target;
  return ask(a, t, [&](const ir::Program& p) {
    std::vector<double> times;
    for (const cost::Sizes& s : sizes) times.push_back(cost::estimate(p, a.schedule, t, s).microseconds());
    return times;
  });
}

std::vector<cost::Cliff> cliffs(const Artifact& a) {
  return ask(a, a.target,
             [&](const ir::Program& p) { return cost::find_cliffs(p, a.schedule, a.target, a.sizes); });
}

}  // namespace tilegen::driver
