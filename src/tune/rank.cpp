#include "tune/rank.h"

#include <algorithm>
#include <tuple>

#include "tune/workers.h"

namespace tilegen::tune {
namespace {

void plan(Configuration& c, const Bind& bind, const target::Target& target,
          const driver::CompileOptions& options) {
  auto bound = bind(c.values);
  if (!bound) {
    c.refused = bound.error();
    return;
  }
  const auto artifact = driver::compile(*bound, target, options);
  if (!artifact) {
    c.refused = artifact.error();
    return;
  }
  c.program = std::move(*bound);
  c.microseconds = (*artifact)->estimate.value_or(0);
}

}  // namespace

driver::CompileOptions planning_options(const driver::CompileOptions& options) {
  driver::CompileOptions planning = options;
  planning.plan_only = true;
  planning.dump = nullptr;  // of one compilation each
  planning.log = nullptr;
  planning.rejected = nullptr;
  return planning;
}

Expected<std::vector<Configuration>> rank(const ir::Program& program, const Bind& bind,
                                          const target::Target& target, const driver::CompileOptions& options,
                                          unsigned threads) {
  if (!target.has_block_threads()) return no_estimates(program, target.name);
  const Expected<size_t> count = count_configurations(program);
  if (!count) return count.error();

  driver::CompileOptions planning = planning_options(options);
  planning.estimate_only = true;
  const Cancellation* cancellation = options.cancellation;
  std::vector<Configuration> all(*count);
  on_workers(all.size(), threads, [&](size_t i) {
    if (cancellation && cancellation->requested_lately()) return;
    // Large tiles, which domains mostly end with, take longest: no worker begins with one in the end.
    Configuration& c = all[all.size() - 1 - i];
    c.values = values_of(program, all.size() - 1 - i);
    plan(c, bind, target, planning);
  });
  if (cancellation && cancellation->requested())
    return cancellation->error(program.name, "while its configurations were planned");

  std::stable_sort(all.begin(), all.end(), [](const Configuration& a, const Configuration& b) {
    return std::tuple(a.refused.has_value(), a.microseconds) <
           std::tuple(b.refused.has_value(), b.microseconds);
  });
  if (all.front().refused) return all_refused(program, target.name, "planned", all);
  return all;
}

}  // namespace tilegen::tune
