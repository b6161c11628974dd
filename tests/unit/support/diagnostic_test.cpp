#include "support/diagnostic.h"
#include "support/diag_codes.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace tilegen {
namespace {

TEST(Status, NamesAndUnknown) {
  EXPECT_STREQ(status_name(StatusCode::ok), "ok");
  EXPECT_STREQ(status_name(StatusCode::limit_exceeded), "limit_exceeded");
  EXPECT_STREQ(status_name(static_cast<StatusCode>(12345)), "unknown");
}

TEST(Diagnostics, EveryRowIsComplete) {
  std::set<std::string> names;
  for (size_t i = 0; i < diag_count(); ++i) {
    const auto code = static_cast<DiagCode>(i);
    EXPECT_TRUE(names.insert(diag_name(code)).second) << diag_name(code);
    EXPECT_GT(std::string_view(diag_summary(code)).size(), 5u) << diag_name(code);
    EXPECT_EQ(diag_status(code) == StatusCode::ok, code >= DiagCode::slow_product)
        << "a warning alone is no failure: " << diag_name(code);
    EXPECT_STRNE(status_name(diag_status(code)), "unknown") << diag_name(code);
  }
  EXPECT_STREQ(diag_name(DiagCode::shape_mismatch), "shape_mismatch");
  EXPECT_EQ(diag_status(DiagCode::launch_rank), StatusCode::launch_argument);
  EXPECT_STREQ(diag_name(static_cast<DiagCode>(60000)), "internal_error");
}

TEST(Diagnostics, Text) {
  Diagnostic d;
  d.code = DiagCode::shape_mismatch;
  d.op = "main/ko/copy#0";
  d.message = "expected 64x32, got 64x16";
  d.hint = "widen As";
  d.location = {"gemm.tl", 12, 3};
  EXPECT_EQ(d.to_text(),
            "gemm.tl:12:3: error [shape_mismatch] main/ko/copy#0: expected 64x32, got 64x16 (widen As)");
  d.severity = Severity::warning;
  d.location = {"", 12, 0};
  d.hint.clear();
  EXPECT_EQ(d.to_text(), "12: warning [shape_mismatch] main/ko/copy#0: expected 64x32, got 64x16");
  d.severity = Severity::note;
  d.location = {"gemm.tl", 0, 0};  // line 0: not known
  d.op.clear();
  EXPECT_EQ(d.to_text(), "note [shape_mismatch] expected 64x32, got 64x16");
}

TEST(Errors, StatusIsOfTheFirstErrorNotOfANote) {
  Diagnostic note;
  note.code = DiagCode::io_failure;
  note.severity = Severity::note;
  note.message = "cache skipped";
  Error error(note);
  EXPECT_EQ(error.status(), StatusCode::internal);  // an error without a cause is a defect
  Diagnostic cause;
  cause.code = DiagCode::syntax_error;
  cause.message = "expected a name";
  error.diagnostics.push_back(cause);
  EXPECT_EQ(error.status(), StatusCode::parse_error);
  EXPECT_EQ(error.to_text(), "note [io_failure] cache skipped\nerror [syntax_error] expected a name");
}

TEST(Errors, ExpectedHoldsEither) {
  Expected<int> value(3);
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 3);
  Checked failure = Error(DiagCode::bad_name, "tl_dim", "empty name", "give a name", {"a.c", 1, 2});
  ASSERT_FALSE(failure);
  EXPECT_EQ(failure.error().to_text(), "a.c:1:2: error [bad_name] tl_dim: empty name (give a name)");
}

}  // namespace
}  // namespace tilegen
