// Every bound on a text has its own code, and hostile nesting costs no stack.
#include <gtest/gtest.h>

#include <pthread.h>

#include <functional>

#include "ir/text.h"
#include "support/diag_codes.h"
#include "text_samples.h"

namespace tilegen::ir {
namespace {

std::string repeat(std::string_view piece, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += piece;
  return out;
}

std::string program(const std::string& body, const std::string& declarations = "") {
  return "tl 1 program t\ntensor A: i64[8]\n" + declarations + "kernel k grid (b: 1) {\n" + body + "}\n";
}

void expect_limit(const std::string& text, const Limits& limits, DiagCode code) {
  Expected<Program> p = parse_program(text, "t.tl", limits);
  ASSERT_FALSE(p);
  const Diagnostic& last = p.error().diagnostics.back();
  EXPECT_STREQ(diag_name(last.code), diag_name(code)) << p.error().to_text();
  EXPECT_EQ(p.error().status(), StatusCode::limit_exceeded);
  EXPECT_FALSE(last.hint.empty());
  EXPECT_EQ(p.error().diagnostics.size(), 1u);
}

// `text` reads under a limit of n and is refused one lower.
void expect_exact(int64_t Limits::*field, int64_t n, const std::string& text, DiagCode code) {
  Limits limits;
  limits.*field = n;
  Expected<Program> p = parse_program(text, "t.tl", limits);
  EXPECT_TRUE(p) << p.error().to_text();
  limits.*field = n - 1;
  expect_limit(text, limits, code);
}

TEST(TextLimits, Bytes) {
  std::string text = program("");
  expect_exact(&Limits::text_bytes, static_cast<int64_t>(text.size()), text, DiagCode::limit_bytes);
}

TEST(TextLimits, ExpressionNodes) {
  // 8 and 1 of the declarations, then i, 100, ...: a node for each new literal and one for each operation.
  Limits limits;
  std::string text = program("A[b] = b * 3 + b * 5 + b * 7\n");
  Expected<Program> p = parse_program(text, "t.tl", limits);
  ASSERT_TRUE(p);
  expect_exact(&Limits::expr_nodes, static_cast<int64_t>(p->exprs.size()), text, DiagCode::limit_nodes);
}

TEST(TextLimits, ExpressionDepth) {
  // ((((b * 2 + 1) * 2 + 1) ... has two levels per step above that of b.
  std::string text = program("A[b] = " + repeat("(", 20) + "b" + repeat(" * 2 + b)", 20) + "\n");
  expect_exact(&Limits::expr_depth, 41, text, DiagCode::limit_nesting);
}

TEST(TextLimits, Parentheses) {
  expect_exact(&Limits::expr_depth, 30, program("A[b] = " + repeat("(", 30) + "b" + repeat(")", 30) + "\n"),
               DiagCode::limit_nesting);
}

TEST(TextLimits, Statements) {
  expect_exact(&Limits::statements, 50, program(repeat("A[b] = 1\n", 50)), DiagCode::limit_nodes);
}

TEST(TextLimits, Buffers) {
  std::string text = program("alloc x: local i64[1]\nalloc y: local i64[1]\n");
  expect_exact(&Limits::buffers, 3, text, DiagCode::limit_nodes);
}

TEST(TextLimits, Parameters) {
  std::string text = program("", "dim x\ndim y\nscalar z: f32\n");
  expect_exact(&Limits::buffers, 4, text, DiagCode::limit_nodes);
}

TEST(TextLimits, Nesting) {
  std::string text;
  for (int i = 0; i < 10; ++i) text += "serial i" + std::to_string(i) + " in 0 .. 4 {\n";
  expect_exact(&Limits::nesting, 10, program(text + repeat("}\n", 10)), DiagCode::limit_nesting);
  expect_exact(&Limits::nesting, 10, program(repeat("if b == 0 {\n} else {\n", 10) + repeat("}\n", 10)),
               DiagCode::limit_nesting);
}

TEST(TextLimits, Rank) {
  expect_exact(&Limits::rank, 3, program("", "tensor B: f32[1, 2, 3]\n"), DiagCode::limit_nodes);
  expect_exact(&Limits::rank, 3, program("alloc x: local i64[1, 2, 3]\n"), DiagCode::limit_nodes);
  expect_exact(&Limits::rank, 3, program("parallel i, j, l in 4, 4, 4 {\n}\n"), DiagCode::limit_nodes);
}

// Runs `parse` on a stack of 256 KiB: recursion over 100000 levels would end the process.
void on_small_stack(const std::function<void()>& parse) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  auto run = [](void* f) -> void* {
    (*static_cast<const std::function<void()>*>(f))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&parse)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(TextLimits, HostileNestingIsRefusedWithoutStack) {
  constexpr size_t kDeep = 100000;
  std::string loops;
  for (size_t i = 0; i < kDeep; ++i) loops += "serial i" + std::to_string(i) + " in 0 .. 4 {\n";
  const std::string texts[] = {
      program("A[b] = " + repeat("(", kDeep) + "b" + repeat(")", kDeep) + "\n"),
      program("A[b] = " + repeat("(", kDeep)),
      program("A[b] = " + repeat("neg(", kDeep) + "b" + repeat(")", kDeep) + "\n"),
      program("A[b] = " + repeat("-", kDeep) + "b\n"),
      program("A[b] = " + repeat("A[", kDeep) + "b" + repeat("]", kDeep) + "\n"),
      program("A[b] = " + repeat("b - (", kDeep) + "b" + repeat(")", kDeep) + "\n"),
      program("A[b] = b" + repeat(" * 2 + b", kDeep) + "\n"),
      program(repeat("if b == 0 {\n", kDeep) + repeat("}\n", kDeep)),
      program(loops + repeat("}\n", kDeep)),
      program(repeat("{", kDeep)),
      program("if ! " + repeat("{", kDeep)),
  };
  for (const std::string& text : texts) {
    on_small_stack([&] {
      Expected<Program> p = parse_program(text, "t.tl", Limits());
      ASSERT_FALSE(p);
      EXPECT_STREQ(diag_name(p.error().diagnostics.back().code), "limit_nesting") << text.substr(0, 100);
    });
  }
}

// Long but flat texts within the limits are read in linear time and space.
TEST(TextLimits, LongFlatTextsAreRead) {
  std::string text = program(repeat("A[b] = b + b * 2 - A[b]\n", 20000));
  Expected<Program> p = parse_program(text, "t.tl", Limits());
  ASSERT_TRUE(p) << p.error().to_text();
  EXPECT_EQ(p->stmts.size(), 20000u);
  EXPECT_EQ(print_program(*p).size(), text.size() + 1 + 2 * 20000);  // a blank line; the indents
}

TEST(TextLimits, NamesHaveALength) {
  std::string longest(kMaxNameLength, 'a');
  EXPECT_TRUE(parse_program(program("", "dim " + longest + "\n"), "t.tl", Limits()));
  Expected<Program> p = parse_program(program("", "dim a" + longest + "\n"), "t.tl", Limits());
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().diagnostics[0].code, DiagCode::bad_name);
  EXPECT_EQ(p.error().diagnostics[0].location.column, 5u);
}

}  // namespace
}  // namespace tilegen::ir
