// while, break, continue and return, against the same loops in C++, on every executor.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scope.h"

namespace tilegen::test {
namespace {

constexpr const char* kExecutors[] = {"", "host", "sim:sm_80", "sim:sm_90a"};

// Runs a program of one tensor of inputs and one of results; `executor`: a target, or "" for the interpreter.
std::vector<int64_t> run(const Program& program, const std::string& executor, std::vector<int64_t> in) {
  const Context context = make_context();
  std::vector<int64_t> out(in.size(), -1);
  const tl_arg args[] = {{TL_ARG_I64, 0, in.size()},
                         {TL_ARG_POINTER, TL_I64, reinterpret_cast<uint64_t>(in.data())},
                         {TL_ARG_POINTER, TL_I64, reinterpret_cast<uint64_t>(out.data())}};
  tl_error* error = nullptr;
  if (executor.empty()) {
    EXPECT_EQ(tl_interpret(program.get(), args, 3, &error), TL_OK) << tl_error_message(error);
    tl_error_release(error);
    return out;
  }
  tl_target* target = nullptr;
  tl_artifact* artifact = nullptr;
  tl_kernel* kernel = nullptr;
  EXPECT_EQ(tl_target_parse(executor.c_str(), &target, nullptr), TL_OK);
  EXPECT_EQ(tl_compile(context.get(), program.get(), target, nullptr, &artifact, &error), TL_OK)
      << tl_error_message(error);
  EXPECT_EQ(tl_kernel_load(context.get(), artifact, 0, &kernel, &error), TL_OK) << tl_error_message(error);
  EXPECT_EQ(tl_kernel_launch(kernel, nullptr, args, 3, &error), TL_OK) << tl_error_message(error);
  tl_error_release(error);
  tl_kernel_release(kernel), tl_artifact_release(artifact), tl_target_release(target);
  return out;
}

Program parse(const std::string& body) {
  const Context context = make_context();
  const std::string text = "tl 1 program p\ndim n\ntensor X: i64[n] readonly\ntensor Y: i64[n]\n" + body;
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &program, &error), TL_OK)
      << tl_error_message(error);
  tl_error_release(error);
  return Program(program);
}

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> list;
  for (int64_t i = 0; i < count; ++i) list.push_back((i * 37 + 5) % 61);
  return list;
}

void expect_everywhere(const Program& program, const std::vector<int64_t>& in, int64_t (*meaning)(int64_t)) {
  std::vector<int64_t> expected;
  for (int64_t v : in) expected.push_back(meaning(v));
  for (const char* executor : kExecutors) EXPECT_EQ(run(program, executor, in), expected) << executor;
}

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
}

}  // namespace
}  // namespace tilegen::test
