// What the parser says about texts that are wrong: code and place of every error, and a way out.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "support/diag_codes.h"
#include "text_samples.h"

namespace tilegen::ir {
namespace {

using enum DiagCode;

struct Wrong {
  const char* text;
  DiagCode code;
  uint32_t line, column;
  const char* said = "";  // part of the message or hint
};

void expect_error(const std::string& text, const Wrong& w) {
  Expected<Program> p = parse_program(text, "wrong.tl", Limits());
  ASSERT_FALSE(p) << text;
  const Diagnostic& d = p.error().diagnostics.front();
  SCOPED_TRACE(text + "\n" + p.error().to_text());
  EXPECT_STREQ(diag_name(d.code), diag_name(w.code));
  EXPECT_EQ(d.location.line, w.line);
  EXPECT_EQ(d.location.column, w.column);
  EXPECT_EQ(d.location.file, "wrong.tl");
  EXPECT_EQ(d.severity, Severity::error);
  EXPECT_EQ(d.stage, "parse");
  EXPECT_FALSE(d.message.empty());
  EXPECT_FALSE(d.hint.empty());
  EXPECT_NE((d.message + " | " + d.hint).find(w.said), std::string::npos) << "wanted: " << w.said;
  EXPECT_EQ(p.error().diagnostics.size(), 1u);  // one mistake, one report
}

TEST(TextErrors, Program) {
  const Wrong cases[] = {
      {"", syntax_error, 1, 1, "expected 'tl'"},
      {"; only a remark", syntax_error, 1, 16, "found end of text"},
      {"program t", syntax_error, 1, 1},
      {"tl 2 program t", syntax_error, 1, 4, "version 1"},
      {"tl 1 kernel", syntax_error, 1, 6, "expected 'program'"},
      {"tl 1 program 7", syntax_error, 1, 14, "program's name"},
      {"tl 1 program t", syntax_error, 1, 15, "a kernel"},
      {"tl 1 program t\ndim n\n", syntax_error, 3, 1, "a kernel"},
      {"tl 1 program t\nkernal k grid (b: 1) {}", syntax_error, 2, 1, "did you mean 'kernel'?"},
      {"tl 1 program t\nkernel k grid (b: 1) {}\n}", syntax_error, 3, 1, "remove this '}'"},
      {"tl 1 program t\nkernel k grid (b: 1) {}\ndim n", misplaced_statement, 3, 1,
       "before the first kernel"},
      {"tl 1 program t\nkernel k grid (b: 1) {\n", syntax_error, 3, 1, "opened at line 2, column 22"},
      {"tl 1 program t\nkernel k grid (b: 1) {\nserial i in 0 .. 4 {\n}\nkernel l grid (b: 1) { }",
       syntax_error, 5, 1, "before the kernel"},
      {"tl 1 program t\nkernel k grid (b: 1) {}\nkernel k grid (b: 1) {}", duplicate_name, 3, 8,
       "line 2, column 8"},
      {"tl 1 program t\ndim k\nkernel k grid (b: 1) {}", duplicate_name, 3, 8, "line 2, column 5"},
      {"tl 1 program t\nkernel k {}", syntax_error, 2, 10, "expected 'grid'"},
      {"tl 1 program t\nkernel k grid () {}", syntax_error, 2, 16, "block variable"},
      {"tl 1 program t\nkernel k grid (b 1) {}", syntax_error, 2, 18, "expected ':'"},
      {"tl 1 program t\nkernel k grid (a: 1, b: 1, c: 1, d: 1) {}", syntax_error, 2, 34, "1 to 3 extents"},
      {"tl 1 program t\nkernel k grid (b: 1, b: 1) {}", duplicate_name, 2, 22},
      {"tl 1 program t\nkernel k grid (b: b) {}", unknown_name, 2, 19},
      {"tl 1 program t\nkernel k grid (b: 1.5f32) {}", dtype_mismatch, 2, 19, "cast(i64"},
      {"tl 1 program t\nkernel k grid (b: 1) threads many {}", syntax_error, 2, 30, "number of threads"},
      {"\xef\xbb\xbftl 1 program t", syntax_error, 1, 1, "byte 0xef"},
  };
  for (const Wrong& w : cases) expect_error(w.text, w);
}

TEST(TextErrors, Declarations) {
  const Wrong cases[] = {
      {"dim", syntax_error, 3, 1, "the dim's name"},
      {"dim 4", syntax_error, 2, 5},
      {"dim n >= x", syntax_error, 2, 10, "number of the fact"},
      {"dim n divisible 8f32", syntax_error, 2, 17, "plain integer without point"},
      {"dim n <= 9223372036854775808", syntax_error, 2, 10, "does not fit i64"},
      {"dim n\ndim n", duplicate_name, 3, 5, "line 2, column 5"},
      {"dim n\ntensor n: f32[4]", duplicate_name, 3, 8},
      {"dim copy", bad_name, 2, 5, "word of the language"},
      {"dim true", bad_name, 2, 5},
      {"scalar a f32", syntax_error, 2, 10, "expected ':'"},
      {"scalar a: f31", unknown_name, 2, 11, "did you mean 'f32'?"},
      {"scalar a: quaternion", unknown_name, 2, 11, "f16, bf16, f32"},
      {"tensor A: f32", syntax_error, 3, 1, "the tensor's shape"},
      {"tensor A: f32[4", syntax_error, 3, 1, "expected ']'"},
      {"tensor A: f32[4, ]", syntax_error, 2, 18, "an expression"},
      {"tensor A: f32[m]", unknown_name, 2, 15, "declare it"},
      {"dim rows\ntensor A: f32[rwos]", unknown_name, 3, 15, "did you mean 'rows'?"},
      {"tensor A: f32[4, 4] strides [4]", rank_mismatch, 2, 8, "2 extents and 1 strides"},
      {"scalar a: f32\ntensor A: f32[a]", dtype_mismatch, 3, 15, "not i64"},
      {"tensor A: f32[A[0]]", unknown_name, 2, 15},
  };
  for (const Wrong& w : cases)
    expect_error("tl 1 program t\n" + std::string(w.text) + "\nkernel k grid (b: 1) { }", w);
}

// Statements stand in a kernel from line 9 on.
constexpr const char* kBefore =
    "tl 1 program t\ndim n\nscalar x: f32\nscalar c: i32\nscalar yes: bool\n"
    "tensor A: f32[n, 64]\nkernel k grid (b: n) {\nalloc S: shared f32[64, 64]\n";

TEST(TextErrors, Statements) {
  const Wrong cases[] = {
      {"alloc T: global f32[4]", syntax_error, 9, 10, "'shared', 'fragment' or 'local'"},
      {"alloc T: shard f32[4]", syntax_error, 9, 10, "did you mean 'shared'?"},
      {"alloc T: shared f32[n]", syntax_error, 9, 21, "a constant extent of the buffer"},
      {"alloc S: shared f32[4]", duplicate_name, 9, 7, "line 8, column 7"},
      {"alloc A: shared f32[4]", duplicate_name, 9, 7},
      {"alloc b: shared f32[4]", duplicate_name, 9, 7},
      {"fill S, 0.0f32\nalloc T: shared f32[4]", misplaced_statement, 10, 7, "top of the kernel"},
      {"serial i in 0 .. 4 {\nalloc T: shared f32[4]\n}", misplaced_statement, 10, 7},
      {"cpoy A -> S", unknown_name, 9, 1, "did you mean 'copy'?"},
      {"frobnicate", unknown_name, 9, 1, "a statement starts with"},
      {"42", syntax_error, 9, 1, "a statement or '}'"},
      {"serial in 0 .. 4 {\n}", syntax_error, 9, 11, "expected 'in'"},
      {"serial 4 in 0 .. 4 {\n}", syntax_error, 9, 8, "the loop variable"},
      {"serial i in 0 . 4 {\n}", syntax_error, 9, 15, "'..'"},
      {"serial i in 0 .. {\n}", syntax_error, 9, 18, "an expression"},
      {"serial i in 0 .. i {\n}", unknown_name, 9, 18},
      {"serial i in 0 .. x {\n}", dtype_mismatch, 9, 18, "the loop's end has type f32"},
      {"serial b in 0 .. 4 {\n}", duplicate_name, 9, 8},
      {"serial S in 0 .. 4 {\n}", duplicate_name, 9, 8},
      {"serial i in 0 .. 4 {\nserial i in 0 .. 4 {\n}\n}", duplicate_name, 10, 8, "line 9, column 8"},
      {"serial i in 0 .. 4\nfill S, 0.0f32", syntax_error, 10, 1, "to open the block"},
      {"pipelined i in 0 .. 4 stages {\n}", syntax_error, 9, 30, "number of stages"},
      {"parallel i, j in 4 {\n}", rank_mismatch, 9, 1, "2 variables has 1 extents"},
      {"parallel i in n {\n}", syntax_error, 9, 15, "constant extent"},
      {"if c {\n}", dtype_mismatch, 9, 4, "not bool"},
      {"if yes {\n} else 4 {\n}", syntax_error, 10, 8, "'{'"},
      {"else {\n}", syntax_error, 9, 1, "follows only the '}' of an 'if'"},
      {"serial i in 0 .. 4 {\n} else {\n}", syntax_error, 10, 3, "follows only the '}' of an 'if'"},
      {"S[0, 0] 1.0f32", syntax_error, 9, 9, "expected '='"},
      {"S[0] = 1.0f32", rank_mismatch, 9, 1, "2 dimensions, 1 is given"},
      {"S[0, x] = 1.0f32", dtype_mismatch, 9, 6, "an index has type f32"},
      {"Q[0, 0] = 1.0f32", unknown_name, 9, 1, "declare it"},
      {"n[0] = 1", syntax_error, 9, 1, "the variable 'n'"},
      {"S = 1.0f32", syntax_error, 9, 3, "expected '['"},
      {"parallel i in 0 .. 16 {\n}", syntax_error, 9, 17, "counts from 0: parallel i in 16"},
      {"parallel (i, j) in (4, 4) {\n}", syntax_error, 9, 10, "no parentheses"},
      {"pipelined i in 0 .. 4 num_stages 2 {\n}", syntax_error, 9, 23, "write 'stages 3' here"},
      {"if yes {\n} elif yes {\n}", unknown_name, 10, 3, "write 'else if'"},
      {"S[0, 0]++", syntax_error, 9, 8, "write += 1 here"},
      {"transpose S -> S", unknown_name, 9, 1, "view t = transpose(x)"},
      {"parallel i in 4 {\nvar s = 0\ns += 1.5f32\n}", dtype_mismatch, 11, 3, "var s: f32 = 0"},
      {"parallel i in 4 {\nS[i, 0] += 1i32\n}", dtype_mismatch, 10, 9, "cast(f32, ...) around the value"},
  };
  for (const Wrong& w : cases) expect_error(std::string(kBefore) + w.text + "\n}\n", w);
}

TEST(TextErrors, Operations) {
  const Wrong cases[] = {
      {"copy A -> S", bad_shape, 9, 6, "extent 0 is not constant"},
      {"copy S", syntax_error, 10, 1, "expected '->'"},
      {"copy S, S -> S", syntax_error, 9, 7, "expected '->'"},
      {"copy S -> S, S", syntax_error, 9, 12, "a statement"},
      {"copy S -> fill", syntax_error, 9, 11, "copy's operand 'dst'"},
      {"copy S ->\nfill S, 0.0f32", syntax_error, 10, 1, "copy's operand 'dst'"},
      {"copy A[0 :+ 64] -> S", rank_mismatch, 9, 6, "2 dimensions, 1 is given"},
      {"copy A[0 : 64, 0 :+ 64] -> S", syntax_error, 9, 10, "offset :+ extent"},
      {"copy A[0 :+ n, 0 :+ 64] -> S", syntax_error, 9, 13, "a constant extent"},
      {"copy A[x :+ 64, 0 :+ 64] -> S", dtype_mismatch, 9, 8, "an offset has type f32"},
      {"copy A[0 :+ 64, 0 :+ 64 -> S", syntax_error, 9, 25, "expected ']'"},
      {"copy n -> S", syntax_error, 9, 6, "the variable 'n'"},
      {"copy Ss -> S", unknown_name, 9, 6, "did you mean 'S'?"},
      {"fill S", syntax_error, 10, 1, "the value of fill"},
      {"fill S, ", syntax_error, 10, 1, "an expression"},
      {"gemm S -> S", syntax_error, 9, 8, "gemm's operand 'b'"},
      {"gemm S, S -> S {transpose_c}", unknown_name, 9, 17, "did you mean 'transpose_a'?"},
      {"gemm S, S -> S {magic=4}", unknown_name, 9, 17, "the attributes are transpose_a"},
      {"gemm S, S -> S {policy=full_rwo}", bad_attribute, 9, 24, "did you mean 'full_row'?"},
      {"gemm S, S -> S {policy}", syntax_error, 9, 23, "'=' and the value of policy"},
      {"gemm S, S -> S {clear=4}", syntax_error, 9, 23, "false|true"},
      {"gemm S, S -> S {clear, clear}", duplicate_name, 9, 24, "given twice"},
      {"gemm S, S -> S {clear", syntax_error, 11, 3, "expected '}'"},
      {"reduce S -> S {axis=one}", syntax_error, 9, 21, "the value of axis"},
      {"copy S -> S {fast}", unknown_name, 9, 14, "copy has no attributes"},
      {"copy S -> S {evict_first}", unknown_name, 9, 14, "write cache = evict_first"},
      {"copy A[0 :+ 64, :] -> S", syntax_error, 9, 17, "write 0 and its extent"},
  };
  for (const Wrong& w : cases) {
    bool own_end = std::string(w.text).ends_with("{clear");  // its missing brace takes the kernel's
    expect_error(std::string(kBefore) + w.text + (own_end ? "\n  ;\n  ]\n}\n" : "\n}\n"), w);
  }
}

TEST(TextErrors, Expressions) {
  const Wrong cases[] = {
      {"c + x", dtype_mismatch, 9, 13, "cast(f32, ...) around the i32 operand"},
      {"c + 1i64", dtype_mismatch, 9, 13, "types i32 and i64"},
      {"x + 1.0f16", dtype_mismatch, 9, 13},
      {"c / c", dtype_mismatch, 9, 13, "divide integers with //"},
      {"x // x", dtype_mismatch, 9, 13, "takes integers, found f32"},
      {"x % x", dtype_mismatch, 9, 13, "fmod(x, y)"},
      {"x ^ x", dtype_mismatch, 9, 13, "a power is pow(x, y)"},
      {"max(x, x, x)", syntax_error, 9, 11, "max(a, max(b, c))"},
      {"not", syntax_error, 10, 1, "an expression"},
      {"not c < c and c", dtype_mismatch, 9, 21, "types bool and i32"},
      {"True", unknown_name, 9, 11, "write 'true'"},
      {"x & x", dtype_mismatch, 9, 13},
      {"yes + yes", dtype_mismatch, 9, 15, "takes numbers, found bool"},
      {"c and c", dtype_mismatch, 9, 13, "compare with 0 first"},
      {"not(c)", dtype_mismatch, 9, 11},
      {"exp(c)", dtype_mismatch, 9, 11, "cast(f32, ...)"},
      {"-yes", dtype_mismatch, 9, 11},
      {"max(c, x)", dtype_mismatch, 9, 11},
      {"select(c, x, x)", dtype_mismatch, 9, 11, "not bool"},
      {"select(yes, x, c)", dtype_mismatch, 9, 11},
      {"ceildiv(x, x)", dtype_mismatch, 9, 11},
      {"ceildiv(c, c)", dtype_mismatch, 9, 11, "takes i64"},
      {"A[x, 0]", dtype_mismatch, 9, 11, "an index of 'A'"},
      {"A[0]", rank_mismatch, 9, 11, "2 dimensions, 1 is given"},
      {"A[]", rank_mismatch, 9, 11, "0 are given"},
      {"A", syntax_error, 9, 11, "the whole buffer 'A'"},
      {"n[0]", syntax_error, 9, 11, "the variable 'n'"},
      {"yess", unknown_name, 9, 11, "did you mean 'yes'?"},
      {"zzzzzz", unknown_name, 9, 11, "declare it"},
      {"expp(x)", unknown_name, 9, 11, "did you mean 'exp'?"},
      {"frobnicate(x, x)", unknown_name, 9, 11},
      {"exp(x, x)", syntax_error, 9, 11, "takes 1 arguments, found 2"},
      {"max(x)", syntax_error, 9, 11, "takes 2 arguments, found 1"},
      {"exp()", syntax_error, 9, 15, "an expression"},
      {"cast(x)", unknown_name, 9, 16, "an element type"},
      {"cast(f32 x)", syntax_error, 9, 20, "expected ','"},
      {"cast(f32, x, x)", syntax_error, 9, 24, "the words are nearest, zero, down, up"},
      {"cast(f16, x, up, zero)", syntax_error, 9, 28, "one of the first four and one of the last two"},
      {"cast(bool, x, up)", dtype_mismatch, 9, 11, "a bool is x != 0"},
      {"cast(i32, x, overflow)", dtype_mismatch, 9, 11, "it saturates"},
      {"fast_exp(c)", dtype_mismatch, 9, 11, "cast(f32, ...) around it"},
      {"fast_ex(x)", unknown_name, 9, 11, "did you mean 'fast_exp'?"},
      {"(x", syntax_error, 10, 1, "')' or an operator"},
      {"(x, x)", syntax_error, 9, 13, "')' or an operator"},
      {"max(x, x", syntax_error, 10, 1, "opened at line 9, column 11"},
      {"(x]", syntax_error, 9, 13, "expected ')'"},
      {"A[0, 0)", syntax_error, 9, 17, "expected ']'"},
      {"x +", syntax_error, 10, 1, "an expression"},
      {"* x", syntax_error, 9, 11, "an expression"},
      {"x + and", syntax_error, 9, 15},
      {"x ! x", syntax_error, 9, 13, "'!'"},
      {"select(yes && yes, x, x)", syntax_error, 9, 23, "write 'and'"},
      {"x ** 2", syntax_error, 9, 14, "pow(x, y)"},
      {"yes ? x : x", syntax_error, 9, 15, "write select"},
      {"float(c)", unknown_name, 9, 11, "cast(f32, x)"},
      {"__expf(x)", unknown_name, 9, 11, "fast_exp(x)"},
      {"clamp(x, 0, 1)", unknown_name, 9, 11, "min(max(x, lowest), greatest)"},
      {"c < c < c", syntax_error, 9, 17, "do not chain"},
      {"c == c != c", syntax_error, 9, 18, "do not chain"},
      {"1.5 // 2 < 1", syntax_error, 9, 11, "1.5f32"},
      {"1.5i32", syntax_error, 9, 11, "expected an integer of type i32"},
      {"1.5f31", syntax_error, 9, 11, "did you mean 'f32'?"},
      {"1bool", syntax_error, 9, 11},
      {"300i8", syntax_error, 9, 11, "-128 to 127"},
      {"-1u8", syntax_error, 9, 12, "0 to 255"},
      {"9223372036854775808 // 2 < 1", syntax_error, 9, 11, "does not fit i64"},
      {"70000f16", syntax_error, 9, 11, "inf:f16"},
      {"1e999f64", syntax_error, 9, 11},
      {"inf // 2 < 1", syntax_error, 9, 11, "the type of 'inf'"},
      {"cast(f32, c + inf)", syntax_error, 9, 25, "the type of 'inf'"},
      {"inf:i32", dtype_mismatch, 9, 15, "floating type"},
      {"nan:x", unknown_name, 9, 15},
      {"0x12:i32", dtype_mismatch, 9, 16, "its type right behind its digits: 0x12i32"},
      {"0x12345:f16", syntax_error, 9, 11, "4 hexadecimal digits"},
      {"0x:f16", syntax_error, 9, 11},
      {"0x1g:f16", syntax_error, 9, 11},
      {"0x12", syntax_error, 9, 11, "the bits of a f32 are 0x12:f32"},
      {"cast(f32, 0x1ffffffffi32)", syntax_error, 9, 21, "does not fit i32"},
      {"cast(f32, 0x)", syntax_error, 9, 21, "does not fit i64"},
      {"-0x12:f16", syntax_error, 9, 12},
  };
  for (const Wrong& w : cases) expect_error(std::string(kBefore) + "S[0, 0] = " + w.text + "\n}\n", w);
}

TEST(TextErrors, SeveralMistakesAreReportedAtOnce) {
  Expected<Program> p = parse_program(
      "tl 1 program t\n"
      "dim n divisible\n"
      "tensor A: f32[n, 64\n"
      "kernel k grid (b: n) {\n"
      "  alloc S: shared f32[64, 64]\n"
      "  cpoy A -> S\n"
      "  serial i in 0 ... n {\n"
      "    fill S 1.0f32\n"
      "    S[i, i] = 1.0f32 + 1i32\n"
      "  }\n"
      "  gemm S, S -> S {polcy=full_row}\n"
      "  if n {\n"
      "    S[0, nn] = 1.0f32\n"
      "  } else {\n"
      "    copy S S\n"
      "  }\n"
      "}\n",
      "many.tl", Limits());
  ASSERT_FALSE(p);
  std::vector<std::pair<std::string, uint32_t>> found;
  for (const Diagnostic& d : p.error().diagnostics) found.emplace_back(diag_name(d.code), d.location.line);
  const std::vector<std::pair<std::string, uint32_t>> wanted = {
      {"syntax_error", 3},  {"syntax_error", 4},   {"unknown_name", 6},  {"syntax_error", 7},
      {"syntax_error", 8},  {"dtype_mismatch", 9}, {"unknown_name", 11}, {"dtype_mismatch", 12},
      {"unknown_name", 13}, {"syntax_error", 15}};
  EXPECT_EQ(found, wanted) << p.error().to_text();
}

TEST(TextErrors, AreCappedAndNameTheirStatus) {
  std::string text = kBefore;
  for (int i = 0; i < 1000; ++i) text += "copy X -> S\n";
  Limits limits;
  limits.diagnostics = 5;
  Expected<Program> p = parse_program(text + "}\n", "wrong.tl", limits);
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().diagnostics.size(), 5u);
  EXPECT_EQ(p.error().status(), StatusCode::parse_error);
  EXPECT_EQ(p.error().diagnostics[0].op, "k");
}

TEST(TextErrors, ReadsOneWholeMessage) {
  Expected<Program> p = parse_program(std::string(kBefore) + "  cpoy A -> S\n}\n", "a.tl", Limits());
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().diagnostics[0].to_text(),
            "a.tl:9:3: error [unknown_name] k: expected a statement, found the unknown operation 'cpoy' (did "
            "you mean "
            "'copy'?)");
}

}  // namespace
}  // namespace tilegen::ir
