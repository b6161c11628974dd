// Programs that include other texts: what the caller's function is asked, what is kept, and where diagnostics
// say that something stands.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "run_everywhere.h"
#include "texts.h"

namespace tilegen::test {
namespace {

constexpr char kMain[] =
    "tl 1 program p\ninclude \"rows.tl\"\ninclude \"sums.tl\"\ndim n\ntensor X: f32[n]\n"
    "kernel k grid(b: n) threads 32 {\n  parallel i in 1 { X[b + i] = twice(SCALE) }\n}\n";
const std::map<std::string, std::string> kTexts = {
    {"rows.tl", "param BM in {64, 128}\nlet SCALE: f32 = 1.5\n"},
    {"sums.tl", "include \"rows.tl\" fn twice(x: f32) -> f32 { return x + x }\n"}};

std::string printed(const Program& program) {
  tl_blob* text = nullptr;
  EXPECT_EQ(tl_program_print(program.get(), &text, nullptr), TL_OK);
  const Blob owner(text);
  return tl_blob_data(text);
}

TEST(Include, ATextStandsInThePlaceOfItsFirstInclude) {
  const Context context = make_context();
  Texts texts(kTexts);
  Program program;
  Failure failure;
  ASSERT_EQ(texts.parse(context, kMain, &program, &failure), TL_OK) << tl_error_message(failure.get());
  const std::vector<std::string> asked = {"1 main.tl:2:9 rows.tl", "1 main.tl:3:9 sums.tl",
                                          "2 sums.tl:1:9 rows.tl"};
  EXPECT_EQ(texts.asked, asked);
  const Program inlined =
      parsed(context,
             "tl 1 program p  ; all of it\nparam BM in {64, 128}\nlet SCALE: f32 = 1.5\n"
             "fn twice(x: f32) -> f32 { return x + x }\ndim n\ntensor X: f32[n]\n"
             "kernel k grid(b: n) threads 32 { parallel i in 1 { X[b + i] = twice(SCALE) } }\n");
  EXPECT_EQ(printed(program), printed(inlined));
  EXPECT_STREQ(tl_program_hash(program.get()), tl_program_hash(inlined.get()));
  EXPECT_EQ(printed(program).find("include"), std::string::npos);
}

TEST(Include, BindingAndTuningAskNobody) {
  const Context context = make_context();
  Program program;
  {
    Texts texts(kTexts);
    ASSERT_EQ(texts.parse(context, kMain, &program, nullptr), TL_OK);
  }
  const char* name = "BM";
  const int64_t value = 128;
  tl_program* bound = nullptr;
  ASSERT_EQ(tl_program_bind(context.get(), program.get(), &name, &value, 1, &bound, nullptr),
            TL_INVALID_ARGUMENT);  // the text names BM nowhere
  Texts texts(Named{{"rows.tl", "param BM in {64, 128}\n"}});
  ASSERT_EQ(
      texts.parse(context,
                  "tl 1 program p\ninclude \"rows.tl\"\ndim n\ntensor X: f32[n]\n"
                  "kernel k grid(b: ceildiv(n, BM)) threads BM { parallel i in BM { X[b * BM + i] = 1 } }\n",
                  &program, nullptr),
      TL_OK);
  texts.asked.clear();
  ASSERT_EQ(tl_program_bind(context.get(), program.get(), &name, &value, 1, &bound, nullptr), TL_OK);
  const Program again(bound);
  EXPECT_NE(printed(again).find("grid (b: (n + 127) // 128)"), std::string::npos) << printed(again);
  tl_program* twice = nullptr;
  const int64_t first_value = 64;
  ASSERT_EQ(tl_program_bind(context.get(), bound, &name, &first_value, 1, &twice, nullptr), TL_OK);
  EXPECT_STREQ(tl_program_hash(twice), tl_program_hash(program.get()));
  tl_program_release(twice);
  tl_target* target = nullptr;
  ASSERT_EQ(tl_target_parse("sm_80", &target, nullptr), TL_OK);
  const Target owned(target);
  tl_tuning* tuning = nullptr;
  ASSERT_EQ(tl_tune(context.get(), program.get(), target, nullptr, &tuning, nullptr), TL_OK);
  EXPECT_EQ(tl_tuning_count(tuning), 2u);
  tl_tuning_release(tuning);
  EXPECT_TRUE(texts.asked.empty());
}

TEST(Include, DiagnosticsOfEveryStageSayWhereATextIsIncluded) {
  const Context context = make_context();
  const std::string main = "tl 1 program p\ninclude \"kernels.tl\"\n";
  const auto expect_place = [](const Failure& failure, const char* place, const char* code) {
    ASSERT_TRUE(failure);
    const tl_diagnostic d = first(failure);
    EXPECT_STREQ(d.code, code);
    EXPECT_STREQ(d.file, "kernel.tl");
    EXPECT_STREQ(d.included_at, "kernels.tl:2:9, main.tl:2:9");
    const std::string message = tl_error_message(failure.get());
    EXPECT_EQ(message.find(place), 0u) << message;
    EXPECT_NE(message.find(", included at kernels.tl:2:9, main.tl:2:9"), std::string::npos) << message;
  };
  const auto texts = [](const std::string& body, const std::string& threads) {
    return Texts(
        {{"kernels.tl", "dim n\ninclude \"kernel.tl\""},
         {"kernel.tl", "tensor X: f32[n, 8]\nkernel k grid(b: n)" + threads + " {\n  " + body + "\n}\n"}});
  };
  expect_place(texts("X[b, 0] = y", "").failure(main), "kernel.tl:3:13: ", "unknown_name");
  expect_place(texts("alloc x: shared f32[8]\n  parallel i in 9 { x[i] = 1 }", "").failure(main),
               "kernel.tl:4:", "index_out_of_bounds");
  Program program;
  ASSERT_EQ(
      texts("parallel i in 8 {\n    assert n < 1, \"no rows\" }", "").parse(context, main, &program, nullptr),
      TL_OK);
  std::vector<float> x(8);
  const tl_arg args[] = {{TL_ARG_I64, 0, 1}, {TL_ARG_POINTER, TL_F32, reinterpret_cast<uint64_t>(x.data())}};
  for (const char* executor : {"", "host", "sim:sm_80", "sim:sm_90a"}) {
    tl_error* error = nullptr;
    EXPECT_EQ(launch_on(context, program, executor, nullptr, args, 2, &error), TL_ASSERTION) << executor;
    expect_place(Failure(error), "kernel.tl:4:", "assertion_failed");
  }
  ASSERT_EQ(
      texts("alloc x: shared f32[8, 8192]\n  fill x, 0\n  copy x[0 :+ 1, 0 :+ 8] -> X[b :+ 1, 0 :+ 8]", "")
          .parse(context, main, &program, nullptr),
      TL_OK);
  tl_target* target = nullptr;
  tl_artifact* artifact = nullptr;
  tl_error* error = nullptr;
  ASSERT_EQ(tl_target_parse("sm_80", &target, nullptr), TL_OK);
  const Target owned(target);
  EXPECT_EQ(tl_compile(context.get(), program.get(), target, nullptr, &artifact, &error), TL_LIMIT_EXCEEDED);
  expect_place(Failure(error), "kernel.tl:", "limit_memory");
}

TEST(Include, ADiagnosticOfTheFirstVersionEndsBehindItsFile) {
  const Failure failure = Texts(Named{{"a.tl", "let x = y\n"}}).failure("tl 1 program p\ninclude \"a.tl\"\n");
  tl_diagnostic d;
  std::memset(&d, 0xee, sizeof d);
  d.struct_size = offsetof(tl_diagnostic, included_at);
  ASSERT_EQ(tl_error_diagnostic(failure.get(), 0, &d), TL_OK);
  EXPECT_STREQ(d.file, "a.tl");
  uint64_t untouched = 0;
  std::memcpy(&untouched, &d.included_at, sizeof untouched);
  EXPECT_EQ(untouched, 0xeeeeeeeeeeeeeeeeu);
  const Failure plain = Texts(Named{}).failure("tl 1 program p\nlet x = y\n");
  EXPECT_STREQ(first(plain).included_at, "");
}

TEST(Include, OptionsAreCheckedAndMayBeLeftOut) {
  const Context context = make_context();
  const std::string plain = "tl 1 program p\nparam N in {1, 2}\nkernel k grid(b: N) { }\n";
  tl_program* program = nullptr;
  EXPECT_EQ(tl_program_parse_with(context.get(), plain.data(), plain.size(), nullptr, &program, nullptr),
            TL_OK);
  tl_program_release(program);
  tl_parse_options how{};
  EXPECT_EQ(tl_program_parse_with(context.get(), plain.data(), plain.size(), &how, &program, nullptr),
            TL_INVALID_ARGUMENT);  // struct_size
  how.struct_size = sizeof how;
  how.param_count = 1;
  EXPECT_EQ(tl_program_parse_with(context.get(), plain.data(), plain.size(), &how, &program, nullptr),
            TL_INVALID_ARGUMENT);  // no names
  const char* name = "N";
  const int64_t value = 2;
  how.param_names = &name;
  how.param_values = &value;
  ASSERT_EQ(tl_program_parse_with(context.get(), plain.data(), plain.size(), &how, &program, nullptr), TL_OK);
  tl_compile_param_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(tl_program_compile_param(program, 0, &info), TL_OK);
  EXPECT_EQ(info.value, 2);
  tl_program_release(program);
  for (const bool without_context : {true, false}) {
    EXPECT_EQ(
        tl_program_parse_with(without_context ? nullptr : context.get(), nullptr, 0, &how, &program, nullptr),
        TL_INVALID_ARGUMENT);
    EXPECT_EQ(
        tl_text_format_with(without_context ? nullptr : context.get(), nullptr, 0, &how, nullptr, nullptr),
        TL_INVALID_ARGUMENT);
  }
}

std::string formatted(const std::string& text, Texts& texts, std::string* mistake = nullptr) {
  const Context context = make_context();
  const tl_parse_options how = texts.options();
  tl_blob* blob = nullptr;
  tl_error* error = nullptr;
  tl_text_format_with(context.get(), text.data(), text.size(), &how, &blob, &error);
  const Blob owner(blob);
  const Failure failure(error);
  if (mistake) *mistake = tl_error_message(error);
  return blob ? tl_blob_data(blob) : "";
}

TEST(Include, TextsAreLaidOutAsTheyStand) {
  Texts texts(kTexts);
  EXPECT_EQ(formatted("tl 1 program p ;x\ninclude   \"rows.tl\" ; tiles\ndim n\ntensor X:f32[n]\n"
                      "kernel k grid(b:n){X[b]=SCALE}\n",
                      texts),
            "tl 1 program p     ;x\ninclude \"rows.tl\"  ; tiles\ndim n\ntensor X: f32[n]\n"
            "kernel k grid (b: n) { X[b] = SCALE }\n");
  EXPECT_EQ(formatted("include\"sums.tl\"\nfn f( x:f32 ){return twice( x )}\n", texts),
            "include \"sums.tl\"\nfn f(x: f32) { return twice(x) }\n");
  std::string mistake;
  EXPECT_EQ(formatted("fn f(x: f32) { return twice(x) }\n", texts, &mistake), "");
  EXPECT_NE(mistake.find("unknown name 'twice'"), std::string::npos) << mistake;
}

TEST(Include, TextsThatIncludeWithoutEndAreRefused) {
  const Context context = make_context();
  struct Endless {
    int count = 0;
    std::string text;
  } endless;
  tl_parse_options how{};
  how.struct_size = sizeof how;
  how.include_user = &endless;
  how.include = [](void* user, tl_included* included) {
    auto& self = *static_cast<Endless*>(user);
    self.text = "include \"" + std::to_string(++self.count) + "\"\n";
    included->text = self.text.data();
    included->size = self.text.size();
  };
  const std::string main = "tl 1 program p\ninclude \"0\"\n";
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse_with(context.get(), main.data(), main.size(), &how, &program, &error),
            TL_LIMIT_EXCEEDED);
  const Failure failure(error);
  EXPECT_STREQ(first(failure).code, "limit_nesting");
  EXPECT_STREQ(first(failure).included_at, "62:1:9, 61:1:9, 60:1:9, 59:1:9, ...");
  EXPECT_EQ(endless.count, 64);
}

TEST(Include, ACancelledCallAsksForNoFurtherText) {
  const Context context = make_context();
  static int count;
  count = 0;
  ASSERT_EQ(tl_context_set_cancel(
                context.get(), [](void*) -> int32_t { return count > 0; }, nullptr, nullptr, nullptr),
            TL_OK);
  tl_parse_options how{};
  how.struct_size = sizeof how;
  how.include = [](void*, tl_included* included) {
    ++count;
    included->text = "include \"again\"\n";
    included->size = 16;
  };
  const std::string main = "tl 1 program p\ninclude \"a\"\n";
  tl_program* program = nullptr;
  EXPECT_EQ(tl_program_parse_with(context.get(), main.data(), main.size(), &how, &program, nullptr),
            TL_CANCELLED);
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace tilegen::test
