// Measured configurations: on the host for real, with a clock of the test's own, and from records.
#include "tune/measured_tuning.h"

#include "support/diag_codes.h"
#include "tune/device_sampler.h"
#include "tune_support.h"

namespace tilegen::tune {
namespace {

driver::CompileOptions sized(int64_t m) {
  driver::CompileOptions options;
  options.sizes = {{"m", m}};
  return options;
}

Expected<std::vector<Configuration>> tuned(const std::string& text, const char* target,
                                           const MeasureOptions& how,
                                           const driver::CompileOptions& options = sized(64)) {
  return tune_by_measuring(program_of(text), bind_of(text), schedule::target_named(target), options, how);
}

std::string listed(const std::vector<Configuration>& all) {
  std::string text;
  for (const Configuration& c : all)
    text += values_text(c.values) + (c.refused ? " refused\n" : c.measured > 0 ? " measured\n" : "\n");
  return text;
}

// A configuration takes as long as its first value, one with COLS 16 a little longer.
double time_of(const Configuration& c) {
  return static_cast<double>(c.values[0].value) + (c.values[1].value == 16 ? 0.25 : 0);
}

struct Clock {
  size_t samples = 0;
  MeasureOptions how() {
    MeasureOptions how;
    how.library = "1";
    how.sample = [this](const Configuration& c, size_t, size_t) -> Expected<double> {
      ++samples;
      return time_of(c);
    };
    return how;
  }
};

TEST(MeasuredTuning, RunsTheConfigurationsOfAHost) {
  // The first value makes a block of every element of a row, with the price of a block for each.
  const std::string text =
      "tl 1 program fill\nparam WIDTH in {1, 2048}\ntensor X: f32[64, 2048]\n"
      "kernel k grid (b: 64, c: 2048 // WIDTH) {\n"
      "  parallel i in WIDTH { X[b, c * WIDTH + i] = 1.0f32 }\n}\n";
  const auto all = tuned(text, "host", {}, {});
  ASSERT_TRUE(all) << all.error().to_text();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].values[0].value, 2048);
  EXPECT_GT((*all)[0].measured, 0);
  EXPECT_GT((*all)[1].measured, 2 * (*all)[0].measured);
  EXPECT_EQ((*all)[0].microseconds, 0);
}

TEST(MeasuredTuning, OfAHostLooksAtAllOrAtSomeAtEqualDistances) {
  Clock clock;
  MeasureOptions how = clock.how();
  const auto all = tuned(kRows, "host", how);
  ASSERT_TRUE(all);
  EXPECT_EQ(listed(*all),
            "ROWS 1, COLS 64 measured\nROWS 1, COLS 16 measured\nROWS 2, COLS 64 measured\n"
            "ROWS 2, COLS 16 measured\nROWS 8, COLS 64 measured\nROWS 8, COLS 16 measured\n");
  how.count = 3;
  const auto some = tuned(kRows, "host", how);
  ASSERT_TRUE(some);
  EXPECT_EQ(listed(*some), "ROWS 1, COLS 16 measured\nROWS 2, COLS 16 measured\nROWS 8, COLS 16 measured\n");
}

TEST(MeasuredTuning, OfTargetsWithEstimatesMeasuresTheBestFew) {
  Clock clock;
  MeasureOptions how = clock.how();
  how.count = 2;
  const auto all = tuned(kRows, "sm_90a", how);
  ASSERT_TRUE(all) << all.error().to_text();
  ASSERT_EQ(all->size(), 6u);
  size_t measured = 0;
  for (const Configuration& c : *all) measured += c.measured > 0;
  EXPECT_EQ(measured, 2u);
  EXPECT_LE((*all)[0].measured, (*all)[1].measured);
  // Those that are measured have the shortest estimates.
  EXPECT_LE(std::max((*all)[0].microseconds, (*all)[1].microseconds), (*all)[2].microseconds);
}

TEST(MeasuredTuning, WhatFailsIsLastWithItsReason) {
  MeasureOptions how;
  how.sample = [](const Configuration& c, size_t, size_t) -> Expected<double> {
    if (c.values[0].value == 1) return Error(DiagCode::driver_failure, "k", "it fell", "pick it up");
    return time_of(c);
  };
  const auto all = tuned(kRows, "host", how);
  ASSERT_TRUE(all);
  EXPECT_EQ(listed(*all),
            "ROWS 2, COLS 64 measured\nROWS 2, COLS 16 measured\nROWS 8, COLS 64 measured\n"
            "ROWS 8, COLS 16 measured\nROWS 1, COLS 16 refused\nROWS 1, COLS 64 refused\n");
  EXPECT_EQ(all->back().program, nullptr);
  how.sample = [](const Configuration&, size_t, size_t) -> Expected<double> {
    return Error(DiagCode::driver_failure, "k", "it fell", "pick it up");
  };
  const auto none = tuned(kRows, "host", how);
  ASSERT_FALSE(none);
  EXPECT_EQ(
      none.error().diagnostics[0].message,
      "of 6 configurations of 'rows' none can be measured for host; the first (ROWS 1, COLS 16): it fell");
}

TEST(MeasuredTuning, RemembersAndTakesWhatIsRemembered) {
  const Folder folder;
  Clock clock;
  MeasureOptions how = clock.how();
  how.records = folder.path;
  const ir::Program program = program_of(kRows);
  const auto best = [&](int64_t m) {
    return fastest(program, bind_of(kRows), schedule::target_named("host"), sized(m), how);
  };
  ASSERT_TRUE(best(64));
  const size_t samples = clock.samples;
  EXPECT_GT(samples, 6u);
  const auto again = best(60);  // of the same bucket
  ASSERT_TRUE(again);
  EXPECT_EQ(clock.samples, samples) << "a record was there";
  EXPECT_EQ(values_text(again->values), "ROWS 1, COLS 64");
  EXPECT_EQ(again->measured, 1);
  EXPECT_NE(again->program, nullptr);
  // All of them, with the times that they had.
  const auto all = tuned(kRows, "host", how);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 6u);
  EXPECT_EQ(all->back().measured, 8.25);
  EXPECT_EQ(clock.samples, samples);
  ASSERT_TRUE(best(100));  // of another
  EXPECT_GT(clock.samples, samples);
  EXPECT_EQ(folder.files().size(), 2u);
  // A damaged record is measured anew and replaced.
  for (const auto& file : folder.files()) std::ofstream(file) << "[]";
  const size_t before = clock.samples;
  ASSERT_TRUE(best(64));
  EXPECT_GT(clock.samples, before);
  const size_t after = clock.samples;
  ASSERT_TRUE(best(64));
  EXPECT_EQ(clock.samples, after);
}

TEST(MeasuredTuning, RemembersWhateverTheFirstConfigurationIs) {
  // A tile of 3 rows has no element 3.
  const std::string text =
      "tl 1 program p\nparam N in {3, 4, 8}\ntensor X: f32[8]\nkernel k grid (b: 1) {\n"
      "  alloc x: shared f32[N]\n  fill x, 1.0f32\n  parallel i in 1 { X[i] = x[3] }\n}\n";
  const Folder folder;
  MeasureOptions how;
  how.records = folder.path;
  size_t samples = 0;
  how.sample = [&](const Configuration& c, size_t, size_t) -> Expected<double> {
    ++samples;
    return static_cast<double>(c.values[0].value);
  };
  for (int i = 0; i < 2; ++i) {
    const auto all = tuned(text, "host", how, {});
    ASSERT_TRUE(all) << all.error().to_text();
    EXPECT_EQ((*all)[0].values[0].value, 4);
    EXPECT_EQ(samples, kRounds + kAllRounds) << "8 rests after two rounds, and nothing runs again";
  }
}

TEST(MeasuredTuning, ARecordOfFewerThanAreAskedForIsMeasuredAnew) {
  const Folder folder;
  Clock clock;
  MeasureOptions how = clock.how();
  how.records = folder.path;
  how.count = 2;
  ASSERT_TRUE(tuned(kRows, "sm_90a", how));
  size_t samples = clock.samples;
  how.count = 1;
  const auto fewer = tuned(kRows, "sm_90a", how);
  ASSERT_TRUE(fewer);
  EXPECT_EQ(clock.samples, samples);
  how.count = 4;
  ASSERT_TRUE(tuned(kRows, "sm_90a", how));
  EXPECT_GT(clock.samples, samples);
  samples = clock.samples;
  how.count = 100;  // more than there are
  ASSERT_TRUE(tuned(kRows, "sm_90a", how));
  EXPECT_GT(clock.samples, samples);
  samples = clock.samples;
  ASSERT_TRUE(tuned(kRows, "sm_90a", how));
  EXPECT_EQ(clock.samples, samples);
}

TEST(MeasuredTuning, RefusesWhatHasNoClockOrNoDevice) {
  const auto simulated = tuned(kRows, "sim:sm_80", {});
  ASSERT_FALSE(simulated);
  EXPECT_NE(simulated.error().diagnostics[0].message.find("no clock"), std::string::npos);
  Cancellation cancelled;
  cancelled.request();
  driver::CompileOptions options = sized(64);
  options.cancellation = &cancelled;
  const auto stopped = tuned(kRows, "host", {}, options);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().status(), StatusCode::cancelled);
}

TEST(RandomInputs, AreNeverZeroAndAsLargeAsTheirTensors) {
  const std::string text =
      "tl 1 program p\ndim m\nscalar s: f32\nscalar n: i32\ntensor A: f16[m, 3] readonly\n"
      "tensor B: i32[m] strides [4]\ntensor C: i8[m]\ntensor E: f32[0, m]\n"
      "kernel k grid (b: 1) { parallel i in 8 { B[i] = 1i32 } }\n";
  const auto program = std::make_shared<const ir::Program>(program_of(text));
  const auto inputs =
      RandomInputs::make({&program, 1}, schedule::target_named("host"), {{"m", 5000}, {"n", 7}}, 0);
  ASSERT_TRUE(inputs) << inputs.error().to_text();
  EXPECT_EQ((*inputs)->sets(), RandomInputs::kMaxSets);
  const auto first = (*inputs)->arguments(0, 0);
  ASSERT_EQ(first.size(), 7u);
  EXPECT_EQ(first[0].bits, 5000u);
  EXPECT_EQ(first[2].bits, 7u);
  EXPECT_EQ(first[6].bits, 0u) << "a tensor without elements has no address";
  const uint64_t a = first[3].bits, b = first[4].bits, c = first[5].bits;
  EXPECT_NE((*inputs)->arguments(0, 1)[3].bits, a);
  size_t zeros = 0;
  for (int i = 0; i < 15000; ++i) zeros += (reinterpret_cast<const uint16_t*>(a)[i] & 0x7fff) == 0;
  EXPECT_LT(zeros, 15u);
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (int i = 0; i < 4 * 4999 + 1; ++i) {
    least = std::min<int64_t>(least, reinterpret_cast<const int32_t*>(b)[i]);
    most = std::max<int64_t>(most, reinterpret_cast<const int32_t*>(b)[i]);
  }
  EXPECT_EQ(least, 0);
  EXPECT_EQ(most, 15);
  EXPECT_LT(*std::min_element(reinterpret_cast<const int8_t*>(c), reinterpret_cast<const int8_t*>(c) + 5000),
            0);
}

TEST(RandomInputs, RefuseSizesThatConfigurationsDoNotShare) {
  const std::string text =
      "tl 1 program p\nparam N in {96, 128}\ndim m divisible N\ntensor A: f32[m]\n"
      "kernel k grid (b: m // N) { parallel i in N { A[b * N + i] = 1.0f32 } }\n";
  const auto open = tuned(text, "host", {}, {});
  ASSERT_FALSE(open);
  EXPECT_NE(open.error().diagnostics[0].message.find("dim 'm'"), std::string::npos) << open.error().to_text();
  EXPECT_TRUE(tuned(text, "host", {}, sized(384)));
  // A size that the facts of one refuse is that one's refusal.
  const auto one = tuned(text, "host", {}, sized(128));
  ASSERT_TRUE(one) << one.error().to_text();
  EXPECT_FALSE((*one)[0].refused);
  ASSERT_TRUE((*one)[1].refused);
  EXPECT_EQ((*one)[1].values[0].value, 96);
  const auto huge = tuned(
      "tl 1 program p\ndim m\ntensor A: f64[m, m]\nkernel k grid (b: 1) { parallel i in 8 { A[i, i] = 1.0f64 "
      "} }\n",
      "host", {}, sized(int64_t{1} << 40));
  ASSERT_FALSE(huge);
  EXPECT_NE(huge.error().diagnostics[0].message.find("overflows"), std::string::npos);
}

}  // namespace
}  // namespace tilegen::tune
