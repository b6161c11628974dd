// Programs of one tensor of inputs and one of results, on every executor, against the same in C++.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scope.h"

namespace tilegen::test {

inline constexpr const char* kExecutors[] = {"", "host", "sim:sm_80", "sim:sm_90a"};

// Runs a program; `executor`: a target, or "" for the interpreter. `out_error` is the caller's.
inline tl_status launch_on(const Context& context, const Program& program, const std::string& executor,
                           const tl_launch* launch, const tl_arg* args, size_t count, tl_error** out_error) {
  if (executor.empty()) return tl_interpret_launch(program.get(), launch, args, count, out_error);
  tl_target* target = nullptr;
  tl_artifact* artifact = nullptr;
  tl_kernel* kernel = nullptr;
  EXPECT_EQ(tl_target_parse(executor.c_str(), &target, nullptr), TL_OK);
  EXPECT_EQ(tl_compile(context.get(), program.get(), target, nullptr, &artifact, out_error), TL_OK)
      << tl_error_message(*out_error);
  EXPECT_EQ(tl_kernel_load(context.get(), artifact, 0, &kernel, out_error), TL_OK)
      << tl_error_message(*out_error);
  const tl_status status = tl_kernel_launch(kernel, launch, args, count, out_error);
  tl_kernel_release(kernel), tl_artifact_release(artifact), tl_target_release(target);
  return status;
}

// Of one tensor of inputs and one of results.
inline std::vector<int64_t> run(const Program& program, const std::string& executor,
                                std::vector<int64_t> in) {
  const Context context = make_context();
  std::vector<int64_t> out(in.size(), -1);
  const tl_arg args[] = {{TL_ARG_I64, 0, in.size()},
                         {TL_ARG_POINTER, TL_I64, reinterpret_cast<uint64_t>(in.data())},
                         {TL_ARG_POINTER, TL_I64, reinterpret_cast<uint64_t>(out.data())}};
  tl_error* error = nullptr;
  EXPECT_EQ(launch_on(context, program, executor, nullptr, args, 3, &error), TL_OK)
      << tl_error_message(error);
  tl_error_release(error);
  return out;
}

inline Program parse(const std::string& body) {
  const Context context = make_context();
  const std::string text = "tl 1 program p\ndim n\ntensor X: i64[n] readonly\ntensor Y: i64[n]\n" + body;
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &program, &error), TL_OK)
      << tl_error_message(error);
  tl_error_release(error);
  return Program(program);
}

inline std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> list;
  for (int64_t i = 0; i < count; ++i) list.push_back((i * 37 + 5) % 61);
  return list;
}

inline void expect_everywhere(const Program& program, const std::vector<int64_t>& in,
                              int64_t (*meaning)(int64_t)) {
  std::vector<int64_t> expected;
  for (int64_t v : in) expected.push_back(meaning(v));
  for (const char* executor : kExecutors) EXPECT_EQ(run(program, executor, in), expected) << executor;
}

}  // namespace tilegen::test
