// Each kind of layout conversion is forced by a program, recorded in the plan, and refused by name when
// switched off.
#include "plan_support.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {
namespace {

using layout::ConversionKind;

struct Forced {
  const char* file;
  ConversionKind kind;
  const char* value;
  const char* producer;
  const char* consumer;
};

class ForcedConversion : public ::testing::TestWithParam<Forced> {};

TEST_P(ForcedConversion, IsRecordedAndRefusedWhenOff) {
  const Forced& f = GetParam();
  auto program = program_from(read_file(source_path(std::string("tests/files/plan/") + f.file)));
  ASSERT_TRUE(program);
  auto schedule = plan_for(*program, "sm_80");
  ASSERT_TRUE(static_cast<bool>(schedule)) << schedule.error().to_text();
  const auto& conversions = schedule->kernels[0].conversions;
  ASSERT_EQ(conversions.size(), 1u);
  EXPECT_EQ(conversions[0].kind, f.kind) << layout::conversion_name(conversions[0].kind);
  EXPECT_EQ(conversions[0].value, f.value);
  EXPECT_EQ(conversions[0].producer, f.producer);
  EXPECT_EQ(conversions[0].consumer, f.consumer);
  EXPECT_GT(conversions[0].cost, 0);
  EXPECT_FALSE(conversions[0].from.equivalent(conversions[0].to));

  auto refused = plan_for(*program, "sm_80", nullptr, false);
  ASSERT_FALSE(static_cast<bool>(refused));
  const Diagnostic& d = refused.error().diagnostics.front();
  EXPECT_EQ(d.code, DiagCode::conversion_refused);
  EXPECT_NE(d.message.find(f.producer), std::string::npos) << d.message;
  EXPECT_NE(d.message.find(f.consumer), std::string::npos) << d.message;
  EXPECT_NE(d.message.find(layout::conversion_name(f.kind)), std::string::npos) << d.message;
  EXPECT_FALSE(d.hint.empty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, ForcedConversion,
                         ::testing::Values(Forced{"convert_shuffle.tl", ConversionKind::shuffle, "chain:s",
                                                  "chain/gemm#0", "chain/gemm#1"},
                                           Forced{"convert_doubles.tl", ConversionKind::shared_bounce,
                                                  "chain:s", "chain/gemm#0", "chain/gemm#1"},
                                           Forced{"convert_shared_bounce.tl", ConversionKind::shared_bounce,
                                                  "mixed:rows", "mixed/gemm#0", "mixed/i.j"},
                                           Forced{"convert_replication.tl", ConversionKind::shared_bounce,
                                                  "statistic:total", "statistic/reduce#0", "statistic/i.j"}),
                         [](const auto& info) {
                           const std::string file = info.param.file;
                           return file.substr(0, file.find('.'));
                         });

// The kind is what lowering does: a trip through memory may be given where shuffles would do, and not the
// other way round.
TEST(ForcedConversion, TheGivenKindIsTaken) {
  auto program = program_from(read_file(source_path("tests/files/plan/convert_shuffle.tl")));
  ASSERT_TRUE(program);
  auto planned = plan_for(*program, "sm_80");
  ASSERT_TRUE(static_cast<bool>(planned)) << planned.error().to_text();
  plan::Schedule given = *planned;
  ASSERT_EQ(given.kernels[0].conversions.size(), 1u);
  given.kernels[0].conversions[0].kind = ConversionKind::shared_bounce;
  auto bounced = plan_for(*program, "sm_80", &given);
  ASSERT_TRUE(static_cast<bool>(bounced)) << bounced.error().to_text();
  EXPECT_EQ(bounced->kernels[0].conversions[0].kind, ConversionKind::shared_bounce);
  const auto code = [&](const plan::Schedule& s) {
    return thread::print_thread_program(
        *lowered_as_planned(*program, 0, s.kernels[0], target_named("sm_80")));
  };
  EXPECT_NE(code(*planned).find("shuffle"), std::string::npos);
  EXPECT_EQ(code(*bounced).find("shuffle"), std::string::npos);
  given.kernels[0].conversions[0].kind = ConversionKind::register_permute;
  auto refused = plan_for(*program, "sm_80", &given);
  ASSERT_FALSE(static_cast<bool>(refused));
  EXPECT_EQ(refused.error().diagnostics[0].code, DiagCode::schedule_illegal);
}

// A thread keeps its elements but in other registers than the matrix instruction reads: forced by giving the
// operand a layout whose registers are reversed.
TEST(ForcedConversion, RegisterPermute) {
  auto program = program_from(read_file(source_path("tests/files/plan/chained_gemm.tl")));
  ASSERT_TRUE(program);
  auto planned = plan_for(*program, "sm_80");
  ASSERT_TRUE(static_cast<bool>(planned)) << planned.error().to_text();
  EXPECT_TRUE(planned->kernels[0].conversions.empty()) << "the accumulator feeds the next gemm as it lies";

  plan::Schedule given;
  given.target = "sm_80";
  plan::KernelSchedule kernel;
  kernel.kernel = "chain";
  plan::ValuePlan value = *plan::find_value(planned->kernels[0], "chain:p");
  std::vector<layout::Digit> digits = value.fragment->map().digits();
  int64_t registers = value.fragment->registers();
  for (layout::Digit& d : digits)
    if (d.output == layout::kRegister) d.stride = registers / (d.stride * d.extent);
  auto map = layout::Layout::make(value.fragment->shape(), digits, 2);
  ASSERT_TRUE(static_cast<bool>(map)) << map.error().to_text();
  auto reversed = layout::Fragment::make(*map, value.fragment->threads());
  ASSERT_TRUE(static_cast<bool>(reversed)) << reversed.error().to_text();
  value.fragment = *reversed;
  kernel.values.push_back(value);
  given.kernels.push_back(kernel);

  auto schedule = plan_for(*program, "sm_80", &given);
  ASSERT_TRUE(static_cast<bool>(schedule)) << schedule.error().to_text();
  ASSERT_EQ(schedule->kernels[0].conversions.size(), 1u);
  EXPECT_EQ(schedule->kernels[0].conversions[0].kind, ConversionKind::register_permute);
  EXPECT_EQ(schedule->kernels[0].conversions[0].consumer, "chain/gemm#1");

  auto refused = plan_for(*program, "sm_80", &given, false);
  ASSERT_FALSE(static_cast<bool>(refused));
  EXPECT_EQ(refused.error().diagnostics.front().code, DiagCode::conversion_refused);
}

}  // namespace
}  // namespace tilegen::schedule
