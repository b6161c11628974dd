#include "layout/from_offsets.h"

#include <gtest/gtest.h>

#include <functional>

namespace tilegen::layout {
namespace {

using Rule = std::function<int64_t(int64_t, int64_t)>;

Expected<Layout> made(int64_t rows, int64_t columns, const Rule& rule, int element_bytes = 2) {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) offsets.push_back(rule(i, j));
  const int64_t shape[] = {rows, columns};
  return layout_of_offsets(shape, offsets, element_bytes);
}

void expect_text(const Expected<Layout>& l, const std::string& text) {
  ASSERT_TRUE(l) << l.error().to_text();
  EXPECT_EQ(l->to_text(), text);
}

TEST(LayoutOfOffsets, SumsOfDigits) {
  expect_text(made(8, 4, [](int64_t i, int64_t j) { return i * 4 + j; }),
              "(8,4) -> [0: d0/1%8*4 + d1/1%4*1]");
  expect_text(made(8, 4, [](int64_t i, int64_t j) { return i * 6 + j; }),
              "(8,4) -> [0: d0/1%8*6 + d1/1%4*1]");
  expect_text(made(8, 4, [](int64_t i, int64_t j) { return j * 8 + i; }),
              "(8,4) -> [0: d0/1%8*1 + d1/1%4*8]");
  expect_text(made(8, 8, [](int64_t i, int64_t j) { return j / 4 * 32 + i * 4 + j % 4; }),
              "(8,8) -> [0: d0/1%8*4 + d1/1%4*1 + d1/4%2*32]");
  // The last digit is padded; one row, one column.
  expect_text(made(7, 5, [](int64_t i, int64_t j) { return i / 2 * 16 + i % 2 * 8 + j; }),
              "(7,5) -> [0: d0/1%7*8 + d1/1%5*1]");
  expect_text(made(5, 2, [](int64_t i, int64_t j) { return i / 2 * 16 + i % 2 * 2 + j; }),
              "(5,2) -> [0: d0/1%2*2 + d0/2%3*16 + d1/1%2*1]");
  expect_text(made(1, 4, [](int64_t, int64_t j) { return j; }), "(1,4) -> [0: d1/1%4*1]");
}

// Every swizzle of every type is found from its offsets.
TEST(LayoutOfOffsets, Swizzles) {
  for (int bytes : {1, 2, 4, 8})
    for (int bits = 1; bits <= 3; ++bits) {
      const int64_t columns = 128 / bytes;
      const int64_t shape[] = {32, columns};
      const auto asked = Layout::row_major(shape).with_swizzle({bits, 4, 3}, bytes);
      ASSERT_TRUE(asked);
      const auto l = made(
          32, columns,
          [&](int64_t i, int64_t j) {
            const int64_t at[] = {i, j};
            return asked->offset(at);
          },
          bytes);
      ASSERT_TRUE(l) << l.error().to_text();
      for (int64_t i = 0; i < 32; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t at[] = {i, j};
          ASSERT_EQ(l->offset(at), asked->offset(at)) << bytes << " " << bits;
        }
    }
}

void expect_refused(const Expected<Layout>& l, const std::string& words) {
  ASSERT_FALSE(l) << l->to_text();
  EXPECT_NE(l.error().to_text().find(words), std::string::npos) << l.error().to_text();
}

TEST(LayoutOfOffsets, WhatItRefuses) {
  expect_refused(made(8, 4, [](int64_t i, int64_t j) { return i * 4 + j + 1; }),
                 "element (0, 0) is at offset 1, not at 0");
  expect_refused(made(8, 4, [](int64_t i, int64_t j) { return i * 4 - j; }),
                 "element (0, 1) is at offset -1");
  expect_refused(made(8, 4, [](int64_t i, int64_t j) { return i * j; }), "offset");
  expect_refused(made(8, 4, [](int64_t i, int64_t j) { return i * i * 4 + j; }), "do not go on by digits");
  expect_refused(made(8, 8, [](int64_t i, int64_t j) { return i * 8 + (j + i) % 8; }),
                 "element (1, 7) is at offset 8");
}

TEST(FragmentOfPlaces, ThreadsAndRegisters) {
  const std::vector<int64_t> shape{8, 12};
  const auto places = [&](auto place) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < 8; ++i)
      for (int64_t j = 0; j < 12; ++j) all.push_back(place(i, j));
    return all;
  };
  // Sixteen threads of six registers.
  const auto f =
      fragment_of_places(shape, places([](int64_t i, int64_t j) { return (i * 2 + j % 2) * 6 + j / 2; }), 16);
  ASSERT_TRUE(f) << f.error().to_text();
  EXPECT_EQ(f->registers(), 6);
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 12; ++j) {
      const int64_t at[] = {i, j};
      EXPECT_EQ(f->holders(at), std::vector<int64_t>{i * 2 + j % 2});
      EXPECT_EQ(f->register_of(at), j / 2);
    }
  const auto refused = [&](const std::vector<int64_t>& all, int64_t threads, const std::string& words) {
    const auto made = fragment_of_places(shape, all, threads);
    ASSERT_FALSE(made) << made->to_text();
    EXPECT_NE(made.error().to_text().find(words), std::string::npos) << made.error().to_text();
  };
  const auto rows = places([](int64_t i, int64_t j) { return i * 12 + j; });
  refused(rows, 5, "96 elements are no whole registers of 5 threads");
  refused(rows, 0, "no whole registers");
  refused(places([](int64_t i, int64_t j) { return i / 2 * 12 + j; }), 16, "once");
  refused(places([](int64_t i, int64_t j) { return j * 8 + (i ^ j % 4); }), 16, "XOR");
}

}  // namespace
}  // namespace tilegen::layout
