// Every limit of a context, reached through the builder or the parser.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "golden.h"

namespace tilegen::test {
namespace {

struct Inside {
  tl_builder* b;
  tl_expr zero, one, two;
};

void expect_limit(const std::string& golden, const char* name, int64_t value,
                  const std::function<void(const Inside&)>& exceed) {
  const Context context = make_context();
  ASSERT_EQ(tl_context_set_limit(context.get(), name, value, nullptr), TL_OK);
  const Builder builder = make_builder(context, "p");
  tl_builder* b = builder.get();
  tl_builder_set_location(b, "user.c", 42, 7);
  const Inside in{b, tl_index(b, 0), tl_index(b, 1), tl_index(b, 2)};
  tl_expr block;
  tl_begin_kernel(b, "k", 1, &in.one, 0, nullptr, &block);
  ASSERT_EQ(tl_builder_status(b), TL_OK) << golden;
  exceed(in);
  Failure failure;
  EXPECT_EQ(finish(builder, nullptr, &failure), TL_LIMIT_EXCEEDED) << golden;
  expect_golden(golden, failure);
}

TEST(LimitErrors, Builder) {
  expect_limit("limit_nodes.expressions", "expr_nodes", 16, [](const Inside& in) {
    for (int64_t i = 10; i < 40; ++i) tl_index(in.b, i);
  });
  expect_limit("limit_nodes.statements", "statements", 2, [](const Inside& in) {
    for (int i = 0; i < 3; ++i) tl_end(in.b, tl_begin_if(in.b, tl_binary(in.b, TL_LT, in.one, in.two)));
  });
  expect_limit("limit_nodes.buffers", "buffers", 2, [](const Inside& in) {
    const int64_t extent = 4;
    for (const char* name : {"a", "b", "c"}) tl_alloc(in.b, name, TL_SCOPE_SHARED, TL_F32, 1, &extent);
  });
  expect_limit("limit_nesting.expression", "expr_depth", 8, [](const Inside& in) {
    tl_expr i, e;
    tl_begin_loop(in.b, TL_LOOP_SERIAL, in.zero, in.two, 0, "i", &i);
    e = i;
    for (int d = 0; d < 10; ++d) e = tl_binary(in.b, TL_MUL, e, i);
  });
  expect_limit("limit_nesting.loops", "nesting", 3, [](const Inside& in) {
    tl_expr i;
    for (int d = 0; d < 4; ++d) tl_begin_loop(in.b, TL_LOOP_SERIAL, in.zero, in.two, 0, nullptr, &i);
  });
  expect_limit("limit_nesting.rank", "rank", 2, [](const Inside& in) {
    const int64_t shape[] = {2, 2, 2};
    tl_alloc(in.b, "t", TL_SCOPE_SHARED, TL_F32, 3, shape);
  });
  expect_limit("limit_memory.tile", "tile_elements", 100, [](const Inside& in) {
    const int64_t shape[] = {11, 10};
    tl_alloc(in.b, "t", TL_SCOPE_SHARED, TL_F32, 2, shape);
  });
  expect_limit("limit_unroll.nested", "unroll", 8, [](const Inside& in) {
    tl_expr i, four = tl_index(in.b, 4);
    tl_begin_loop(in.b, TL_LOOP_UNROLL, in.zero, four, 0, "i", &i);
    tl_begin_loop(in.b, TL_LOOP_UNROLL, in.zero, four, 0, "j", &i);
  });
}

// Shared nodes are written once per use: 40 doublings are some 80 nodes and a text of 2^40.
TEST(LimitErrors, WrittenText) {
  const Context context = make_context();
  const Builder builder = make_builder(context, "p");
  tl_builder* b = builder.get();
  tl_builder_set_location(b, "user.c", 42, 7);
  const int64_t extent = 1;
  const tl_expr zero = tl_index(b, 0), one = tl_index(b, 1);
  tl_expr block, i;
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &one, 0, nullptr, &block);
  const tl_buffer t = tl_alloc(b, "t", TL_SCOPE_LOCAL, TL_I64, 1, &extent);
  const tl_scope loop = tl_begin_loop(b, TL_LOOP_SERIAL, zero, tl_index(b, 2), 0, "i", &i);
  tl_expr e = i;
  for (int d = 0; d < 40; ++d) e = tl_binary(b, TL_BIT_XOR, tl_binary(b, TL_MUL, e, e), i);
  tl_store(b, t, 1, &zero, e);
  tl_end(b, loop);
  tl_end(b, kernel);
  Failure failure;
  EXPECT_EQ(finish(builder, nullptr, &failure), TL_LIMIT_EXCEEDED);
  expect_golden("limit_nodes.text", failure);
}

TEST(LimitErrors, Text) {
  const Context context = make_context();
  ASSERT_EQ(tl_context_set_limit(context.get(), "text_bytes", 20, nullptr), TL_OK);
  const std::string text = "tl 1 program p ; and a comment that is too long\n";
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &program, &error),
            TL_LIMIT_EXCEEDED);
  expect_golden("limit_bytes.text", Failure(error));
}

TEST(LimitErrors, DiagnosticsAreCapped) {
  const Context context = make_context();
  ASSERT_EQ(tl_context_set_limit(context.get(), "diagnostics", 3, nullptr), TL_OK);
  std::string text = "tl 1 program p\nkernel k grid(b: 1) {\n";
  for (int i = 0; i < 20; ++i) text += "  fill nothing" + std::to_string(i) + ", 0.0f32\n";
  text += "}\n";
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &program, &error),
            TL_PARSE_ERROR);
  const Failure failure(error);
  EXPECT_LE(tl_error_count(failure.get()), 4u);  // the last may say that there are more
  EXPECT_GE(tl_error_count(failure.get()), 2u);
}

}  // namespace
}  // namespace tilegen::test
