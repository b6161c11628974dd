// Programs, their plans and their expansions, for the tests of expansion.
#pragma once

#include "../schedule/plan_support.h"
#include "expand/expand_kernel.h"
#include "expand/verify_scheduled.h"

namespace tilegen::expand {

// A kernel with what it refers to.
struct Expanded {
  std::shared_ptr<const ir::Program> program;
  std::shared_ptr<const plan::Schedule> schedule;
  ScheduledKernel kernel;
};

// The first kernel of a program file; nothing where the target has no plan for it.
inline std::optional<Expanded> expanded_from(const std::string& path, const std::string& target) {
  Expanded e;
  const auto written = schedule::program_from(schedule::read_file(path));
  if (!written) return std::nullopt;
  e.program = std::make_shared<const ir::Program>(schedule::planned_form(*written, target));
  auto plan = schedule::plan_for(*e.program, target);
  if (!plan) return std::nullopt;
  e.schedule = std::make_shared<const plan::Schedule>(std::move(*plan));
  auto kernel = expand_kernel(*e.program, 0, e.schedule->kernels[0], schedule::target_named(target));
  if (!kernel) {
    ADD_FAILURE() << path << " " << target << ": " << kernel.error().to_text();
    return std::nullopt;
  }
  e.kernel = std::move(*kernel);
  return e;
}

}  // namespace tilegen::expand
