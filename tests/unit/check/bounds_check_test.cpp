// Indices and regions of on-chip buffers: refused only when certain.
#include <gtest/gtest.h>

#include "diagnose.h"

namespace tilegen::check {
namespace {

TEST(BoundsCheck, Accepts) {
  for (const char* body :
       {"parallel i in 64 { if i < 63 { S[i + 1] = 0.0f32 } } }",
        "fill S, 0.0f32 parallel i in 64 { V[i] = select(i < 32, S[i * 2], 0.0f32) } }",
        "fill S, 0.0f32 serial i in 0 .. N { L[0] = cast(i64, S[i]) } }",
        "fill S, 0.0f32 parallel i in 256 { C[0, i] = S[i % 64] } }",
        "serial i in 0 .. 2 { fill As[i * 32 :+ 32, 0 :+ 64], 0.0f16 } }",
        "serial i in 0 .. 0 { fill S[i + 60 :+ 32], 0.0f32 } }", "fill S, 0.0f32 L[0] = cast(i64, S[N]) }",
        "fill S, 0.0f32 parallel i in 64 { V[i] = S[i // 8 * 8 + 7 - i % 8] } }"})
    EXPECT_EQ(diagnose(body), "") << body;
}

TEST(BoundsCheck, IndexOut) {
  EXPECT_EQ(diagnose("parallel i in 64 { S[i + 1] = 0.0f32 } }"),
            "t.tl:6:21: error [index_out_of_bounds] k/i/store#0: index 0 of S is 1 to 64, legal is 0 to 63"
            " (guard the access with an if, or make the buffer larger)");
}

TEST(BoundsCheck, IndexOutNeg) {
  EXPECT_EQ(diagnose("parallel i in 64 { S[i - 64] = 0.0f32 } }"),
            "t.tl:6:21: error [index_out_of_bounds] k/i/store#0: index 0 of S is -64 to -1, legal is 0 to 63"
            " (guard the access with an if, or make the buffer larger)");
}

TEST(BoundsCheck, IndexOutGuarded) {
  EXPECT_EQ(diagnose("parallel i in 64 { if i < N { S[i + 64] = 0.0f32 } } }"),
            "t.tl:6:32: error [index_out_of_bounds] k/i/if#0/store#0: index 0 of S is 64 to 127, legal is 0"
            " to 63 (guard the access with an if, or make the buffer larger)");
}

TEST(BoundsCheck, IndexLoad) {
  EXPECT_EQ(diagnose("fill S, 0.0f32 parallel i in 64 { V[i] = S[i * 2] } }"),
            "t.tl:6:36: error [index_out_of_bounds] k/i/store#0: index 0 of S is 0 to 126, legal is 0 to 63"
            " (guard the access with an if, or make the buffer larger)");
}

TEST(BoundsCheck, IndexSym) {
  EXPECT_EQ(diagnose("fill S, 0.0f32 serial i in 64 .. N { L[0] = cast(i64, S[i]) } }"),
            "t.tl:6:39: error [index_out_of_bounds] k/i/store#0: index 0 of S is 64 to inf, legal is 0 to 63"
            " (guard the access with an if, or make the buffer larger)");
}

TEST(BoundsCheck, IndexDiv) {
  EXPECT_EQ(diagnose("fill S, 0.0f32 parallel i in 256 { C[0, i] = S[i // 2] } }"),
            "t.tl:6:37: error [index_out_of_bounds] k/i/store#0: index 0 of S is 0 to 127, legal is 0 to 63"
            " (guard the access with an if, or make the buffer larger)");
}

TEST(BoundsCheck, RegionOut) {
  EXPECT_EQ(diagnose("fill As[32 :+ 64, 0 :+ 64], 0.0f16 }"),
            "t.tl:6:2: error [index_out_of_bounds] k/fill#0: dimension 0 of the region of As starts at 32"
            " with extent 64, the buffer's extent is 64 (only regions of global tensors may hang over the"
            " edge; make the region smaller)");
}

TEST(BoundsCheck, RegionOutVar) {
  EXPECT_EQ(diagnose("serial i in 0 .. 4 { fill As[i * 32 :+ 32, 0 :+ 64], 0.0f16 } }"),
            "t.tl:6:23: error [index_out_of_bounds] k/i/fill#0: dimension 0 of the region of As starts at 0"
            " to 96 with extent 32, the buffer's extent is 64 (only regions of global tensors may hang over"
            " the edge; make the region smaller)");
}

TEST(BoundsCheck, IndexLocal) {
  EXPECT_EQ(diagnose("serial i in 0 .. 5 { L[i] = 0 } }"),
            "t.tl:6:23: error [index_out_of_bounds] k/i/store#0: index 0 of L is 0 to 4, legal is 0 to 3"
            " (guard the access with an if, or make the buffer larger)");
}

TEST(BoundsCheck, IndexBlock) {
  EXPECT_EQ(diagnose("fill S, 0.0f32 L[0] = cast(i64, S[x * 32]) }"),
            "t.tl:6:17: error [index_out_of_bounds] k/store#0: index 0 of S is 0 to 96, legal is 0 to 63"
            " (guard the access with an if, or make the buffer larger)");
}

TEST(BoundsCheck, IndexPair) {
  EXPECT_EQ(diagnose("parallel i, j in 8, 8 { S[i * 8 + j + 1] = 0.0f32 } }"),
            "t.tl:6:26: error [index_out_of_bounds] k/i.j/store#0: index 0 of S is 1 to 64, legal is 0 to 63"
            " (guard the access with an if, or make the buffer larger)");
}

}  // namespace
}  // namespace tilegen::check
