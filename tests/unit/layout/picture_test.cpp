#include "layout/picture.h"

#include <gtest/gtest.h>

namespace tilegen::layout {
namespace {

TEST(Picture, LayoutGrid) {
  EXPECT_EQ(layout_grid(Layout::row_major(std::vector<int64_t>{2, 6})),
            "(2,6) -> [0: d0/1%2*6 + d1/1%6*1]\n"
            "  |  0  1  2  3  4  5\n"
            "--+------------------\n"
            "0 |  0  1  2  3  4  5\n"
            "1 |  6  7  8  9 10 11\n");
  EXPECT_EQ(layout_grid(Layout::row_major({})), "() -> [0: 0]\n  | 0\n--+--\n0 | 0\n");
}

TEST(Picture, CutAndSliced) {
  EXPECT_EQ(layout_grid(Layout::row_major(std::vector<int64_t>{3, 4, 5}), 2, 3),
            "(3,4,5) -> [0: d0/1%3*20 + d1/1%4*5 + d2/1%5*1]\n"
            "  | 0 1 2\n"
            "--+------\n"
            "0 | 0 1 2\n"
            "1 | 5 6 7\n"
            "(the last two of 3 dimensions, at index 0 of the others; 2 x 3 of 4 x 5)\n");
}

TEST(Picture, FragmentGrid) {
  const Fragment f = Fragment::row_major_vectors(std::vector<int64_t>{2, 4}, 8, 2);
  EXPECT_EQ(fragment_grid(f),
            "threads 8 : (2,4) -> [0: d0/1%2*2 + d1/2%2*1; 1: d1/1%2*1; r: o0/1%2*4]\n"
            "  |       0       1       2       3\n"
            "--+--------------------------------\n"
            "0 | T0:R0+1 T0:R1+1 T1:R0+1 T1:R1+1\n"
            "1 | T2:R0+1 T2:R1+1 T3:R0+1 T3:R1+1\n");
}

TEST(Picture, Svg) {
  EXPECT_EQ(
      layout_svg(Layout::row_major(std::vector<int64_t>{1, 2})),
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"170\" height=\"110\" font-family=\"monospace\" "
      "font-size=\"11\">\n"
      "<text x=\"4\" y=\"16\" text-anchor=\"start\">(1,2) -&gt; [0: d1/1%2*1]</text>\n"
      "<text x=\"54\" y=\"44\" text-anchor=\"middle\">0</text>\n"
      "<text x=\"82\" y=\"44\" text-anchor=\"middle\">1</text>\n"
      "<text x=\"34\" y=\"64\" text-anchor=\"end\">0</text>\n"
      "<rect x=\"40\" y=\"50\" width=\"28\" height=\"20\" fill=\"hsl(0,70%,80%)\" stroke=\"#888\"/>\n"
      "<text x=\"54\" y=\"64\" text-anchor=\"middle\">0</text>\n"
      "<rect x=\"68\" y=\"50\" width=\"28\" height=\"20\" fill=\"hsl(0,70%,80%)\" stroke=\"#888\"/>\n"
      "<text x=\"82\" y=\"64\" text-anchor=\"middle\">1</text>\n"
      "<rect x=\"40\" y=\"82\" width=\"14\" height=\"14\" fill=\"hsl(0,70%,80%)\" stroke=\"#888\"/>\n"
      "<text x=\"60\" y=\"94\" text-anchor=\"start\">bank 0</text>\n"
      "</svg>\n");
  const std::string svg = fragment_svg(Fragment::replicated(std::vector<int64_t>{2, 2}, 4));
  size_t boxes = 0;
  for (size_t at = svg.find("<rect"); at != std::string::npos; at = svg.find("<rect", at + 1)) ++boxes;
  EXPECT_EQ(boxes, 5u);  // four cells and one legend entry
  EXPECT_NE(svg.find(">T0:R3+3<"), std::string::npos);
  EXPECT_NE(svg.find(">thread 0<"), std::string::npos);
  const Fragment many = Fragment::row_major_vectors(std::vector<int64_t>{16, 16}, 256, 1);
  EXPECT_NE(fragment_svg(many).find(">192 more colours<"), std::string::npos);
}

}  // namespace
}  // namespace tilegen::layout
