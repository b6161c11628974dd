// Boxes of the copy engine against the layouts they stand for, element by element.
#include "layout/tensor_tile.h"

#include <gtest/gtest.h>

namespace tilegen::layout {
namespace {

// Byte of an element as the engine places it: dense rows of the box, 16-byte units XORed by the row.
int64_t engine_byte(const TensorTile& t, int64_t row, int64_t column, int bytes) {
  const int64_t box = (row / t.rows * t.row_stride + column / t.inner * t.column_stride) * bytes;
  int64_t at = (row % t.rows * t.inner + column % t.inner) * bytes;
  const int64_t units = t.swizzle / 16;
  if (units > 0) at ^= (at / 128 % units) * 16;
  return box + at;
}

void expect_same(const Layout& l, int inner_dim, int bytes, const TensorTile& t) {
  const int outer_dim = 1 - inner_dim;
  const int64_t rows = l.shape()[static_cast<size_t>(outer_dim)],
                columns = l.shape()[static_cast<size_t>(inner_dim)];
  ASSERT_EQ(t.rows * t.row_boxes, rows);
  ASSERT_EQ(t.inner * t.column_boxes, columns);
  EXPECT_LE(t.rows, 256);
  EXPECT_LE(t.inner, 256);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      std::vector<int64_t> index(2);
      index[static_cast<size_t>(outer_dim)] = r;
      index[static_cast<size_t>(inner_dim)] = c;
      ASSERT_EQ(engine_byte(t, r, c, bytes), l.offset(index) * bytes)
          << l.to_text() << " at " << r << ", " << c;
    }
}

// `columns` along dimension 1 in boxes of `box` columns, one after the other.
Layout boxes(int64_t rows, int64_t columns, int64_t box, int swizzle_bits, int bytes) {
  auto l = Layout::make({rows, columns},
                        {{1, box, 1, 0, 1}, {0, rows, 1, 0, box}, {1, columns / box, box, 0, rows * box}}, 1,
                        {swizzle_bits, 4, 3}, bytes);
  EXPECT_TRUE(l) << l.error().to_text();
  return *l;
}

TEST(TensorTile, BoxesPutEveryElementWhereTheLayoutSays) {
  for (int bytes : {1, 2, 4})
    for (int bits : {0, 1, 2, 3})
      for (int64_t rows : {8, 64, 128, 512})
        for (int64_t count : {1, 2, 5}) {
          const int64_t box = (16 << bits) / bytes;
          if (bits == 0 && (rows < 64 || box * rows * bytes % 128 != 0)) continue;
          const Layout l = boxes(rows, box * count, box, bits, bytes);
          std::string why;
          const auto t = tensor_tile(l, 1, bytes, &why);
          ASSERT_TRUE(t) << l.to_text() << ": " << why;
          EXPECT_EQ(t->swizzle, bits == 0 ? 0 : 16 << bits);
          expect_same(l, 1, bytes, *t);
        }
}

TEST(TensorTile, PlainTilesAreOneBoxOrAFew) {
  const Layout plain = Layout::row_major(std::vector<int64_t>{48, 80});
  const auto t = tensor_tile(plain, 1, 2, nullptr);
  ASSERT_TRUE(t);
  EXPECT_EQ(*t, (TensorTile{80, 48, 1, 1, 0, 0, 0}));
  expect_same(plain, 1, 2, *t);

  const Layout transposed = Layout::column_major(std::vector<int64_t>{64, 512});
  const auto u = tensor_tile(transposed, 0, 2, nullptr);
  ASSERT_TRUE(u);
  EXPECT_EQ(u->rows, 256);
  EXPECT_EQ(u->row_boxes, 2);
  expect_same(transposed, 0, 2, *u);

  const auto line = tensor_tile(Layout::row_major(std::vector<int64_t>{1024}), 0, 4, nullptr);
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, (TensorTile{256, 1, 1, 4, 0, 256, 0}));
}

TEST(TensorTile, WhatTheEngineCannotDoIsRefusedWithAReason) {
  const std::vector<int64_t> shape = {64, 64};
  auto why = [&](const Layout& l, int inner, int bytes) {
    std::string reason;
    EXPECT_FALSE(tensor_tile(l, inner, bytes, &reason)) << l.to_text();
    return reason;
  };
  EXPECT_EQ(why(Layout::padded_row_major(shape, 8), 1, 2),
            "the tile's rows do not follow each other closely");
  EXPECT_EQ(why(Layout::row_major(shape), 0, 2),
            "the tile is not contiguous along the tensor's dense dimension");
  EXPECT_EQ(why(Layout::row_major(std::vector<int64_t>{64, 512}), 1, 2),
            "rows of more than 256 elements that are not split into boxes");
  EXPECT_EQ(why(Layout::row_major(std::vector<int64_t>{64, 4}), 1, 2), "rows of 8 bytes, no multiple of 16");
  EXPECT_EQ(why(*Layout::row_major(std::vector<int64_t>{64, 128}).with_swizzle({3, 4, 3}, 2), 1, 2),
            "rows of 256 bytes that are not split into boxes of the swizzle's 128");
  EXPECT_EQ(why(*Layout::row_major(shape).with_swizzle({3, 4, 4}, 2), 1, 2),
            "the tile's swizzle is none of the copy engine's");
  EXPECT_EQ(why(*Layout::row_major(std::vector<int64_t>{4, 64}).with_swizzle({3, 4, 3}, 2), 1, 2),
            "the tile's rows cannot be split into boxes of whole repeats of the swizzle");
  EXPECT_EQ(why(Layout::row_major(std::vector<int64_t>{4, 4, 64}), 2, 2),
            "more than two dimensions of the tile have several elements");
}

}  // namespace
}  // namespace tilegen::layout
