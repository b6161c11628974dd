// Boxes of the copy engine whose rows are several dimensions of the tensor.
#include "analysis/tensor_copy.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace tilegen::analysis {
namespace {

using Box = std::optional<std::vector<int64_t>>;

Box box(std::vector<int64_t> extents) { return extents; }

// Of X: f16[a, b, c, d], d divisible by 8; a tile of f16.
std::string text_of(const std::string& box, const std::string& tile) {
  return "tl 1 program p\ndim a\ndim b\ndim c\ndim d divisible 8\ntensor X: f16[a, b, c, d] readonly\n"
         "tensor Y: f16[a, b, c, d]\nkernel k grid(x: 4) {\nalloc t: shared f16[" +
         tile + "]\ncopy X[" + box + "] -> t\ncopy t -> Y[" + box + "]\n}\n";
}

std::optional<TensorCopyDims> dims_of(const std::string& box, const std::string& tile, std::string* why) {
  const auto p = ir::parse_program(text_of(box, tile), "t.tl", Limits());
  EXPECT_TRUE(p) << p.error().to_text();
  return tensor_copy_dims(*p, *p->as<ir::TileOp>(p->kernels[0].body[0]), why);
}

TEST(TensorCopyDims, RowsOfSeveralDimensions) {
  std::string why;
  const auto dims = dims_of("x :+ 2, x :+ 4, x - 1 :+ 16, 0 :+ 64", "128, 64", &why);
  ASSERT_TRUE(dims) << why;
  ASSERT_EQ(dims->tensor_outer.size(), 3u);
  for (int d = 0; d < 3; ++d) EXPECT_EQ(dims->tensor_outer[static_cast<size_t>(d)].dim, d);
  EXPECT_EQ(dims->tensor_inner, 3);
  EXPECT_EQ(dims->tile_outer, 0);
  EXPECT_EQ(dims->tile_inner, 1);
  EXPECT_EQ(dims->box_of_rows(128), box({2, 4, 16}));
  EXPECT_EQ(dims->box_of_rows(64), box({1, 4, 16}));
  EXPECT_EQ(dims->box_of_rows(32), box({1, 2, 16}));
  EXPECT_EQ(dims->box_of_rows(8), box({1, 1, 8}));
  EXPECT_EQ(dims->box_of_rows(1), box({1, 1, 1}));
  EXPECT_EQ(dims->box_of_rows(48), Box());   // three times 16 of 4
  EXPECT_EQ(dims->box_of_rows(12), Box());   // over the end of a row
  EXPECT_EQ(dims->box_of_rows(256), Box());  // more than there are
}

TEST(TensorCopyDims, OneRowAndOneDimensionOfRows) {
  std::string why;
  const auto row = dims_of("x :+ 1, 0 :+ 1, 0 :+ 1, 0 :+ 64", "64", &why);
  ASSERT_TRUE(row) << why;
  EXPECT_TRUE(row->tensor_outer.empty());
  EXPECT_EQ(row->box_of_rows(1), box({}));
  const auto rows = dims_of("x :+ 1, 0 :+ 32, 0 :+ 1, 0 :+ 64", "32, 64", &why);
  ASSERT_TRUE(rows) << why;
  ASSERT_EQ(rows->tensor_outer.size(), 1u);
  EXPECT_EQ(rows->tensor_outer[0].dim, 1);
  EXPECT_EQ(rows->box_of_rows(8), box({8}));
}

TEST(TensorCopyDims, Refusals) {
  const auto expect = [](const std::string& box, const std::string& tile, const std::string& words) {
    std::string why;
    EXPECT_FALSE(dims_of(box, tile, &why)) << box;
    EXPECT_NE(why.find(words), std::string::npos) << why;
  };
  expect("0 :+ 1, 0 :+ 4, 0 :+ 16, 0 :+ 64", "4, 16, 64", "more than two dimensions of several elements");
  expect("0 :+ 1, 0 :+ 1, 0 :+ 16, 0 :+ 64", "1024", "rows of its tile are several of tensor 'X'");
  expect("0 :+ 1, 0 :+ 4, 0 :+ 16, 0 :+ 1", "64", "one element along the dense dimension");
}

// Rows that no box has are split into boxes that there are.
TEST(TensorBoxes, FollowTheTensorsDimensions) {
  std::string why;
  const auto dims = dims_of("0 :+ 1, 0 :+ 3, 0 :+ 128, 0 :+ 64", "384, 64", &why);
  ASSERT_TRUE(dims) << why;
  const auto boxed = layout::boxed_tile({384, 64}, 1, 0, 2, 128);
  ASSERT_TRUE(boxed);
  const auto whole = layout::tensor_tile(*boxed, 1, 2, &why);
  ASSERT_TRUE(whole) << why;
  EXPECT_EQ(whole->rows, 192);
  const auto boxes = tensor_boxes(*dims, *boxed, 2, &why);
  ASSERT_TRUE(boxes) << why;
  EXPECT_EQ(boxes->rows, 64);  // 96 rows are over the end of 128
  EXPECT_EQ(boxes->row_boxes, 6);
  EXPECT_EQ(boxes->row_stride, 64 * 64);
  const auto odd = dims_of("0 :+ 1, 0 :+ 32, 0 :+ 3, 0 :+ 64", "96, 64", &why);
  ASSERT_TRUE(odd) << why;
  const auto of_odd = layout::boxed_tile({96, 64}, 1, 0, 2, 128);
  ASSERT_TRUE(of_odd);
  EXPECT_EQ(tensor_boxes(*odd, *of_odd, 2, &why)->rows, 96);
}

}  // namespace
}  // namespace tilegen::analysis
