// Configurations in order: the same for any number of threads, all of them, with reasons.
#include "tune/rank.h"

#include <gtest/gtest.h>

#include <set>

#include "../schedule/plan_support.h"
#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::tune {
namespace {

constexpr char kText[] =
    "tl 1 program copy\nparam ROWS in {16, 32, 64, 4096}\nparam THREADS in {64, 128, 256, 2048}\ndim m\n"
    "tensor X: f32[m, 64] readonly\ntensor Y: f32[m, 64]\nkernel k grid (b: ceildiv(m, ROWS)) threads "
    "THREADS "
    "{\n  alloc x: shared f32[ROWS, 64]\n  copy X[b * ROWS :+ ROWS, 0 :+ 64] -> x\n"
    "  copy x -> Y[b * ROWS :+ ROWS, 0 :+ 64]\n}\n";

Expected<std::vector<Configuration>> ranked(const std::string& text, const char* target, unsigned threads,
                                            const Cancellation* cancellation = nullptr) {
  const auto bind =
      [&](const std::vector<ir::ParamBinding>& values) -> Expected<std::shared_ptr<const ir::Program>> {
    auto program = ir::parse_program(text, "", Limits{}, nullptr, values);
    if (!program) return program.error();
    return std::make_shared<const ir::Program>(std::move(*program));
  };
  const auto program = ir::parse_program(text, "", Limits{});
  driver::CompileOptions options;
  options.sizes = {{"m", 65536}};
  options.cancellation = cancellation;
  return rank(*program, bind, schedule::target_named(target), options, threads);
}

std::string listed(const std::vector<Configuration>& all) {
  std::string text;
  for (const Configuration& c : all)
    text += values_text(c.values) + ": " +
            (c.refused ? c.refused->to_text() : std::to_string(c.microseconds)) + "\n";
  return text;
}

TEST(Rank, IsTheSameForAnyNumberOfThreads) {
  const auto one = ranked(kText, "sm_90a", 1);
  ASSERT_TRUE(one);
  for (unsigned threads : {0u, 2u, 3u, 8u, 1000u}) {
    const auto many = ranked(kText, "sm_90a", threads);
    ASSERT_TRUE(many);
    EXPECT_EQ(listed(*one), listed(*many)) << threads;
  }
}

TEST(Rank, HasEveryConfigurationOnceAndThoseThatAreRefusedLast) {
  const auto all = ranked(kText, "sm_80", 2);
  ASSERT_TRUE(all);
  std::set<std::string> values;
  size_t refused = 0;
  double before = 0;
  for (const Configuration& c : *all) {
    values.insert(values_text(c.values));
    // 4096 rows of 256 bytes are more than shared memory, 2048 threads more than a block.
    EXPECT_EQ(c.refused.has_value(), c.values[0].value == 4096 || c.values[1].value == 2048);
    EXPECT_EQ(c.refused.has_value(), c.program == nullptr);
    if (c.refused) {
      ++refused;
      continue;
    }
    EXPECT_EQ(refused, 0u) << "one that is planned stands behind one that is refused";
    EXPECT_GE(c.microseconds, before);
    before = c.microseconds;
  }
  EXPECT_EQ(values.size(), 16u);
  EXPECT_EQ(refused, 7u);
}

TEST(Rank, RefusesWhatHasNoOrder) {
  EXPECT_EQ(ranked(kText, "host", 1).error().diagnostics[0].code, DiagCode::target_unsupported);

  std::string many(kText), domain = "{16";
  for (int i = 2; i <= 64; ++i) domain += ", " + std::to_string(16 * i);
  many.replace(many.find("{16, 32"), std::string("{16, 32, 64, 4096}").size(), domain + "}");
  many.replace(many.find("{64, 128"), std::string("{64, 128, 256, 2048}").size(), domain + "}");
  const auto too_many = ranked(many, "sm_90a", 1);
  ASSERT_FALSE(too_many);
  EXPECT_EQ(too_many.error().diagnostics[0].code, DiagCode::limit_nodes);

  Cancellation cancelled;
  cancelled.request();
  const auto stopped = ranked(kText, "sm_90a", 2, &cancelled);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().status(), StatusCode::cancelled);
}

TEST(Rank, OfAProgramWithoutParametersIsThatProgram) {
  std::string plain = kText;
  for (const char* p : {"param ROWS in {16, 32, 64, 4096}\n", "param THREADS in {64, 128, 256, 2048}\n"})
    plain.erase(plain.find(p), std::string(p).size());
  for (size_t at; (at = plain.find("ROWS")) != plain.npos;) plain.replace(at, 4, "32");
  for (size_t at; (at = plain.find("THREADS")) != plain.npos;) plain.replace(at, 7, "128");
  const auto one = ranked(plain, "sm_90a", 4);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->size(), 1u);
  EXPECT_TRUE((*one)[0].values.empty());
}

}  // namespace
}  // namespace tilegen::tune
