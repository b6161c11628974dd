// Digits of indices against what the indices are, point by point; and one form for equal ones.
#include "ops/index_digits.h"

#include <gtest/gtest.h>

#include <functional>

#include "check/check_program.h"
#include "ir/text.h"
#include "ops/element_view.h"

namespace tilegen::ops {
namespace {

// x[index] of the loop `i, j in 32, 64`, x a fragment of 4096.
ElementAccess access_at(const std::string& index) {
  const auto p = ir::parse_program(
      "tl 1 program p\ntensor Y: f32[32, 64]\nkernel k grid (b: 1) threads 32 {\n alloc x: fragment "
      "f32[4096]\n fill x, 0\n parallel i, j in 32, 64 { Y[i, j] = x[" +
          index + "] }\n}\n",
      "test.tl", Limits{});
  if (!p) {
    ADD_FAILURE() << p.error().to_text();
    return {};
  }
  ElementAccess found;
  ir::for_each_statement(*p, p->kernels[0].body, [&](ir::StmtId id, int) {
    if (!p->as<ir::Loop>(id)) return;
    const auto view = element_view(*p, id);
    for (const ElementAccess& a : view->accesses)
      if (!a.write) found = a;
  });
  return found;
}

bool is_known(const ElementAccess& a) { return !a.any_unknown() && !a.unknown[0].valid(); }

TEST(IndexDigits, AreTheIndex) {
  using Index = std::function<int64_t(int64_t i, int64_t j)>;
  const std::pair<const char*, Index> table[] = {
      {"j // 2", [](int64_t, int64_t j) { return j / 2; }},
      {"j % 16 + 5 * 64", [](int64_t, int64_t j) { return j % 16 + 320; }},
      {"(j // 2) % 16", [](int64_t, int64_t j) { return j / 2 % 16; }},
      {"j // 8 * 4 + j % 4", [](int64_t, int64_t j) { return j / 8 * 4 + j % 4; }},
      {"i * 64 + (j ^ 21)", [](int64_t i, int64_t j) { return i * 64 + (j ^ 21); }},
      {"63 - j", [](int64_t, int64_t j) { return 63 - j; }},
      {"(63 - j) // 4", [](int64_t, int64_t j) { return (63 - j) / 4; }},
      {"(j + 1) % 64", [](int64_t, int64_t j) { return (j + 1) % 64; }},
      {"(j + 16) % 64", [](int64_t, int64_t j) { return (j + 16) % 64; }},
      {"(j - 1) % 64", [](int64_t, int64_t j) { return (j + 63) % 64; }},
      {"(j + 3) % 8 + j // 8 * 8", [](int64_t, int64_t j) { return (j + 3) % 8 + j / 8 * 8; }},
      {"(i * 64 + j) % 128 // 32", [](int64_t i, int64_t j) { return (i * 64 + j) % 128 / 32; }},
      {"(i << 6) | (j & 48)", [](int64_t i, int64_t j) { return i * 64 + (j & 48); }},
      {"((i * 64 + j) ^ 65) // 2", [](int64_t i, int64_t j) { return ((i * 64 + j) ^ 65) / 2; }},
      {"(j | 3) * 2", [](int64_t, int64_t j) { return (j | 3) * 2; }},
      {"1984 - i * 64 + j", [](int64_t i, int64_t j) { return 1984 - i * 64 + j; }},
      {"cast(i64, cast(i32, j) // 2)", [](int64_t, int64_t j) { return j / 2; }},
      {"(2 * j + 1) // 2", [](int64_t, int64_t j) { return j; }},
      {"(8 * j + 5) % 256", [](int64_t, int64_t j) { return (8 * j + 5) % 256; }},
  };
  for (const auto& [text, index] : table) {
    const ElementAccess a = access_at(text);
    ASSERT_EQ(a.dim_of.size(), 1u) << text;
    ASSERT_TRUE(is_known(a)) << text;
    for (int64_t i = 0; i < 32; ++i)
      for (int64_t j = 0; j < 64; ++j) {
        const std::vector<int64_t> point = {i, j};
        ASSERT_EQ(a.offset[0] + a.index_at(0, point), index(i, j)) << text << " at " << i << ", " << j;
      }
  }
}

TEST(IndexDigits, AreOneForEqualIndices) {
  const std::vector<const char*> groups[] = {
      {"j // 2", "(j - j % 2) // 2", "j >> 1", "(j & 62) // 2", "(j - (j & 1)) >> 1", "(2 * j + 1) // 4"},
      {"j % 16", "j & 15", "j - j // 16 * 16", "(j + 64) % 16", "j ^ (j & 48)"},
      {"j ^ 32", "(j + 32) % 64", "32 - j // 32 * 32 + j % 32", "(j - 32) & 63"},
      {"63 - j", "j ^ 63", "bit_not(j) & 63"},
      {"i * 64 + j", "(i << 6) | j", "(i << 6) ^ j", "j + 64 * i"},
      {"j", "j // 4 * 4 + j % 4", "j ^ 0", "(j * 4) // 4", "63 - (63 - j)", "j + i - i"},
  };
  for (const auto& group : groups) {
    const ElementAccess first = access_at(group[0]);
    EXPECT_TRUE(is_known(first)) << group[0];
    for (const char* text : group) {
      const ElementAccess a = access_at(text);
      EXPECT_EQ(a.dim_of, first.dim_of) << text;
      EXPECT_EQ(a.offset, first.offset) << text;
      EXPECT_EQ(a.terms, first.terms) << text;
    }
  }
  // A variable is one, however it is written.
  EXPECT_EQ(access_at("j // 4 * 4 + j % 4 + 8").dim_of[0], 1);
  EXPECT_EQ(access_at("j // 4 * 4 + j % 4 + 8").offset[0], 8);
}

TEST(IndexDigits, AreNotTold) {
  for (const char* text : {"j * j", "j * i", "min(j, 5)", "(j + 1) // 2", "(i + j) % 64", "j ^ (j >> 1)",
                           "(j + 1) ^ 1", "63 - (j + 1) % 64", "select(j < 4, j, 0)"})
    EXPECT_FALSE(is_known(access_at(text))) << text;
}

}  // namespace
}  // namespace tilegen::ops
