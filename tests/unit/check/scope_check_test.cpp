// Where statements may stand, and what may be written.
#include <gtest/gtest.h>

#include "diagnose.h"

namespace tilegen::check {
namespace {

TEST(ScopeCheck, ParallelOp) {
  EXPECT_EQ(diagnose("parallel i in 4 { fill S, 0.0f32 } }"),
            "t.tl:6:20: error [misplaced_statement] k/i/fill#0: fill stands inside a parallel loop (move it"
            " out of the loop; a parallel loop holds no tile operations)");
}

TEST(ScopeCheck, ParallelLoop) {
  EXPECT_EQ(
      diagnose("parallel i in 4 { pipelined j in 0 .. 4 { S[i * 4 + j] = 0.0f32 } } }"),
      "t.tl:6:20: error [misplaced_statement] k/i/j: a pipelined loop stands inside a parallel loop (move"
      " it out of the loop; a parallel loop holds serial and unrolled loops only)");
}

TEST(ScopeCheck, StoreOutside) {
  EXPECT_EQ(diagnose("S[0] = 0.0f32 }"),
            "t.tl:6:2: error [misplaced_statement] k/store#0: a store to S (shared) stands outside a"
            " parallel loop (put it into a parallel loop, or use fill or copy)");
}

TEST(ScopeCheck, StoreOutsideFrag) {
  EXPECT_EQ(diagnose("V[0] = 0.0f32 }"),
            "t.tl:6:2: error [misplaced_statement] k/store#0: a store to V (fragment) stands outside a"
            " parallel loop (put it into a parallel loop, or use fill or copy)");
}

TEST(ScopeCheck, FragLoadOutside) {
  EXPECT_EQ(diagnose("fill V, 0.0f32 L[0] = cast(i64, V[0]) }"),
            "t.tl:6:17: error [scope_not_allowed] k/store#0: an element of V (fragment) is read outside a"
            " parallel loop (copy it into a shared buffer and read that, or read it inside a parallel loop)");
}

TEST(ScopeCheck, ReadonlyStore) {
  EXPECT_EQ(diagnose("R[0] = 0.0f32 }"),
            "t.tl:6:2: error [write_to_input] k/store#0: tensor R is readonly and written here (declare it"
            " without readonly, or write another tensor)");
}

// Named as it is declared.
TEST(ScopeCheck, ConstantTensor) {
  EXPECT_EQ(diagnose(parsed("tl 1 program p tensor T: f32[64] constant\nkernel k grid(b: 1) {\n"
                            " fill T, 0.0f32 }")),
            "t.tl:3:2: error [write_to_input] k/fill#0: tensor T is constant and written here (declare it"
            " without constant, or write another tensor)");
}

TEST(ScopeCheck, ReadonlyOp) {
  EXPECT_EQ(diagnose("fill R, 0.0f32 }"),
            "t.tl:6:2: error [write_to_input] k/fill#0: tensor R is readonly and written here (declare it"
            " without readonly, or write another tensor)");
}

TEST(ScopeCheck, ParallelExtent) {
  EXPECT_EQ(diagnose("parallel i in 0 { S[i] = 0.0f32 } }"),
            "t.tl:6:2: error [bad_shape] k/i: the extent of i is not a positive constant (parallel loops"
            " have constant extents of at least 1; guard the rest with an if)");
}

TEST(ScopeCheck, UnrollConst) {
  EXPECT_EQ(diagnose("unroll i in 0 .. N { L[0] = i } }"),
            "t.tl:6:2: error [bad_shape] k/i: the extent of a loop of kind unroll is not a constant (use a"
            " serial loop)");
}

TEST(ScopeCheck, VectorConst) {
  EXPECT_EQ(diagnose("vectorized i in 0 .. x { L[0] = i } }"),
            "t.tl:6:2: error [bad_shape] k/i: the extent of a loop of kind vectorized is not a constant (use"
            " a serial loop)");
}

TEST(ScopeCheck, UnrollLimit) {
  EXPECT_EQ(diagnose("unroll i in 0 .. 256 { unroll j in 0 .. 256 { L[0] = i } } }"),
            "t.tl:6:25: error [limit_unroll] k/i/j: nested unrolled loops make 65536 copies, the limit is"
            " 16384 (make an outer loop serial)");
}

TEST(ScopeCheck, TwoErrors) {
  EXPECT_EQ(diagnose("S[0] = 0.0f32 fill As, 0.0f32 copy V -> S[1 :+ 64] }"),
            "t.tl:6:2: error [misplaced_statement] k/store#0: a store to S (shared) stands outside a"
            " parallel loop (put it into a parallel loop, or use fill or copy)\n"
            "t.tl:6:16: error [dtype_mismatch] k/fill#0: the value is f32, dst As[64, 64] (f16, shared)"
            " needs f16 (cast the value to f16)\n"
            "t.tl:6:32: error [index_out_of_bounds] k/copy#0: dimension 0 of the region of S starts at 1"
            " with extent 64, the buffer's extent is 64 (only regions of global tensors may hang over the"
            " edge; make the region smaller)");
}

}  // namespace
}  // namespace tilegen::check
