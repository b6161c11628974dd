// What the tables of barriers that programs name have in common: a dim m, and a target beside the usual ones.
#pragma once

#include "matrix.h"

namespace tilegen::differential {

// With dim m; each with a seed of its own.
inline std::vector<Launch> launches_of_m(const std::vector<int64_t>& sizes) {
  std::vector<Launch> all;
  for (const int64_t m : sizes) {
    Launch l = seeds({all.size() + 1}).front();
    l.dims = {{"m", m}};
    l.magnitude = 30;
    all.push_back(std::move(l));
  }
  return all;
}

// AMD targets have no such barriers: what they run meets at barriers of the block.
inline void expect_agree_everywhere(const std::string& text, const std::vector<int64_t>& sizes) {
  const std::vector<Launch> launches = launches_of_m(sizes);
  expect_agree(text, launches);
  if (take_case) return;
  Subject subject(text, {"sim:gfx942"});
  ASSERT_EQ(subject.invalid(), "") << text;
  for (const Launch& l : launches) expect_agree(subject, text, l);
}

}  // namespace tilegen::differential
