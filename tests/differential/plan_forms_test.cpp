// Every program of tests/files, planned with less of the target than there is: each form that a rejected plan
// may be replaced by computes the same.
//   TILEGEN_LONG=1   every program in every form
#include <gtest/gtest.h>

#include "files.h"

namespace tilegen::differential {
namespace {

using schedule::PlanForm;

class PlanForms : public testing::TestWithParam<const char*> {};

TEST_P(PlanForms, AgreeWithTheInterpreter) {
  const auto target = target::find_target(GetParam());
  ASSERT_TRUE(target);
  size_t turn = 0;
  int agree = 0;
  for (const auto& file : program_files())
    for (int form = static_cast<int>(PlanForm::in_order); form <= static_cast<int>(PlanForm::multiply_adds);
         ++form) {
      if (!schedule::is_form_of(static_cast<PlanForm>(form), *target) || (turn++ % 31 != 0 && !long_run()))
        continue;
      Subject subject(text_of(file), {GetParam()});
      if (!subject.invalid().empty()) break;  // files of the parser's tests
      subject.begin_with(static_cast<PlanForm>(form));
      Launch launch = launch_near(subject.program(), {77, 45, 139, 33});
      launch.magnitude = 4;
      launch.bound = {2e-3, 8};  // sums are exact; functions of them are not
      const Outcome o = subject.compare(launch);
      EXPECT_FALSE(o.is_defect()) << file << " " << schedule::plan_form_text(static_cast<PlanForm>(form))
                                  << ": " << kind_name(o.kind) << ": " << o.text;
      agree += o.kind == Outcome::Kind::agree;
    }
  EXPECT_GT(agree, 3);
}

INSTANTIATE_TEST_SUITE_P(Targets, PlanForms, testing::Values("sim:sm_80", "sim:sm_90a", "sim:gfx942"));

}  // namespace
}  // namespace tilegen::differential
