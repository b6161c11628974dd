// Texts that include others, and what is wrong with those.
#include <gtest/gtest.h>

#include <string>

#include "golden.h"
#include "texts.h"

namespace tilegen::test {
namespace {

constexpr char kMain[] =
    "tl 1 program p\ninclude \"rows.tl\"\ndim n\ntensor X: f32[n]\n"
    "kernel k grid(b: n) {\n  parallel i in 1 { X[b + i] = twice(1) }\n}\n";

Failure of_rows(const std::string& rows, const std::string& sums = "") {
  return Texts(Named{{"rows.tl", rows}, {"lib/sums.tl", sums}}).failure(kMain);
}

TEST(IncludeErrors, TextsThatThereAreNot) {
  const Context context = make_context();
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  tl_program_parse(context.get(), kMain, sizeof kMain - 1, "main.tl", &program, &error);
  expect_golden("syntax_error.include", Failure(error));
  expect_golden("io_failure.include", Texts(Named{}).failure(kMain));
  expect_golden("bad_name.include", Texts(Named{}).failure("tl 1 program p\ninclude \"\"\n"));
  expect_golden("syntax_error.include_path", Texts(Named{}).failure("tl 1 program p\ninclude <rows.tl>\n"));
}

TEST(IncludeErrors, TextsThatAreNoParts) {
  expect_golden("misplaced_statement.include_of_a_program",
                of_rows("tl 1 program rows\nfn twice(x: f32) { return x + x }\n"));
  expect_golden("misplaced_statement.included_by_itself",
                of_rows("include \"lib/sums.tl\"\n", "let half: f32 = 0.5\ninclude \"rows.tl\"\n"));
  expect_golden("syntax_error.included_block", of_rows("dim q\nkernel r grid(b: q) {\n  if q > 2 {\n  }\n"));
  expect_golden("misplaced_statement.include",
                Texts(Named{}).failure("tl 1 program p\nkernel k grid(b: 1) {\n  include \"rows.tl\"\n}\n"));
  expect_golden("misplaced_statement.second_program",
                Texts(Named{}).failure("tl 1 program p\ntl 1 program q\n"));
}

TEST(IncludeErrors, OfNamesSayWhichTextHasThem) {
  expect_golden("duplicate_name.included", of_rows("dim n fn twice(x: f32) { return x + x }\n"));
  expect_golden("unknown_name.included",
                of_rows("include \"lib/sums.tl\"\n", "fn twice(x: f32) { return x + y }\n"));
}

TEST(IncludeErrors, Limits) {
  const Context context = make_context();
  ASSERT_EQ(tl_context_set_limit(context.get(), "text_bytes", 200, nullptr), TL_OK);
  Texts texts(Named{{"rows.tl", std::string(100, ' ')}});
  Failure failure;
  EXPECT_EQ(texts.parse(context, kMain, nullptr, &failure), TL_LIMIT_EXCEEDED);
  expect_golden("limit_bytes.included", failure);
  std::map<std::string, std::string> nested;
  for (int i = 0; i < 70; ++i)
    nested.emplace((i == 0 ? "rows" : "rows" + std::to_string(i)) + ".tl",
                   "include \"rows" + std::to_string(i + 1) + ".tl\"\n");
  expect_golden("limit_nesting.included", Texts(nested).failure(kMain));
}

}  // namespace
}  // namespace tilegen::test
