// What estimates take sizes to be where none are given.
#include "cost/sizes.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace tilegen::cost {
namespace {

TEST(Sizes, OptionalTensorsArePassed) {
  const auto p = ir::parse_program(
      "tl 1 program p\ndim n\ntensor Z: f32[n] optional\nkernel k grid (b: select(present(Z), n, 0)) {\n"
      "  if present(Z) { Z[b] = 0.0 }\n}\n",
      "p.tl", Limits());
  ASSERT_TRUE(p) << p.error().to_text();
  const ir::ExprId grid = p->kernels[0].grid[0];
  EXPECT_EQ(SizedProgram(*p, {}).value(grid), kNominalSize);
  EXPECT_EQ(SizedProgram(*p, {{"n", 9}}).value(grid), 9);
  EXPECT_EQ(SizedProgram(*p, {{"n", 9}, {"present(Z)", 0}}).value(grid), 0);
}

}  // namespace
}  // namespace tilegen::cost
