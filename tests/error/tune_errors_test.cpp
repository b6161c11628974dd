// Mistakes with tuning: options, functions that measure, sizes, devices, configurations of which none runs.
#include <gtest/gtest.h>

#include <string>

#include "golden.h"

namespace tilegen::test {
namespace {

constexpr char kFill[] =
    "tl 1 program fill\nparam BM in {64, 128}\ndim m\ntensor X: f32[m]\n"
    "kernel k grid (b: ceildiv(m, BM)) { parallel i in BM { X[b * BM + i] = 1.0f32 } }\n";
constexpr char kDivided[] =
    "tl 1 program divided\nparam BM in {96, 128}\ndim m divisible BM\ntensor X: f32[m]\n"
    "kernel k grid (b: m // BM) { parallel i in BM { X[b * BM + i] = 1.0f32 } }\n";

struct Tuner {
  Context context = make_context();
  Program program;
  Target target;
  Options options;

  explicit Tuner(const std::string& text, const char* target_name = "host") {
    tl_program* p = nullptr;
    EXPECT_EQ(tl_program_parse(context.get(), text.data(), text.size(), nullptr, &p, nullptr), TL_OK);
    program.reset(p);
    tl_target* t = nullptr;
    EXPECT_EQ(tl_target_parse(target_name, &t, nullptr), TL_OK);
    target.reset(t);
    tl_options* o = nullptr;
    EXPECT_EQ(tl_options_create(&o, nullptr), TL_OK);
    options.reset(o);
  }
  Tuner& with(const char* name, const char* value) {
    EXPECT_EQ(tl_options_set_str(options.get(), name, value, nullptr), TL_OK);
    return *this;
  }
  void tuned(const std::string& golden) {
    tl_error* error = nullptr;
    tl_tuning* tuning = nullptr;
    EXPECT_NE(tl_tune(context.get(), program.get(), target.get(), options.get(), &tuning, &error), TL_OK);
    EXPECT_EQ(tuning, nullptr);
    expect_golden(golden, Failure(error));
  }
  void tuned_by(tl_measure_fn measure, const std::string& golden) {
    tl_error* error = nullptr;
    tl_tuning* tuning = nullptr;
    EXPECT_NE(tl_tune_measured(context.get(), program.get(), target.get(), options.get(), measure, nullptr,
                               &tuning, &error),
              TL_OK);
    EXPECT_EQ(tuning, nullptr);
    expect_golden(golden, Failure(error));
  }
};

TEST(TuneErrors, Options) {
  Tuner(kFill).with("tune", "guess").tuned("unknown_option.tune");
  Tuner(kFill, "sm_90a").with("sizes", "q=4").tuned("unknown_option.sizes");
}

TEST(TuneErrors, WhatCannotBeMeasured) {
  Tuner(kFill).tuned("target_unsupported.estimates");
  Tuner(kFill, "sim:sm_80").with("tune", "measure").tuned("target_unsupported.simulated_time");
  Tuner(kDivided).with("tune", "measure").tuned("launch_fact.sizes_differ");
  Tuner(kDivided).with("tune", "measure").with("sizes", "m=100").tuned("launch_fact.no_configuration");
}

TEST(TuneErrors, FunctionsThatMeasure) {
  Tuner(kFill).tuned_by(nullptr, "null_argument.measure");
  Tuner(kFill).tuned_by([](void*, tl_measurement* m) { m->microseconds = -1; }, "bad_enum.microseconds");
  Tuner(kFill).tuned_by([](void*, tl_measurement* m) { m->refusal = "it did not end"; },
                        "launch_limit.measured");
}

}  // namespace
}  // namespace tilegen::test
