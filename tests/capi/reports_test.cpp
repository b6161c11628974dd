// What a launch tells beside results: what programs print, and assertions, the same on every executor.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "run_everywhere.h"

namespace tilegen::test {
namespace {

using Lines = std::vector<std::string>;

// `r` has copies in many threads; what one prints is printed once.
constexpr char kReports[] =
    "tl 1 program reports\n"
    "dim n\n"
    "tensor X: f32[n, 64] readonly\n"
    "tensor Y: f32[n, 64]\n"
    "kernel k grid(b: ceildiv(n, 16)) {\n"
    "  alloc x: shared f32[16, 64]\n"
    "  alloc r: fragment f32[16]\n"
    "  print \"block\", b, n\n"
    "  copy X[b * 16 :+ 16, 0 :+ 64] -> x\n"
    "  reduce x -> r {kind=max, axis=1}\n"
    "  serial t in 0 .. 2 {\n"
    "    parallel i in 16 {\n"
    "      if b * 16 + i < n and i % 8 == t {\n"
    "        print \"largest\", r[i], cast(i32, i), r[i] > 1\n"
    "      }\n"
    "    }\n"
    "    print \"round\"\n"
    "  }\n"
    "  print \"corner\" of x[0 :+ 2, 62 :+ 2]\n"
    "  parallel i, j in 16, 64 {\n"
    "    assert x[i, j] < 2, \"elements are below two\"\n"
    "    Y[b * 16 + i, j] = x[i, j] * 2\n"
    "  }\n"
    "  assert b < 1, \"there is one block\"\n"
    "}\n";

struct Told {
  tl_status status = TL_OK;
  Lines lines;
  std::string error;
  std::vector<float> results;

  bool operator==(const Told&) const = default;
};

Context listening(Lines& lines) {
  Context context = make_context();
  const auto keep = [](void* user, const char* line) { static_cast<Lines*>(user)->push_back(line); };
  EXPECT_EQ(tl_context_set_print(context.get(), keep, nullptr, &lines, nullptr), TL_OK);
  return context;
}

Program parse(const Context& context, const std::string& text) {
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &program, &error), TL_OK)
      << tl_error_message(error);
  tl_error_release(error);
  return Program(program);
}

// `executor`: a target, or "" for the interpreter.
Told run(const std::string& text, const std::string& executor, int64_t n, float largest) {
  Told told;
  const Context context = listening(told.lines);
  const Program program = parse(context, text);
  std::vector<float> x(static_cast<size_t>(n) * 64), y(x.size(), 7);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1000) / 1000;
  if (!x.empty()) x[x.size() - 2] = largest, x[130] = largest;
  const tl_arg args[] = {{TL_ARG_I64, 0, static_cast<uint64_t>(n)},
                         {TL_ARG_POINTER, TL_F32, reinterpret_cast<uint64_t>(x.data())},
                         {TL_ARG_POINTER, TL_F32, reinterpret_cast<uint64_t>(y.data())}};
  tl_launch launch{};
  launch.struct_size = sizeof launch;
  launch.context = context.get();
  tl_error* error = nullptr;
  told.status = launch_on(context, program, executor, &launch, args, 3, &error);
  told.error = tl_error_message(error);
  tl_error_release(error);
  told.results = std::move(y);
  return told;
}

constexpr const char* kCompiled[] = {"host", "sim:sm_80", "sim:sm_90a"};

TEST(Reports, AreTheSameOnEveryExecutor) {
  for (const int64_t n : {int64_t{16}, int64_t{37}})
    for (const float largest : {1.5f, 2.5f}) {
      const Told expected = run(kReports, "", n, largest);
      for (const char* executor : kCompiled) {
        const Told told = run(kReports, executor, n, largest);
        EXPECT_EQ(told.lines, expected.lines) << executor << " n = " << n;
        EXPECT_EQ(told.error, expected.error) << executor << " n = " << n;
        EXPECT_EQ(told.status, expected.status) << executor << " n = " << n;
        EXPECT_EQ(told.results, expected.results) << executor << " n = " << n;
      }
    }
}

TEST(Reports, PrintsInTheOrderOfBlocksAndIterations) {
  const Told told = run(kReports, "host", 17, 1.5f);
  const Lines expected = {"block: 0, 17  (b = 0)",
                          "largest: 0.063, 0, false  (b = 0, iteration 0 of t, i = 0)",
                          "largest: 0.575, 8, false  (b = 0, iteration 0 of t, i = 8)",
                          "round  (b = 0, iteration 0 of t)",
                          "largest: 0.127, 1, false  (b = 0, iteration 1 of t, i = 1)",
                          "largest: 0.639, 9, false  (b = 0, iteration 1 of t, i = 9)",
                          "round  (b = 0, iteration 1 of t)",
                          "corner: 0.062  (b = 0, i0 = 0, i1 = 0)",
                          "corner: 0.063  (b = 0, i0 = 0, i1 = 1)",
                          "corner: 0.126  (b = 0, i0 = 1, i1 = 0)",
                          "corner: 0.127  (b = 0, i0 = 1, i1 = 1)",
                          "block: 1, 17  (b = 1)",
                          "largest: 1.5, 0, true  (b = 1, iteration 0 of t, i = 0)",
                          "round  (b = 1, iteration 0 of t)",
                          "round  (b = 1, iteration 1 of t)",
                          "corner: 1.5  (b = 1, i0 = 0, i1 = 0)",
                          "corner: 0.087  (b = 1, i0 = 0, i1 = 1)",
                          "corner: 0  (b = 1, i0 = 1, i1 = 0)",
                          "corner: 0  (b = 1, i0 = 1, i1 = 1)"};
  EXPECT_EQ(told.lines, expected);
}

TEST(Reports, AssertionsAreTheStatus) {
  EXPECT_EQ(run(kReports, "host", 16, 1.5f).status, TL_OK);
  const Told told = run(kReports, "sim:sm_80", 40, 2.5f);
  EXPECT_EQ(told.status, TL_ASSERTION);
  EXPECT_NE(told.error.find("the assertion 'elements are below two' does not hold at b = 0, i = 2, j = 2"),
            std::string::npos)
      << told.error;
  EXPECT_NE(told.error.find("p.tl:21:5"), std::string::npos) << told.error;
  EXPECT_NE(told.error.find("the assertion 'there is one block' does not hold at b = 1"), std::string::npos)
      << told.error;
  EXPECT_EQ(told.results[130], 5);  // the kernel went on
}

TEST(Reports, SurvivePrintingAndNames) {
  const std::string text =
      "tl 1 program p\ndim n\ntensor X: f32[n, 64] readonly\ntensor Y: f32[n, 64]\n"
      "kernel k grid(b: ceildiv(n, 4)) {\n  parallel i, j in 4, 64 {\n    let x = X[b * 4 + i, j]\n"
      "    var s = 0.0f32\n    unroll t in 0 .. 3 {\n      s += x * cast(f32, t)\n"
      "      assert s < 2, \"sums are small\"\n      if j == 1 { print \"sum\", s }\n    }\n"
      "    Y[b * 4 + i, j] = s\n  }\n}\n";
  const Context context = make_context();
  tl_blob* printed = nullptr;
  ASSERT_EQ(tl_program_print(parse(context, text).get(), &printed, nullptr), TL_OK);
  const std::string again(tl_blob_data(printed));
  tl_blob_release(printed);
  EXPECT_NE(again.find(", \"sums are small\"\n"), std::string::npos) << again;
  EXPECT_NE(again.find("print \"sum\", "), std::string::npos) << again;
  ASSERT_EQ(tl_program_print(parse(context, again).get(), &printed, nullptr), TL_OK);
  EXPECT_EQ(tl_blob_data(printed), again);
  tl_blob_release(printed);
  const Told expected = run(text, "", 6, 1.5f);
  EXPECT_EQ(expected.status, TL_ASSERTION);
  EXPECT_EQ(expected.lines.size(), 3u * 8);
  for (const char* executor : kCompiled) EXPECT_EQ(run(text, executor, 6, 1.5f), expected) << executor;
}

// Machines differ in the sign of the NaN that they make.
TEST(Reports, ANaNHasOneName) {
  const std::string text =
      "tl 1 program p\ndim n\ntensor X: f32[n, 64] readonly\ntensor Y: f32[n, 64]\n"
      "kernel k grid(b: 1) {\n  parallel j in 2 {\n    let zero = X[0, 0] * cast(f32, j)\n"
      "    print \"nan\", zero / zero, copysign(nan:f32, -1.0f32), copysign(nan:f32, 1.0f32)\n  }\n}\n";
  const Lines expected = {"nan: nan, nan, nan  (j = 0)", "nan: nan, nan, nan  (j = 1)"};
  for (const char* executor : {"", "host", "sim:sm_80"})
    EXPECT_EQ(run(text, executor, 4, 1.5f).lines, expected) << executor;
}

TEST(Reports, TellsHowManyValuesItHasNotKept) {
  const std::string text =
      "tl 1 program p\ndim n\ntensor X: f32[n, 64] readonly\ntensor Y: f32[n, 64]\n"
      "kernel k grid(b: n) {\n  parallel j in 64 {\n    print \"x\", X[b, j]\n    Y[b, j] = X[b, j]\n  "
      "}\n}\n";
  const Told told = run(text, "host", 1030, 1.5f);
  ASSERT_EQ(told.lines.size(), 65536u);
  EXPECT_EQ(told.lines.back(), "(385 more values were printed than a launch keeps)");
}

TEST(Reports, OfTheBuilder) {
  Lines lines;
  const Context context = listening(lines);
  const Builder b = make_builder(context);
  tl_expr block, point;
  const int64_t four = 4;
  const tl_expr one = tl_index(b.get(), 1);
  const tl_scope kernel = tl_begin_kernel(b.get(), "k", 1, &one, 0, nullptr, &block);
  const tl_buffer tile = tl_alloc(b.get(), "t", TL_SCOPE_SHARED, TL_I32, 1, &four);
  tl_print(b.get(), "start", 0, nullptr);
  tl_fill(b.get(), tl_whole(b.get(), tile), tl_const_i64(b.get(), TL_I32, 3));
  const tl_scope loop = tl_begin_parallel(b.get(), 1, &four, nullptr, &point);
  tl_assert(b.get(), tl_binary(b.get(), TL_LT, point, tl_index(b.get(), 3)), "few points");
  tl_end(b.get(), loop);
  tl_print_tile(b.get(), "t", tl_whole(b.get(), tile));
  tl_end(b.get(), kernel);
  Program program;
  Failure failure;
  ASSERT_EQ(finish(b, &program, &failure), TL_OK) << tl_error_message(failure.get());
  tl_launch launch{};
  launch.struct_size = sizeof launch;
  launch.context = context.get();
  tl_error* error = nullptr;
  EXPECT_EQ(tl_interpret_launch(program.get(), &launch, nullptr, 0, &error), TL_ASSERTION);
  EXPECT_NE(std::string(tl_error_message(error)).find("'few points' does not hold at"), std::string::npos)
      << tl_error_message(error);
  tl_error_release(error);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], "start");
  EXPECT_EQ(lines[1].substr(0, 4), "t: 3");
}

TEST(Reports, MistakesOfTheBuilder) {
  const Context context = make_context();
  const auto mistake = [&](const auto& make) {
    const Builder b = make_builder(context);
    tl_expr block;
    const tl_expr one = tl_index(b.get(), 1);
    const tl_scope kernel = tl_begin_kernel(b.get(), "k", 1, &one, 0, nullptr, &block);
    make(b.get());
    tl_end(b.get(), kernel);
    Failure failure;
    EXPECT_NE(finish(b, nullptr, &failure), TL_OK);
    return std::string(failure ? tl_error_message(failure.get()) : "");
  };
  EXPECT_NE(mistake([](tl_builder* b) { tl_assert(b, tl_index(b, 1), "x"); }).find("is i64, not bool"),
            std::string::npos);
  EXPECT_NE(
      mistake([](tl_builder* b) { tl_print(b, "a \"b\"", 0, nullptr); }).find("printable ones of ASCII"),
      std::string::npos);
  EXPECT_NE(mistake([](tl_builder* b) {
              tl_print(b, std::string(201, 'x').c_str(), 0, nullptr);
            }).find("longer than 200"),
            std::string::npos);
}

}  // namespace
}  // namespace tilegen::test
