// Configurations in order: the same for any number of threads, all of them, with reasons.
#include "tune/rank.h"

#include <gtest/gtest.h>

#include <set>

#include "../schedule/plan_support.h"
#include "driver/artifact_cost.h"
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

// One of a long sum, whose blocks share the loop; asynchronous copies that are not all aligned; a mask.
constexpr const char* kPlanned[] = {
    "tl 1 program gemm\nparam BM in {16, 64, 128}\nparam BK in {32, 64}\nparam THREADS in {128, 256}\n"
    "tensor A: f16[64, 8192] readonly\ntensor B: f16[256, 8192] readonly\ntensor C: f16[64, 256]\n"
    "kernel gemm grid (by: ceildiv(64, BM), bx: 4) threads THREADS {\n  alloc As: shared f16[BM, BK]\n"
    "  alloc Bs: shared f16[64, BK]\n  alloc acc: fragment f32[BM, 64]\n  fill acc, 0.0f32\n"
    "  pipelined ko in 0 .. ceildiv(8192, BK) {\n    copy A[by * BM :+ BM, ko * BK :+ BK] -> As\n"
    "    copy B[bx * 64 :+ 64, ko * BK :+ BK] -> Bs\n    gemm As, Bs -> acc {transpose_b}\n  }\n"
    "  copy acc -> C[by * BM :+ BM, bx * 64 :+ 64]\n}\n",
    "tl 1 program odd\nparam BN in {32, 64}\nparam STAGES in {2, 4}\ndim m\ndim n\n"
    "tensor A: f16[m, n] readonly\ntensor B: f16[64, n] readonly\ntensor C: f32[m, 64]\n"
    "kernel k grid (b: ceildiv(m, 64)) threads 128 {\n  alloc As: shared f16[64, BN]\n"
    "  alloc Bs: shared f16[64, BN]\n  alloc acc: fragment f32[64, 64]\n  fill acc, 0.0f32\n"
    "  pipelined ko in 0 .. ceildiv(n, BN) stages STAGES {\n"
    "    copy A[b * 64 :+ 64, ko * BN + 1 :+ BN] -> As\n"
    "    copy B[0 :+ 64, ko * BN :+ BN] -> Bs\n    gemm As, Bs -> acc {transpose_b}\n  }\n"
    "  copy acc -> C[b * 64 :+ 64, 0 :+ 64]\n}\n",
    "tl 1 program mask\nparam ROWS in {16, 64}\nparam THREADS in {64, 128}\ndim m\n"
    "tensor X: f32[m, m] readonly\ntensor Y: f32[m, m]\n"
    "kernel k grid (by: ceildiv(m, ROWS), bx: ceildiv(m, 64)) threads THREADS {\n"
    "  alloc x: fragment f32[ROWS, 64]\n  copy X[by * ROWS :+ ROWS, bx * 64 :+ 64] -> x\n"
    "  parallel i, j in ROWS, 64 { x[i, j] = select(by * ROWS + i < bx * 64 + j, exp(x[i, j]), 0.0f32) }\n"
    "  copy x -> Y[by * ROWS :+ ROWS, bx * 64 :+ 64]\n}\n"};

// A rank decides no more of a plan than an estimate sees: the estimates are those of whole plans.
TEST(Rank, HasTheEstimatesOfWholePlans) {
  for (const char* text : kPlanned)
    for (const char* target : {"sm_80", "sm_90a"}) {
      const auto all = ranked(text, target, 2);
      ASSERT_TRUE(all) << all.error().to_text();
      for (const Configuration& c : *all) {
        ASSERT_FALSE(c.refused) << c.refused->to_text();
        driver::CompileOptions options;
        options.plan_only = true;
        options.sizes = {{"m", 65536}};
        const auto planned = driver::compile(c.program, schedule::target_named(target), options);
        ASSERT_TRUE(planned);
        EXPECT_FALSE((*planned)->schedule.program_hash.empty());
        EXPECT_EQ(c.microseconds, driver::estimate(**planned).microseconds())
            << text << target << " " << values_text(c.values);
      }
    }
}

}  // namespace
}  // namespace tilegen::tune
