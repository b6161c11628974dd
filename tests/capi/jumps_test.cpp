// while, break, continue and return, against the same loops in C++, on every executor.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_everywhere.h"

namespace tilegen::test {
namespace {

// Steps of the sequence of Collatz, and where it stands after at most 20 of them.
int64_t collatz(int64_t v) {
  int64_t steps = 0;
  while (v > 1) {
    if (steps == 20) break;
    ++steps;
    if (v % 2 == 0) {
      v /= 2;
      continue;
    }
    v = 3 * v + 1;
  }
  return 1000 * v + steps;
}

TEST(Jumps, WhileOfABlock) {
  const Program program = parse(
      "kernel k grid(b: n) {\n  alloc v: shared i64[2]\n  alloc steps: local i64[1]\n"
      "  parallel i in 2 { v[i] = X[b] }\n  steps[0] = 0\n"
      "  while v[0] > 1 {\n    if steps[0] == 20 { break }\n    steps[0] += 1\n"
      "    if v[1] % 2 == 0 {\n      parallel i in 2 { v[i] = v[i] // 2 }\n      continue\n    }\n"
      "    parallel i in 2 { v[i] = 3 * v[i] + 1 }\n  }\n"
      "  parallel i in 1 { Y[b] = 1000 * v[i] + steps[0] }\n}\n");
  expect_everywhere(program, numbers(40), collatz);
}

TEST(Jumps, OfEachPoint) {
  const Program program = parse(
      "kernel k grid(b: ceildiv(n, 32)) {\n  parallel i in 32 {\n    var v = X[b * 32 + i]\n    var steps = "
      "0\n"
      "    serial t in 0 .. 21 {\n      if v <= 1 or t == 20 { break }\n      steps += 1\n"
      "      if v % 2 == 0 {\n        v = v // 2\n        continue\n      }\n      v = 3 * v + 1\n    }\n"
      "    Y[b * 32 + i] = 1000 * v + steps\n  }\n}\n");
  expect_everywhere(program, numbers(75), collatz);
}

// The first pair in order whose product is the number, none after a pair whose sum is it.
int64_t pairs(int64_t v) {
  if (v == 7) return -1;
  int64_t seen = 0;
  for (int64_t i = 1; i < 9; ++i) {
    if (i == 4) continue;
    for (int64_t j = i; j < 9; ++j) {
      ++seen;
      if (i * j == v) return 100 * i + j;
      if (i + j == v) break;
      if (seen > 30) return 10000 + i;
    }
    seen += 100 * (i == 6);
  }
  return seen;
}

TEST(Jumps, OutOfNestedLoops) {
  const Program program = parse(
      "kernel k grid(b: n) {\n  alloc seen: local i64[1]\n  let v = X[b]\n"
      "  parallel p in 1 { Y[b] = -1 }\n  if v == 7 { return }\n  seen[0] = 0\n"
      "  serial i in 1 .. 9 {\n    if i == 4 { continue }\n    serial j in i .. 9 {\n      seen[0] += 1\n"
      "      if i * j == v {\n        parallel p in 1 { Y[b] = 100 * i + j }\n        return\n      }\n"
      "      if i + j == v { break }\n"
      "      if seen[0] > 30 {\n        parallel p in 1 { Y[b] = 10000 + i }\n        return\n      }\n    "
      "}\n"
      "    if i == 6 { seen[0] += 100 }\n  }\n  parallel p in 1 { Y[b] = seen[0] }\n}\n");
  expect_everywhere(program, numbers(61), pairs);
}

// A condition beside bounds, and work of all threads in the loop.
int64_t doubled(int64_t v) {
  for (int64_t t = 0; t < 6 && v < 40; ++t) v += v + t;
  return v;
}

TEST(Jumps, ConditionBesideBounds) {
  const Program program = parse(
      "kernel k grid(b: n) {\n  alloc v: shared i64[64]\n  alloc f: fragment i64[64]\n"
      "  fill v, X[b]\n  serial t in 0 .. 6 while v[63] < 40 {\n"
      "    copy v -> f\n    parallel i in 64 { f[i] += v[63 - i] + t }\n    copy f -> v\n  }\n"
      "  parallel i in 1 { Y[b] = v[17] }\n}\n");
  expect_everywhere(program, numbers(30), doubled);
}

int64_t chosen(int64_t v) {
  switch (v % 7) {
    case 0:
    case 3:
      return -v;
    case 4:
      return v * v;
    default:
      return v % 7;
  }
}

TEST(Jumps, Switches) {
  const Program of_points = parse(
      "kernel k grid(b: ceildiv(n, 32)) {\n  parallel i in 32 {\n    let v = X[b * 32 + i]\n    switch v % 7 "
      "{\n"
      "      case 0, 3 { Y[b * 32 + i] = -v }\n      case 4 { Y[b * 32 + i] = v * v }\n"
      "      else { Y[b * 32 + i] = v % 7 }\n    }\n  }\n}\n");
  expect_everywhere(of_points, numbers(70), chosen);
  const Program of_blocks = parse(
      "kernel k grid(b: n) {\n  alloc v: local i64[1]\n  v[0] = X[b]\n  switch v[0] % 7 {\n"
      "    case 0, 3 { v[0] = -v[0] }\n    case 4 { v[0] = v[0] * v[0] }\n    else { v[0] = v[0] % 7 }\n  }\n"
      "  parallel i in 1 { Y[b] = v[0] }\n}\n");
  expect_everywhere(of_blocks, numbers(40), chosen);
}

TEST(Jumps, OfTheBuilder) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n");
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  tl_expr block, point;
  const int64_t one = 1;
  const tl_expr zero = tl_index(b, 0), first = tl_index(b, 1), two = tl_index(b, 2);
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &n, 0, nullptr, &block);
  const tl_buffer v = tl_alloc(b, "v", TL_SCOPE_LOCAL, TL_I64, 1, &one);
  const tl_buffer steps = tl_alloc(b, "steps", TL_SCOPE_LOCAL, TL_I64, 1, &one);
  const auto value = [&](tl_buffer t) { return tl_load(b, t, 1, &zero); };
  const auto set = [&](tl_buffer t, tl_expr e) { tl_store(b, t, 1, &zero, e); };
  set(v, tl_load(b, x, 1, &block));
  set(steps, zero);
  const tl_scope loop = tl_begin_while(b, tl_binary(b, TL_LT, first, value(v)));
  tl_scope branch = tl_begin_if(b, tl_binary(b, TL_EQ, value(steps), tl_index(b, 20)));
  tl_break(b);
  tl_end(b, branch);
  set(steps, tl_binary(b, TL_ADD, value(steps), first));
  branch = tl_begin_if(b, tl_binary(b, TL_EQ, tl_binary(b, TL_FLOORMOD, value(v), two), zero));
  set(v, tl_binary(b, TL_FLOORDIV, value(v), two));
  tl_continue(b);
  tl_end(b, branch);
  set(v, tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, value(v), tl_index(b, 3)), first));
  tl_end(b, loop);
  const tl_scope points = tl_begin_parallel(b, 1, &one, nullptr, &point);
  tl_store(b, y, 1, &block,
           tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, value(v), tl_index(b, 1000)), value(steps)));
  tl_end(b, points);
  tl_end(b, kernel);
  Program program;
  Failure failure;
  ASSERT_EQ(finish(owner, &program, &failure), TL_OK) << tl_error_message(failure.get());
  expect_everywhere(program, numbers(20), collatz);
}

// The program of Switches that switches for each point, or for the block, in calls.
Program switching(bool of_points) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n");
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  const int64_t points = of_points ? 32 : 1;
  const tl_expr zero = tl_index(b, 0), size = tl_index(b, points);
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, points - 1)), size);
  tl_expr block, point;
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, 0, nullptr, &block);
  tl_buffer to = y;
  tl_expr at, value;
  tl_scope loop{};
  if (of_points) {
    loop = tl_begin_parallel(b, 1, &points, nullptr, &point);
    at = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, block, size), point);
    value = tl_load(b, x, 1, &at);
  } else {
    to = tl_alloc(b, "v", TL_SCOPE_LOCAL, TL_I64, 1, &points), at = zero;
    tl_store(b, to, 1, &zero, tl_load(b, x, 1, &block));
    value = tl_load(b, to, 1, &zero);
  }
  const int64_t none_or_three[] = {0, 3}, four = 4;
  const tl_expr rest = tl_binary(b, TL_FLOORMOD, value, tl_index(b, 7));
  const tl_scope choice = tl_begin_switch(b, rest);
  tl_scope one = tl_begin_case(b, choice, 2, none_or_three);
  tl_store(b, to, 1, &at, tl_unary(b, TL_NEG, value));
  tl_end(b, one);
  one = tl_begin_case(b, choice, 1, &four);
  tl_store(b, to, 1, &at, tl_binary(b, TL_MUL, value, value));
  tl_end(b, one);
  one = tl_begin_case(b, choice, 0, nullptr);
  tl_store(b, to, 1, &at, rest);
  tl_end(b, one);
  tl_end(b, choice);
  if (of_points) {
    tl_end(b, loop);
  } else {
    loop = tl_begin_parallel(b, 1, &points, nullptr, &point);
    tl_store(b, y, 1, &block, value);
    tl_end(b, loop);
  }
  tl_end(b, kernel);
  Program program;
  Failure failure;
  EXPECT_EQ(finish(owner, &program, &failure), TL_OK) << tl_error_message(failure.get());
  return program;
}

TEST(Jumps, SwitchesOfTheBuilder) {
  const Program of_points = switching(true), of_blocks = switching(false);
  ASSERT_TRUE(of_points && of_blocks);
  expect_everywhere(of_points, numbers(70), chosen);
  expect_everywhere(of_blocks, numbers(40), chosen);
}

TEST(Jumps, SwitchesOfTheBuilderAreThoseOfTheText) {
  const Program text = parse(
      "kernel k grid(bx: n) {\n  alloc v: local i64[1]\n  v[0] = X[bx]\n  switch v[0] % 7 {\n"
      "    case 0, 3 { v[0] = -v[0] }\n    case 4 { v[0] = v[0] * v[0] }\n    else { v[0] = v[0] % 7 }\n  }\n"
      "  parallel p in 1 { Y[bx] = v[0] }\n}\n");
  const Program calls = switching(false);
  const auto printed = [](const Program& program) {
    tl_blob* blob = nullptr;
    EXPECT_EQ(tl_program_print(program.get(), &blob, nullptr), TL_OK);
    const Blob owner(blob);
    const std::string whole(tl_blob_data(blob), tl_blob_size(blob));
    const size_t from = whole.find("v[0] = X"), to = whole.find("parallel");
    return from < to ? whole.substr(from, to - from) : whole;
  };
  EXPECT_EQ(printed(calls), printed(text));
}

TEST(Jumps, MistakesOfTheBuilder) {
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
  EXPECT_NE(mistake([](tl_builder* b) { tl_break(b); }).find("stands in no loop"), std::string::npos);
  EXPECT_NE(mistake([](tl_builder* b) {
              tl_expr i;
              tl_begin_loop(b, TL_LOOP_PIPELINED, tl_index(b, 0), tl_index(b, 4), 0, nullptr, &i);
              tl_return(b);
            }).find("leaves a loop of kind pipelined"),
            std::string::npos);
  EXPECT_NE(mistake([](tl_builder* b) {
              tl_return(b);
              tl_break(b);
            }).find("no loop"),
            std::string::npos);
  EXPECT_NE(mistake([](tl_builder* b) {
              tl_return(b);
              tl_print(b, "behind", 0, nullptr);
            }).find("runs"),
            std::string::npos);
  const auto of_switch = [&](const auto& make) {
    return mistake([&](tl_builder* b) { make(b, tl_begin_switch(b, tl_index(b, 3))); });
  };
  const auto expect_words = [](const std::string& message, const char* words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  static const int64_t two[] = {1, 300};
  expect_words(of_switch([](tl_builder* b, tl_scope s) { tl_end(b, s); }), "the switch has no case");
  expect_words(of_switch([](tl_builder* b, tl_scope) { tl_print(b, "between", 0, nullptr); }),
               "outside of its cases");
  expect_words(of_switch([](tl_builder* b, tl_scope s) { tl_begin_case(b, s, 0, nullptr); }),
               "a case without values is the first");
  expect_words(of_switch([](tl_builder* b, tl_scope s) { tl_begin_case(b, s, 1, nullptr); }), "values");
  expect_words(of_switch([](tl_builder* b, tl_scope s) {
                 tl_end(b, tl_begin_case(b, s, 1, two));
                 tl_end(b, tl_begin_case(b, s, 0, nullptr));
                 tl_begin_case(b, s, 1, two);
               }),
               "the case without values stands before it");
  expect_words(of_switch([](tl_builder* b, tl_scope s) {
                 tl_begin_case(b, s, 1, two);
                 tl_begin_case(b, s, 1, two);
               }),
               "the innermost open scope is the case");
  expect_words(of_switch([](tl_builder* b, tl_scope s) { tl_begin_else(b, tl_begin_case(b, s, 1, two)); }),
               "the innermost open scope is the case");
  expect_words(mistake([](tl_builder* b) {
                 const tl_scope s = tl_begin_switch(b, tl_const_i64(b, TL_U8, 3));
                 tl_begin_case(b, s, 2, two);
               }),
               "the value 300 of a case is none of u8");
  expect_words(mistake([](tl_builder* b) { tl_begin_switch(b, tl_const_f64(b, TL_F32, 3)); }),
               "expected an integer");
  expect_words(mistake([](tl_builder* b) {
                 tl_scope s = tl_begin_switch(b, tl_index(b, 3));
                 for (int i = 0; i < 100; ++i) {
                   s = tl_begin_case(b, s, 1, two);
                   s = tl_begin_switch(b, tl_index(b, 3));
                 }
               }),
               "deep");
}

}  // namespace
}  // namespace tilegen::test
