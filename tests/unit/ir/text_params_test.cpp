// Compile-time parameters of the text form: values, printing, and what is refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

constexpr char kBody[] =
    "tensor A: f32[4096]\n"
    "kernel k grid (b: ceildiv(4096, BM)) threads BM {\n"
    "  alloc t: shared f32[BM - 32, max(BM, 2) // 2]\n"
    "  parallel i in BM { A[b * BM + i] = 0.0f32 }\n"
    "}\n";

std::string with(const std::string& declaration) { return "tl 1 program p\n" + declaration + "\n" + kBody; }

Expected<Program> read(const std::string& text, const std::vector<ParamBinding>& bindings = {},
                       const Limits& limits = {}) {
  return parse_program(text, "p.tl", limits, nullptr, bindings);
}

TEST(TextParams, FoldToTheBoundValueAndRoundTrip) {
  const std::string text = with("param BM in {64, 128}");
  auto first = read(text), second = read(text, {{"BM", 128}});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->compile_params[0].value, 64);
  EXPECT_EQ(second->kernels[0].threads, 128);
  EXPECT_EQ(second->tile_shape(BufferId(1)), (std::vector<int64_t>{96, 64}));
  EXPECT_NE(program_hash(*first), program_hash(*second));
  const std::string printed = print_program(*second);
  EXPECT_NE(printed.find("param BM = 128 in {64, 128}\n"), std::string::npos) << printed;
  auto again = read(printed);
  ASSERT_TRUE(again);
  EXPECT_EQ(print_program(*again), printed);
  EXPECT_EQ(program_hash(*again), program_hash(*second));
  EXPECT_FALSE(read(printed, {{"BM", 64}}));  // its body is folded
}

TEST(TextParams, ValuesMayBeTypes) {
  const std::string text =
      "tl 1 program p\nparam T in {f16, f32}\nparam A = i32 in {i32, i64}\ntensor X: T[64]\n"
      "fn up(x: T) -> T { return x + cast(T, 1) }\n"
      "kernel k grid (b: 1) {\n  alloc s: shared T[64]\n  copy X -> s\n  view u = reinterpret(s, T)\n"
      "  parallel i in 64 { let v: T = u[i] X[i] = cast(T, cast(A, up(v))) }\n}\n";
  const auto half = read(text), single = read(text, {{"T", 3}});
  ASSERT_TRUE(half && single) << half.error().to_text();
  EXPECT_EQ(half->compile_params[0].domain, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(half->buffers[0].type, DType::f16);
  EXPECT_EQ(single->buffers[0].type, DType::f32);
  std::string plain = text;
  for (const auto& [name, type] : {std::pair("T", "f32"), std::pair("A", "i32")})
    for (size_t at = plain.find(name); at != plain.npos; at = plain.find(name, at + 1))
      if (std::string("[( \n:").find(plain[at - 1]) != std::string::npos && !std::isalpha(plain[at + 1]))
        plain.replace(at, 1, type);
  plain.erase(plain.find("param"), plain.find("tensor") - plain.find("param"));
  const auto without = read(plain);
  ASSERT_TRUE(without) << plain << without.error().to_text();
  const auto body = [](const std::string& printed) { return printed.substr(printed.find("tensor")); };
  EXPECT_EQ(body(print_program(*single)), body(print_program(*without)));
  const auto again = read(print_program(*single));
  ASSERT_TRUE(again) << again.error().to_text();
  EXPECT_EQ(program_hash(*again), program_hash(*single));
}

void refused(DiagCode code, const std::string& part, const Expected<Program>& read) {
  ASSERT_FALSE(read) << part;
  const Diagnostic& d = read.error().diagnostics[0];
  EXPECT_EQ(d.code, code) << d.message;
  EXPECT_NE((d.message + d.hint).find(part), std::string::npos) << d.message << " / " << d.hint;
  EXPECT_FALSE(d.hint.empty());
  EXPECT_EQ(d.location.file, "p.tl");
}

TEST(TextParams, Refusals) {
  const std::string good = with("param BM in {64, 128}");
  Limits narrow;
  narrow.domain_values = 2;
  refused(DiagCode::bad_domain, "empty", read(with("param BM in {}")));
  refused(DiagCode::bad_domain, "64 twice", read(with("param BM in {64, 64}")));
  refused(DiagCode::bad_domain, "{64, 128}", read(with("param BM = 96 in {64, 128}")));
  refused(DiagCode::duplicate_name, "BM", read(with("dim BM\nparam BM in {64}")));
  refused(DiagCode::limit_nodes, "more than 2", read(with("param BM in {64, 128, 256}"), {}, narrow));
  refused(DiagCode::bad_binding, "bound to 32", read(good, {{"BM", 32}}));
  refused(DiagCode::bad_binding, "it has BM", read(good, {{"BQ", 64}}));
  refused(DiagCode::bad_binding, "bound twice", read(good, {{"BM", 64}, {"BM", 64}}));
  refused(DiagCode::bad_shape, "BM = 32", read(with("param BM in {64, 32}"), {{"BM", 32}}));
  refused(DiagCode::syntax_error, "no integer constant", read(with("dim BM")));
  refused(DiagCode::bad_domain, "has types and integers, found number 64 behind f16",
          read(with("param BM in {f16, 64}")));
  refused(DiagCode::bad_domain, "f16 twice", read(with("param BM in {f16, f16}")));
  refused(DiagCode::bad_domain, "is 1, expected a value of its domain {f16}",
          read(with("param BM = 1 in {f16}")));
  refused(DiagCode::bad_binding, "bound to 999, expected a value of its domain {f16}",
          read(with("param BM in {f16}"), {{"BM", 999}}));
  refused(DiagCode::syntax_error, "which is a type", read(with("param BM in {f16}")));
}

}  // namespace
}  // namespace tilegen::ir
