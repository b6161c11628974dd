// What is refused of optional tensors, in the words that a user sees.
#include <gtest/gtest.h>

#include <string>

#include "golden.h"

namespace tilegen::test {
namespace {

Failure parse_failure(const std::string& text) {
  const Context context = make_context();
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &program, &error);
  tl_program_release(program);
  return Failure(error);
}

std::string with_optional(const std::string& body) {
  return "tl 1 program p\ntensor A: f32[32]\ntensor X: f32[32] readonly optional\nkernel k grid(b: 1) {\n  "
         "alloc t: shared "
         "f32[32]\n" +
         body + "}\n";
}

TEST(OptionalTensors, Text) {
  expect_golden("unguarded_access.copy", parse_failure(with_optional("  copy X -> t\n  copy t -> A\n")));
  expect_golden(
      "unguarded_access.other_side",
      parse_failure(with_optional("  parallel i in 32 { A[i] = select(present(X), 0.0, X[i]) }\n")));
  expect_golden("misplaced_statement.present_in_every_launch",
                parse_failure(with_optional("  if present(A) { fill t, 0.0 }\n")));
  expect_golden("unknown_name.present", parse_failure(with_optional("  if present(Y) { fill t, 0.0 }\n")));
  expect_golden("syntax_error.present", parse_failure(with_optional("  if present(X[0]) { fill t, 0.0 }\n")));
}

}  // namespace
}  // namespace tilegen::test
