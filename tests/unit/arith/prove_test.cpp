// What is proven of concrete expressions: guards, ranges, affine forms.
#include <functional>

#include "arith/period.h"
#include "expression_operators.h"

namespace tilegen::arith {
namespace {

TEST_F(Simplify, ProvesGuardsFromGridBounds) {
  X M = dim("M", 128), N = dim("N"), by = dim("by"), r = digit("r", 128);
  ctx.bind(id(by), 0, int64_t{1} << 48);
  EXPECT_FALSE(proves(by * 128 + r < M));
  Context::Mark mark = ctx.mark();
  ctx.assume((by < X{&pool, pool.ceildiv(M.id, pool.const_int(128))}).id);
  EXPECT_TRUE(proves(by * 128 + r < M));
  EXPECT_TRUE(proves(by * 128 < M));
  ctx.rollback(mark);
  EXPECT_FALSE(proves(by * 128 + r < M));
  ctx.assume((by < X{&pool, pool.ceildiv(N.id, pool.const_int(128))}).id);
  EXPECT_TRUE(proves(by * 128 < N));
  EXPECT_FALSE(proves(by * 128 + r < N));
}

TEST_F(Simplify, AssumptionsHoldUntilRolledBack) {
  X i = dim("i"), j = digit("j", 32), n = dim("n"), k = dim("k");
  Context::Mark outer = ctx.mark();
  ctx.assume((i < n && j < 20).id);
  EXPECT_EQ(range_of(ctx, j.id), (Interval{0, 19}));
  EXPECT_EQ(of(i < n + j), "true");
  Context::Mark inner = ctx.mark();
  ctx.assume((n <= k).id);
  EXPECT_TRUE(proves(i < k));
  EXPECT_TRUE(proves(i * 2 + 2 <= k * 2));
  EXPECT_EQ(of(min(i, k)), "i");
  ctx.rollback(inner);
  EXPECT_FALSE(proves(i < k));
  EXPECT_TRUE(proves(i < n));
  ctx.bind(id(j), 5, 5);
  EXPECT_EQ(of(j + 1), "6");
  ctx.rollback(outer);
  EXPECT_FALSE(proves(i < n));
  EXPECT_EQ(range_of(ctx, j.id), (Interval{0, 31}));
  ctx.assume((i == n * 2).id);
  EXPECT_TRUE(proves(n < i));
  ctx.assume((i % 2 == j % 2 || n < k).id);
  EXPECT_TRUE(proves(i % 2 == j % 2 || n < k));
}

// A fact about a value whose own folding asks the facts: a maximum, a select, a quotient, within each other.
TEST_F(Simplify, FactsMaySpeakOfValuesThatFold) {
  X n = dim("n"), x = var("x", INT64_MIN, INT64_MAX), d = dim("d"), r = digit("r", 128);
  const X starts[] = {max(x, num(x, 0)) / 128, min(max(x - 1000, num(x, 0)), n * 2) / 128,
                      select(n < x, x, num(x, 0)) / 128, max(x / (d + 200), num(x, 0)),
                      max(max(x, num(x, 0)) / 128 - 3, num(x, 0))};
  for (X first : starts) {
    SCOPED_TRACE(text(first.id));
    const Context::Mark mark = ctx.mark();
    const Interval before = range_of(ctx, first.id);
    ctx.assume((first * 128 + 127 < n).id);
    EXPECT_TRUE(proves(first * 128 + r < n));
    EXPECT_FALSE(proves(first * 128 + r + 1 < n));
    EXPECT_LE(before.lo, range_of(ctx, first.id).lo);
    EXPECT_TRUE(proves(min(first * 128 + r, n) == first * 128 + r));
    ctx.rollback(mark);
    EXPECT_FALSE(proves(first * 128 + r < n));
  }
  ctx.assume((max(x, num(x, 0)) / 128 * 128 < n).id);
  ctx.assume((num(x, 5) <= x).id);
  EXPECT_EQ(of(max(x, num(x, 0))), "x");
}

// Blocks of keys that a window of queries begins with, and goes on by.
TEST_F(Simplify, ProvesWindowsThatBeginInsideABlock) {
  X queries = dim("queries"), keys = dim("keys"), tile = counter("tile"), i = digit("i", 128),
    j = digit("j", 128);
  X place = tile * 128 + keys - queries, first = max(place - 1000, num(place, 0)) / 128;
  X end = (min(keys, place + 128) + 127) / 128, block = counter("block");
  ctx.assume((tile < (queries + 127) / 128).id);
  ctx.assume((block < end - first).id);
  X key = (first + block) * 128;
  ctx.assume((key + 127 < keys && key + 127 <= place && place + 127 - 1000 <= key).id);
  EXPECT_TRUE(proves(key + j < keys));
  EXPECT_TRUE(proves(key + j <= place + i));
  EXPECT_TRUE(proves(place + i - 1000 <= key + j));
  EXPECT_FALSE(proves(place + i - 999 + 1 <= key));
  EXPECT_FALSE(proves(key + j < place + i));
}

TEST_F(Simplify, RangesAreTight) {
  X a = digit("a", 8), n = var("n", 0, 1000, 8);
  EXPECT_EQ(range_of(ctx, (a * 4 + 3).id), (Interval{3, 31}));
  EXPECT_EQ(range_of(ctx, (a - a + 2).id), Interval::point(2));
  EXPECT_EQ(range_of(ctx, n.id), (Interval{0, 1000}));
  EXPECT_EQ(range_of(ctx, (n / 8).id), (Interval{0, 125}));
  EXPECT_EQ(range_of(ctx, ((a + 8) % 16).id), (Interval{8, 15}));
  EXPECT_EQ(range_of(ctx, (a < 8).id), Interval::point(1));
  EXPECT_EQ(range_of(ctx, select(a < n, a, a + 1).id), (Interval{0, 8}));
}

TEST_F(Simplify, SplitsAffineExpressions) {
  X v = digit("v", 4), i = digit("i", 32), stride = dim("stride"), n = dim("n", 4);
  auto split = split_affine(ctx, ((i + v * 2) * stride + v * 3 + 7).id, id(v));
  ASSERT_TRUE(split);
  EXPECT_EQ(text(split->coefficient), "stride*2 + 3");
  EXPECT_EQ(text(split->rest), "i*stride + 7");
  EXPECT_FALSE(split->stride);
  split = split_affine(ctx, (i * 4 + v).id, id(v));
  ASSERT_TRUE(split);
  EXPECT_EQ(split->stride, 1);
  EXPECT_EQ(text(split->rest), "i*4");
  split = split_affine(ctx, ((n + v) / 4 + v * 8).id, id(v));  // v never carries out of the quotient
  ASSERT_TRUE(split);
  EXPECT_EQ(split->stride, 8);
  EXPECT_FALSE(split_affine(ctx, (v * v).id, id(v)));
  EXPECT_FALSE(split_affine(ctx, (v / 2).id, id(v)));
  split = split_affine(ctx, (i + 1).id, id(v));
  ASSERT_TRUE(split);
  EXPECT_EQ(split->stride, 0);

  auto affine = to_affine(ctx, (i * 4 + v + 9).id);
  ASSERT_TRUE(affine);
  EXPECT_EQ(affine->constant, 9);
  EXPECT_EQ(affine->terms.at(i.id), 4);
  EXPECT_EQ(affine->terms.at(v.id), 1);
  EXPECT_EQ(text(from_affine(ctx, *affine)), "i*4 + v + 9");
  EXPECT_FALSE(to_affine(ctx, pool.const_float(1.0, DType::f32)));
}

TEST_F(Simplify, PeriodsOfRemainders) {
  const X i = counter("i"), t = digit("t", 64), far = data("far");
  const auto period = [&](X x) { return period_of(ctx, x.id, id(i), 64).value_or(0); };
  EXPECT_EQ(period(t * 4), 1);
  EXPECT_EQ(period(i % 4), 4);
  EXPECT_EQ(period((i * 6 + t) % 8), 4);
  EXPECT_EQ(period((i % 4) * 3 + (i + t) % 6), 12);
  EXPECT_EQ(period(t + (i % 4 * 8 + t) % 16 / 2), 4);
  EXPECT_EQ(period(i), 0);
  EXPECT_EQ(period(i / 2 % 2), 0);          // 4, which is not looked for
  EXPECT_EQ(period(i % 65), 0);             // more than 64
  EXPECT_EQ(period((i * 6 + far) % 8), 0);  // the sum may overflow
  EXPECT_EQ(period(i % (int64_t{1} << 62) + i % 64), 0);
  X shared = i % 4;  // stands in itself 2^40 times
  for (int n = 0; n < 40; ++n) shared = (shared ^ (shared & 7)) | shared;
  EXPECT_EQ(period(shared), 4);
}

}  // namespace
}  // namespace tilegen::arith
