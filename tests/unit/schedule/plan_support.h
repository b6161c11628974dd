// Programs from text and their plans, for the planning tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "check/check_program.h"
#include "complete_plan.h"
#include "ir/text.h"
#include "plan/schedule.h"
#include "schedule/annotations.h"
#include "schedule/form/canonical_form.h"
#include "schedule/plan_program.h"
#include "target/target.h"

namespace tilegen::schedule {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

inline std::string source_path(const std::string& relative) {
  return std::string(TILEGEN_SOURCE_DIR) + "/" + relative;
}

// A checked program; a failure is reported with its diagnostics.
inline std::shared_ptr<const ir::Program> program_from(const std::string& text) {
  auto p = ir::parse_program(text, "test.tl", Limits{});
  if (!p) {
    ADD_FAILURE() << p.error().to_text();
    return nullptr;
  }
  for (const Diagnostic& d : check::check_program(*p, Limits{})) ADD_FAILURE() << d.to_text();
  return std::make_shared<const ir::Program>(std::move(*p));
}

inline target::Target target_named(const std::string& name) {
  auto t = target::find_target(name);
  EXPECT_TRUE(static_cast<bool>(t)) << name;
  return *t;
}

// As the driver has it planned.
inline ir::Program planned_form(const ir::Program& p, const std::string& target,
                                const plan::Schedule* given = nullptr) {
  auto form = canonical_form(p, target_named(target), given);
  return form ? std::move(*form) : p;
}

inline Expected<plan::Schedule> plan_for(const ir::Program& p, const std::string& target,
                                         const plan::Schedule* given = nullptr, bool conversions = true) {
  const ir::Program form = planned_form(p, target, given);
  const target::Target t = target_named(target);
  const auto asked = AnnotatedSchedule::make(p, form, t, given ? std::optional(*given) : std::nullopt);
  if (!asked) return asked.error();
  const plan::Schedule* decided = asked->schedule ? &*asked->schedule : nullptr;
  return complete_plan(form, t, plan_program(form, t, {decided, conversions}), decided);
}

}  // namespace tilegen::schedule
