// What is planned for a program's first kernel on sm_90a, where no device is needed.
#pragma once

#include <memory>
#include <string>

#include "driver/compile.h"
#include "ir/text.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::differential {

// Empty, or why there is no plan.
inline std::string plan_on_hopper(const std::string& text, plan::KernelSchedule& kernel) {
  auto program = ir::parse_program(text, "case.tl", Limits{});
  if (!program) return "no program: " + program.error().to_text();
  driver::CompileOptions options;
  options.plan_only = true;
  auto artifact = driver::compile(std::make_shared<const ir::Program>(std::move(*program)),
                                  *target::find_target("sm_90a"), options);
  if (!artifact) return "no plan: " + artifact.error().to_text();
  kernel = (*artifact)->schedule.kernels[0];
  return "";
}

}  // namespace tilegen::differential
