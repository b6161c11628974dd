// Who holds what, by enumeration, and the accumulator the tests build on.
#pragma once

#include <gtest/gtest.h>

#include "naive.h"

namespace tilegen::layout::naive {

// lane = 4 * (row % 8) + (col % 8) / 2, register = 2 * (row / 8) + col % 2: the accumulator of mma.m16n8k16.
inline Fragment mma_accumulator() {
  auto map = Layout::make(
      {16, 8},
      {{0, 8, 1, kThread, 4}, {0, 2, 8, kRegister, 2}, {1, 2, 1, kRegister, 1}, {1, 4, 2, kThread, 1}}, 2);
  EXPECT_TRUE(map);
  auto f = Fragment::make(*map, 32);
  EXPECT_TRUE(f);
  return *f;
}

struct Holding {
  std::set<int64_t> threads;
  int64_t reg = 0;
};

inline Holding holding(const Fragment& f, const Point& p) {
  Holding h;
  for (int64_t r = 0; r < f.replicas(); ++r) {
    const Point at = naive::eval(f.map(), p, r);
    h.threads.insert(at[kThread]);
    h.reg = at[kRegister];
  }
  return h;
}

}  // namespace tilegen::layout::naive
