// Programs of a block of threads, against the same in C++, on every executor.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_everywhere.h"

namespace tilegen::test {

inline constexpr int64_t kThreads = 128;
inline constexpr const char* kMore[] = {"", "host", "sim:sm_80", "sim:sm_90a", "sim:gfx942"};

// What thread t of block b gives, of all inputs (0 beyond their end).
using Meaning = int64_t (*)(const std::vector<int64_t>& in, int64_t first, int64_t t);

inline std::vector<int64_t> padded(std::vector<int64_t> in) {
  in.resize((in.size() + kThreads - 1) / kThreads * kThreads, 0);
  return in;
}

inline void expect_threads(const Program& program, Meaning meaning) {
  for (const int64_t count : {kThreads, int64_t{300}}) {
    const std::vector<int64_t> in = numbers(count), all = padded(in);
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < count; ++i)
      expected.push_back(meaning(all, i / kThreads * kThreads, i % kThreads));
    for (const char* executor : kMore) EXPECT_EQ(run(program, executor, in), expected) << executor;
  }
}

// Y[b * 128 + t] = what `make` gives of X's element there.
template <class Make>
Program of_threads(int64_t lanes, const Make& make, std::string* mistake = nullptr,
                   int64_t threads = kThreads) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n"), size = tl_index(b, kThreads);
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kThreads - 1)), size);
  tl_expr block, ids[2];
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, threads, nullptr, &block);
  const int64_t extents[] = {kThreads / lanes, lanes};
  const tl_scope scope = tl_begin_threads(b, 2, extents, nullptr, ids);
  const tl_expr t = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, ids[0], tl_index(b, lanes)), ids[1]);
  const tl_expr at = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, block, size), t);
  tl_store(b, y, 1, &at, make(b, tl_load(b, x, 1, &at), ids));
  tl_end(b, scope);
  tl_end(b, kernel);
  return made_by(owner, mistake);
}

}  // namespace tilegen::test
