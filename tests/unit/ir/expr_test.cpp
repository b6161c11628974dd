#include "ir/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tilegen::ir {
namespace {

struct ExprTest : ::testing::Test {
  ExprPool pool;
  ExprId x = pool.var(VarId(size_t{0}));
  ExprId y = pool.var(VarId(size_t{1}));
  ExprId f = pool.var(VarId(size_t{2}), DType::f32);

  int64_t int_of(ExprId id) {
    int64_t v = -999;
    EXPECT_TRUE(pool.is_const_int(id, &v));
    return v;
  }
  double float_of(ExprId id) {
    EXPECT_EQ(pool[id].op, ExprOp::const_float);
    return pool[id].float_value();
  }
};

TEST_F(ExprTest, EqualExpressionsAreOneNode) {
  EXPECT_EQ(pool.add(x, y), pool.add(x, y));
  EXPECT_NE(pool.add(x, y), pool.add(y, x));
  const ExprId indices[] = {x, y};
  EXPECT_EQ(pool.load(ObjectId(size_t{3}), DType::f16, indices),
            pool.load(ObjectId(size_t{3}), DType::f16, indices));
  EXPECT_NE(pool.load(ObjectId(size_t{3}), DType::f16, indices),
            pool.load(ObjectId(size_t{4}), DType::f16, indices));
  EXPECT_NE(pool.const_float(0.0, DType::f32), pool.const_float(-0.0, DType::f32));
}

TEST_F(ExprTest, IntegerIdentities) {
  EXPECT_EQ(pool.add(x, int64_t{0}), x);
  EXPECT_EQ(pool.mul(x, int64_t{1}), x);
  EXPECT_EQ(int_of(pool.mul(x, int64_t{0})), 0);
  EXPECT_EQ(int_of(pool.sub(x, x)), 0);
  EXPECT_EQ(int_of(pool.floormod(x, pool.const_int(1))), 0);
  EXPECT_EQ(int_of(pool.floordiv(x, pool.const_int(0))), 0);
  EXPECT_EQ(pool.binary(ExprOp::min, x, x), x);
  EXPECT_EQ(pool.add(pool.add(x, 3), 4), pool.add(x, 7));
  EXPECT_TRUE(pool.is_true(pool.le(x, x)));
}

TEST_F(ExprTest, FloatIdentitiesAreExactOnly) {
  const ExprId zero = pool.const_float(0.0, DType::f32), minus_zero = pool.const_float(-0.0, DType::f32);
  const ExprId one = pool.const_float(1.0, DType::f32);
  EXPECT_EQ(pool.add(f, minus_zero), f);
  EXPECT_EQ(pool.sub(f, zero), f);
  EXPECT_EQ(pool.mul(one, f), f);
  EXPECT_EQ(pool[pool.add(f, zero)].op, ExprOp::add);
  EXPECT_EQ(pool[pool.sub(f, minus_zero)].op, ExprOp::sub);
  EXPECT_EQ(pool[pool.mul(f, zero)].op, ExprOp::mul);
  EXPECT_EQ(pool[pool.sub(f, f)].op, ExprOp::sub);
  EXPECT_EQ(pool[pool.binary(ExprOp::eq, f, f)].op, ExprOp::eq);
}

TEST_F(ExprTest, Constants) {
  EXPECT_EQ(int_of(pool.floordiv(pool.const_int(-7), pool.const_int(2))), -4);
  EXPECT_EQ(int_of(pool.floormod(pool.const_int(-7), pool.const_int(2))), 1);
  EXPECT_EQ(int_of(pool.floormod(pool.const_int(7), pool.const_int(-2))), -1);
  EXPECT_EQ(int_of(pool.const_int(300, DType::u8)), 44);
  EXPECT_EQ(int_of(pool.add(pool.const_int(127, DType::i8), pool.const_int(1, DType::i8))), -128);
  EXPECT_EQ(float_of(pool.add(pool.const_float(2048, DType::f16), pool.const_float(1, DType::f16))), 2048);
  EXPECT_EQ(float_of(pool.const_float(1e6, DType::f16)), std::numeric_limits<double>::infinity());
}

TEST_F(ExprTest, CeilDivision) {
  EXPECT_EQ(int_of(pool.ceildiv(pool.const_int(7), pool.const_int(2))), 4);
  EXPECT_EQ(int_of(pool.ceildiv(pool.const_int(-7), pool.const_int(2))), -3);
  EXPECT_EQ(int_of(pool.ceildiv(pool.const_int(7), pool.const_int(-2))), -3);
  EXPECT_EQ(pool.ceildiv(x, pool.const_int(1)), x);
  EXPECT_EQ(pool.ceildiv(x, pool.const_int(8)), pool.floordiv(pool.add(x, 7), pool.const_int(8)));
}

TEST_F(ExprTest, CastsThatLoseNothingVanish) {
  EXPECT_EQ(pool.cast(DType::f32, f), f);
  EXPECT_EQ(pool.cast(DType::f32, pool.cast(DType::f64, f)), f);
  const ExprId narrow = pool.cast(DType::f32, pool.cast(DType::f16, f));
  EXPECT_EQ(pool[narrow].op, ExprOp::cast);
  EXPECT_EQ(pool[pool[narrow].a].type, DType::f16);
  // f64 saturates where i64 wraps, so the detour matters.
  EXPECT_EQ(pool[pool[pool.cast(DType::i8, pool.cast(DType::f64, x))].a].type, DType::f64);
}

TEST_F(ExprTest, PredicatedLoads) {
  const ObjectId memory(size_t{0});
  const ExprId always[] = {x, pool.const_int(1, DType::boolean)},
               never[] = {x, pool.const_int(0, DType::boolean)};
  const ExprId plain[] = {x};
  EXPECT_EQ(pool.load(memory, DType::f32, always), pool.load(memory, DType::f32, plain));
  EXPECT_EQ(float_of(pool.load(memory, DType::f32, never)), 0.0);
}

TEST_F(ExprTest, DepthCountsIndicesToo) {
  const ExprId sum = pool.add(pool.mul(x, 8), y);
  EXPECT_EQ(pool[x].depth, 1);
  EXPECT_EQ(pool[sum].depth, 3);
  const ExprId indices[] = {sum};
  EXPECT_EQ(pool[pool.load(ObjectId(size_t{0}), DType::f32, indices)].depth, 4);
}

}  // namespace
}  // namespace tilegen::ir
