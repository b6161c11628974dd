#include <gtest/gtest.h>

#include "ir/expr.h"

namespace tilegen::ir {
namespace {

// Puts `value` in place of one variable and renames memories.
class Substitute : public ExprRewriter {
 public:
  Substitute(const ExprPool& from, ExprPool& to, VarId var, ExprId value)
      : ExprRewriter(from, to), var_(var), value_(value) {}
  int var_calls = 0;

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    ++var_calls;
    return n.var() == var_ ? value_ : ExprRewriter::rewrite_var(n);
  }
  ExprId rewrite_load(const ExprNode& n, std::span<const ExprId> indices) override {
    return to_->load(ObjectId(n.object.value + size_t{10}), n.type, indices);
  }

 private:
  VarId var_;
  ExprId value_;
};

constexpr VarId kX(size_t{0}), kY(size_t{1});

TEST(Rewrite, CopiesEveryKindOfNode) {
  ExprPool from, to;
  to.const_int(99);  // so that ids differ
  const ExprId x = from.var(kX), index[] = {from.add(x, 1), from.lt(x, from.var(kY))};
  const ExprId load = from.load(ObjectId(size_t{2}), DType::f16, index);
  const ExprId wide = from.cast(DType::f32, load);
  const ExprId sum =
      from.binary(ExprOp::add, from.unary(ExprOp::exp, wide), from.const_float(0.5, DType::f32));
  const ExprId root = from.select(from.le(x, from.const_int(7)), sum, wide);
  const ExprId copy = ExprRewriter(from, to).rewrite(root);
  EXPECT_EQ(ExprRewriter(to, from).rewrite(copy), root);
  EXPECT_EQ(to[copy].op, ExprOp::select);
  EXPECT_EQ(to[copy].depth, from[root].depth);
}

TEST(Rewrite, SubstitutionFolds) {
  ExprPool from, to;
  const ExprId sum = from.add(from.mul(from.var(kX), from.var(kY)), from.var(kX));
  Substitute zero(from, to, kX, to.const_int(0));
  int64_t value = -1;
  EXPECT_TRUE(to.is_const_int(zero.rewrite(sum), &value));
  EXPECT_EQ(value, 0);
}

TEST(Rewrite, IndicesAndObjectsAreRewritten) {
  ExprPool from, to;
  const ExprId index[] = {from.add(from.var(kX), 1)};
  Substitute s(from, to, kX, to.const_int(4));
  const ExprId load = s.rewrite(from.load(ObjectId(size_t{2}), DType::i8, index));
  EXPECT_EQ(to[load].object, ObjectId(size_t{12}));
  ASSERT_EQ(to.indices(load).size(), 1u);
  EXPECT_EQ(to.indices(load)[0], to.const_int(5));
}

TEST(Rewrite, SharedNodesAreVisitedOnceUntilForgotten) {
  ExprPool from, to;
  ExprId e = from.var(kX);
  for (int i = 0; i < 60; ++i) e = from.binary(ExprOp::sub, from.unary(ExprOp::neg, e), e);  // 2^60 as a tree
  Substitute s(from, to, kX, to.var(kY));
  s.rewrite(e);
  s.rewrite(e);
  EXPECT_EQ(s.var_calls, 1);
  s.forget();
  s.rewrite(e);
  EXPECT_EQ(s.var_calls, 2);
}

TEST(Rewrite, OnePoolMayBeBothSides) {
  ExprPool pool;
  ExprId e = pool.var(kX);
  for (int i = 1; i < 500; ++i) {  // the pool's arrays move while it is read
    const ExprId index[] = {e, pool.lt(e, pool.const_int(i))};
    e = pool.add(pool.cast(DType::i64, pool.load(ObjectId(size_t{0}), DType::f32, index)),
                 pool.var(VarId(size_t(i))));
  }
  Substitute there(pool, pool, kX, pool.var(VarId(size_t{1000})));
  const ExprId moved = there.rewrite(e);
  EXPECT_NE(moved, e);
  EXPECT_EQ(pool[moved].depth, pool[e].depth);
}

TEST(Rewrite, DepthIsNoConcern) {
  ExprPool from, to;
  ExprId e = from.var(kX);
  for (int i = 0; i < 200000; ++i) e = from.binary(ExprOp::bit_xor, from.var(kY), e);
  EXPECT_EQ(from[e].depth, 65535);  // saturated
  EXPECT_EQ(to[ExprRewriter(from, to).rewrite(e)].depth, 65535);
}

}  // namespace
}  // namespace tilegen::ir
