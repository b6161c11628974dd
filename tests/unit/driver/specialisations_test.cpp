// Which of several artifacts a launch takes, and how that reads.
#include "driver/specialisations.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "runtime/executable.h"
#include "support/diag_codes.h"
#include "target/target.h"

namespace tilegen::driver {
namespace {

using Rows = std::vector<uint8_t>;

std::shared_ptr<const ir::Program> program_with(const std::string& text, int64_t rows) {
  const std::vector<ir::ParamBinding> values = {{"ROWS", rows}};
  auto p = ir::parse_program(text, "p.tl", Limits(), nullptr, values);
  EXPECT_TRUE(p) << (p ? "" : p.error().to_text());
  return std::make_shared<const ir::Program>(std::move(*p));
}

std::shared_ptr<const Artifact> compiled(const std::string& text, int64_t rows, const char* target,
                                         bool plan_only = false) {
  CompileOptions options;
  options.plan_only = plan_only;
  auto a = compile(program_with(text, rows), *target::find_target(target), options);
  EXPECT_TRUE(a) << (a ? "" : a.error().to_text());
  return a ? *a : nullptr;
}

// Each element says by which configuration it was written; a workspace has a shape of its own in each.
const std::string kTold =
    "tl 1 program told\nparam ROWS in {1, 4, 16}\ndim m\nscalar s: i16\ntensor Y: i32[m, 8]\n"
    "tensor P: i32[ceildiv(m, ROWS), 8] workspace\n"
    "kernel fill_in grid (b: ceildiv(m, ROWS)) {\n  alloc p: shared i32[1, 8]\n  fill p, cast(i32, ROWS)\n"
    "  copy p -> P[b :+ 1, 0 :+ 8]\n}\n"
    "kernel write grid (b: m) {\n  alloc p: shared i32[1, 8]\n  copy P[b // ROWS :+ 1, 0 :+ 8] -> p\n"
    "  copy p -> Y[b :+ 1, 0 :+ 8]\n}\n";

TEST(Specialisations, StepsThatChooseAlikeBecomeOne) {
  std::vector<SizeAxis> axes = {{"m", 0, {1, 2, 4, 8, 16}}};
  Rows choice = {0, 0, 1, 1, 0};
  merge_steps(axes, choice);
  EXPECT_EQ(axes[0].upto, (std::vector<int64_t>{2, 8, 16}));
  EXPECT_EQ(choice, (Rows{0, 1, 0}));

  axes = {{"m", 0, {1, 2, 4}}, {"n", 1, {10, 20, 30}}};
  choice = {0, 1, 1, 0, 1, 1, 2, 2, 2};
  merge_steps(axes, choice);
  EXPECT_EQ(axes[0].upto, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(axes[1].upto, (std::vector<int64_t>{10, 30}));
  EXPECT_EQ(choice, (Rows{0, 1, 2, 2}));
}

TEST(Specialisations, SizesAsText) {
  Specialisations s;
  s.axes = {{"m", 0, {2, 8, 16}}};
  s.choice = {0, 1, 0};
  EXPECT_EQ(s.sizes_text(0), "m up to 2 or m above 8");
  EXPECT_EQ(s.sizes_text(1), "m 3 .. 8");
  s.axes = {{"m", 0, {2, 4}}, {"n", 1, {10, 30}}};
  s.choice = {0, 1, 2, 2};
  EXPECT_EQ(s.sizes_text(1), "m up to 2, n above 10");
  EXPECT_EQ(s.sizes_text(2), "m above 2, any n");
}

TEST(Specialisations, ChooseByTheLaunchesSizes) {
  Specialisations s;
  for (int64_t rows : {1, 4, 16}) s.artifacts.push_back(compiled(kTold, rows, "sm_80", true));
  s.axes = {{"m", 0, {2, 8, 16}}};
  s.choice = {0, 1, 2};
  const auto chosen = [&](int64_t m) {
    const uint64_t slots[] = {static_cast<uint64_t>(m), 0, 0, 0};
    return s.choose(slots);
  };
  for (int64_t m : {0, 1, 2}) EXPECT_EQ(chosen(m), 0u) << m;
  for (int64_t m : {3, 8}) EXPECT_EQ(chosen(m), 1u) << m;
  for (int64_t m : {9, 16, 17, 1 << 30}) EXPECT_EQ(chosen(m), 2u) << m;

  // A scalar of a narrow type: bits beyond it say nothing.
  s.axes = {{"s", 1, {2, 8, 16}}};
  const auto by_scalar = [&](uint64_t slot) {
    const uint64_t slots[] = {5, slot, 0, 0};
    return s.choose(slots);
  };
  EXPECT_EQ(by_scalar(0xffff), 0u);  // -1
  EXPECT_EQ(by_scalar(0xabcd0007), 1u);
  EXPECT_EQ(by_scalar(900), 2u);
}

TEST(Specialisations, LaunchesRunWhatTheirSizesChoose) {
  for (const char* target : {"host", "sim:sm_80", "sim:sm_90a"}) {
    Specialisations s;
    for (int64_t rows : {1, 4, 16}) s.artifacts.push_back(compiled(kTold, rows, target));
    s.axes = {{"m", 0, {2, 8, 16}}};
    s.choice = {0, 1, 2};
    auto joined = join(std::move(s));
    ASSERT_TRUE(joined) << joined.error().to_text();
    EXPECT_EQ((*joined)->program->compile_params[0].value, 16);  // of the largest sizes
    auto loaded = runtime::load(*joined, runtime::kAnyDevice);
    ASSERT_TRUE(loaded) << loaded.error().to_text();
    ASSERT_TRUE((*loaded)->prepare());
    EXPECT_EQ((*loaded)->version_count(), (*loaded)->info()->size());
    EXPECT_NE((*(*loaded)->info())[0].guards.find("m up to 2"), std::string::npos);
    for (const auto& [m, rows] : std::vector<std::pair<int64_t, int32_t>>{
             {1, 1}, {2, 1}, {3, 4}, {8, 4}, {9, 16}, {16, 16}, {40, 16}}) {
      std::vector<int32_t> y(static_cast<size_t>(m) * 8, -1);
      using Kind = runtime::Argument::Kind;
      const runtime::Argument arguments[] = {
          {.kind = Kind::integer, .bits = static_cast<uint64_t>(m)},
          {.kind = Kind::integer, .bits = 3},
          {.kind = Kind::pointer, .bits = reinterpret_cast<uint64_t>(y.data())}};
      const Checked ran = (*loaded)->launch(arguments, {});
      ASSERT_TRUE(ran) << ran.error().to_text();
      EXPECT_EQ(y, std::vector<int32_t>(y.size(), rows)) << target << " m " << m;
    }
  }
}

TEST(Specialisations, TimesAreOfAll) {
  Specialisations s;
  for (int64_t rows : {1, 4}) s.artifacts.push_back(compiled(kTold, rows, "sm_80", true));
  s.choice = {0, 1};
  s.axes = {{"m", 0, {2, 8}}};
  const auto first = s.artifacts[0]->times[0], second = s.artifacts[1]->times[0];
  const auto joined = join(std::move(s));
  ASSERT_TRUE(joined);
  EXPECT_EQ((*joined)->times[0].stage, first.stage);
  EXPECT_DOUBLE_EQ((*joined)->times[0].ms, first.ms + second.ms);
}

// A launch is checked before it chooses.
TEST(Specialisations, ParametersThatDependOnValuesAreRefused) {
  std::string text = kTold;
  text.replace(text.find("Y: i32[m, 8]"), 12, "Y: i32[m + ROWS, 8]");
  Specialisations s;
  for (int64_t rows : {1, 4}) s.artifacts.push_back(compiled(text, rows, "sm_80", true));
  s.choice = {0, 1};
  s.axes = {{"m", 0, {2, 8}}};
  const auto joined = join(std::move(s));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().diagnostics[0].code, DiagCode::target_unsupported);
  EXPECT_NE(joined.error().to_text().find("'tensor Y: i32[m + 4, 8]' and 'tensor Y: i32[m + 1, 8]'"),
            std::string::npos)
      << joined.error().to_text();
}

}  // namespace
}  // namespace tilegen::driver
