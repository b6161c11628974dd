// Which copies of accumulators store matrices.
#include "schedule/memory/matrix_stores.h"

#include "plan_support.h"

namespace tilegen::schedule {
namespace {

struct Parts {
  std::string type = "f16";  // of the tile
  std::string into = "Cs";   // the tile, or a part of it
  std::string from = "acc";
  int k = 32;
};

Expected<plan::Schedule> plan_of(const Parts& t, const char* target, const plan::Schedule* given = nullptr) {
  auto p = program_from(
      "tl 1 program p\ndim n divisible 64\ntensor A: f16[n, 32] readonly\ntensor B: f16[32, n] readonly\n"
      "tensor C: " +
      t.type +
      "[n, n]\nkernel g grid (by: ceildiv(n, 64), bx: ceildiv(n, 64)) threads 128 {\n"
      " alloc As: shared f16[64, 32]\n alloc Bs: shared f16[32, 64]\n alloc Cs: shared " +
      t.type +
      "[64, 64]\n alloc acc: fragment f32[64, 64]\n"
      " copy A[by * 64 :+ 64, 0 :+ 32] -> As\n copy B[0 :+ 32, bx * 64 :+ 64] -> Bs\n"
      " gemm As, Bs -> acc {clear}\n copy " +
      t.from + " -> " + t.into + "\n copy Cs -> C[by * 64 :+ 64, bx * 64 :+ 64]\n}\n");
  EXPECT_TRUE(p);
  return plan_for(*p, target, given);
}

bool stores_matrices(const Parts& t, const char* target = "sm_90", const plan::Schedule* given = nullptr) {
  auto s = plan_of(t, target, given);
  EXPECT_TRUE(s) << s.error().to_text();
  return s && plan::find_op(s->kernels[0], "g/copy#2")->matrix_stores.value_or(false);
}

TEST(MatrixStores, OfWholeAccumulatorsOfTwoByteElements) {
  EXPECT_TRUE(stores_matrices({}));
  EXPECT_TRUE(stores_matrices({}, "sm_90a"));
  EXPECT_TRUE(stores_matrices({.type = "bf16"}));
  EXPECT_FALSE(stores_matrices({}, "sm_80")) << "no such instruction";
  EXPECT_FALSE(stores_matrices({.type = "f32"})) << "four bytes";
  EXPECT_FALSE(stores_matrices({.into = "Cs[0 :+ 32, 0 :+ 64]", .from = "acc[0 :+ 32, 0 :+ 64]"}))
      << "a part";
}

TEST(MatrixStores, AsTheTileLies) {
  const auto given = [](const char* layout) {
    plan::Schedule s;
    s.kernels = {
        {.kernel = "g", .values = {{.value = "g:Cs", .memory = *layout::Layout::from_text(layout)}}}};
    return s;
  };
  const plan::Schedule columns = given("(64,64) -> [0: d0/1%64*1 + d1/1%64*64]@2"),
                       padded = given("(64,64) -> [0: d0/1%64*72 + d1/1%64*1]@2"),
                       misaligned = given("(64,64) -> [0: d0/1%64*68 + d1/1%64*1]@2");
  EXPECT_TRUE(stores_matrices({}, "sm_90", &columns));
  EXPECT_TRUE(stores_matrices({}, "sm_90", &padded));
  EXPECT_FALSE(stores_matrices({}, "sm_90", &misaligned)) << "rows of 136 bytes";
}

TEST(MatrixStores, TheGivenIsTaken) {
  plan::Schedule given;
  given.kernels = {{.kernel = "g", .ops = {{.op = "g/copy#2", .matrix_stores = false}}}};
  EXPECT_FALSE(stores_matrices({}, "sm_90", &given));
  given.kernels[0].ops[0].matrix_stores = true;
  auto refused = plan_of({}, "sm_80", &given);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_text().find("gives `matrix_stores` true"), std::string::npos);
}

}  // namespace
}  // namespace tilegen::schedule
