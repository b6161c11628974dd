// Concrete simplifications, in and out as text.
#include <functional>

#include "expression_operators.h"

namespace tilegen::arith {
namespace {

TEST_F(Simplify, RecoversMixedRadixDigits) {
  X i1 = digit("i1", 16), i0 = digit("i0", 8), i = i1 * 8 + i0;
  EXPECT_EQ(of(i / 8), "i1");
  EXPECT_EQ(of(i % 8), "i0");
  EXPECT_EQ(of(i / 4), "i1*2 + (i0 // 4)");
  EXPECT_EQ(of(i / 16), "i1 // 2");
  EXPECT_EQ(of((i / 8) * 8 + i % 8), "i1*8 + i0");
  EXPECT_EQ(of((i % 16) / 8), "i1 % 2");
  X i01 = digit("i01", 2), i00 = digit("i00", 4), j = i1 * 8 + i00 * 2 + i01;
  EXPECT_EQ(of((j / 2) % 4), "i00");
  EXPECT_EQ(of(j % 2), "i01");
  EXPECT_EQ(of(j / 8), "i1");
  EXPECT_EQ(of((j % 8) / 2), "i00");
}

TEST_F(Simplify, FlattensTileAddresses) {
  X m1 = digit("m1", 4), m0 = digit("m0", 32), k = digit("k", 64), address = (m1 * 32 + m0) * 64 + k;
  EXPECT_EQ(of(address), "m1*2048 + m0*64 + k");
  EXPECT_EQ(of(address / 64), "m1*32 + m0");
  EXPECT_EQ(of(address % 64), "k");
  EXPECT_EQ(of(address / 2048), "m1");
  EXPECT_EQ(of((address / 64) % 32), "m0");
  EXPECT_EQ(of(address % 8), "k % 8");
  EXPECT_EQ(of((address / 8) % 8), "k // 8");
  EXPECT_EQ(of(address / 128), "m1*16 + (m0 // 2)");
}

TEST_F(Simplify, MergesNestedDivisions) {
  X x = dim("x");
  EXPECT_EQ(of((x / 4) / 8), "x // 32");
  EXPECT_EQ(of((x / 4 + 3) / 8), "(x + 12) // 32");
  EXPECT_EQ(of((x % 32) % 8), "x % 8");
  EXPECT_EQ(of((x % 32) / 8), "(x // 8) % 4");
  EXPECT_EQ(of((x + 9) / 8), "((x + 1) // 8) + 1");
  EXPECT_EQ(of((x * 12) / 8), "x + (x // 2)");
  EXPECT_EQ(of((x * 12) % 8), "(x % 2)*4");
  EXPECT_EQ(of(x - (x / 8) * 8), "x % 8");
  EXPECT_EQ(of((x / 8) * 8 + x % 8), "x");
  EXPECT_EQ(of(((x / 4) % 8) * 4 + x % 4), "x % 32");
  EXPECT_EQ(of((x / 32) * 8 + (x / 4) % 8), "x // 4");
  EXPECT_EQ(of((0 - x) / 8), "neg((x + 7) // 8)");
  EXPECT_EQ(of((0 - x) % 8), "7 - ((x + 7) % 8)");
  EXPECT_EQ(of(x / -8), "neg((x + 7) // 8)");
  EXPECT_EQ(of(x / 0), "0");
  EXPECT_EQ(of((x % 32 + 64) % 32), "x % 32");
}

TEST_F(Simplify, UsesDivisibility) {
  X n = dim("n", 128), r = digit("r", 128), m = dim("m");
  EXPECT_EQ(of((n + r) % 128), "r");
  EXPECT_EQ(of((n + r) / 128), "n // 128");
  EXPECT_EQ(of(((n + 127) / 128) * 128), "n");
  EXPECT_EQ(of(n % 64), "0");
  EXPECT_EQ(of(n % 256), "n % 256");
  EXPECT_EQ(of(X{&pool, pool.ceildiv(m.id, pool.const_int(128))}), "(m + 127) // 128");
  EXPECT_EQ(divisor_of(ctx, (n * 2 + r * 64).id), 64);
  EXPECT_EQ(divisor_of(ctx, (n / 16).id), 8);
  EXPECT_EQ(divisor_of(ctx, (n % 96).id), 32);
  EXPECT_EQ(divisor_of(ctx, (m - m).id), 0);
  EXPECT_EQ(divisor_of(ctx, min(n, m * 64).id), 64);
  ctx.assume((m % 16 == 0).id);
  EXPECT_EQ(of(m % 8), "0");
  EXPECT_EQ(of((m / 16) * 16), "m");
}

TEST_F(Simplify, DividesBySymbols) {
  X n = var("n", 1, 1 << 24), i = var("i", 1, 1 << 24), j = dim("j");
  EXPECT_EQ(of((i * n + j) % n), "j % n");
  EXPECT_EQ(of((i * n + j) / n), "i + (j // n)");
  ctx.assume((j < n).id);
  EXPECT_EQ(of((i * n + j) % n), "j");
  EXPECT_EQ(of((i * n + j) / n), "i");
  EXPECT_EQ(of((i + 1) * n - i * n), "n");
}

TEST_F(Simplify, FoldsExtremaAndSelect) {
  X a = digit("a", 8), b = var("b", 8, 20), n = dim("n");
  EXPECT_EQ(of(min(a, b)), "a");
  EXPECT_EQ(of(max(a, b)), "b");
  EXPECT_EQ(of(min(n, n + a)), "n");
  EXPECT_EQ(of(min(n, a)), of(min(a, n)));
  EXPECT_EQ(of(select(a < 8, n, b)), "n");
  EXPECT_EQ(of(select(a < 4, n + 1 - 1, n)), "n");
  EXPECT_EQ(of(select(!(a == 4), n, b)), "select(a != 4, n, b)");
  EXPECT_EQ(of({&pool, pool.unary(ExprOp::abs, (a - 9).id)}), "9 - a");
}

TEST_F(Simplify, DecidesAndReducesComparisons) {
  X i = digit("i", 16), j = digit("j", 8), n = dim("n"), m = dim("m", 8);
  EXPECT_EQ(of(i * 8 + j < 128), "true");
  EXPECT_EQ(of(i * 8 + j < 64), "i < 8");
  EXPECT_EQ(of(i * 8 + j < 60), "i*8 + j < 60");
  EXPECT_EQ(of(i * 8 + j < m), "i*8 < m");
  EXPECT_EQ(of(i + 8 < n + 8), "i < n");
  EXPECT_EQ(of(i * 4 <= n * 4 + 3), "i <= n");
  EXPECT_EQ(of(8 <= i), "8 <= i");
  EXPECT_EQ(of(i - n < 0), "i < n");
  EXPECT_EQ(of(i * 2 == 7), "false");
  EXPECT_EQ(of(i * 2 != j * 2 + 1), "true");
  EXPECT_EQ(of(i * 2 == 6), "i == 3");
  EXPECT_EQ(of(j == i), of(i == j));
  EXPECT_EQ(of(i == 16), "false");
  EXPECT_EQ(of(!(i < n)), "n <= i");
}

TEST_F(Simplify, ReducesJunctions) {
  X i = digit("i", 16), n = dim("n"), k = dim("k");
  EXPECT_EQ(of(i < 16 && i < n), "i < n");
  EXPECT_EQ(of(i < n && i < n + 4), "i < n");
  EXPECT_EQ(of(i < n || i < n + 4), "i <= n + 3");
  EXPECT_EQ(of(i < n && n <= i), "false");
  EXPECT_EQ(of(i < n || n <= i), "true");
  EXPECT_EQ(of(i < n && (i < k && i < n)), "(i < n) and (i < k)");
  EXPECT_EQ(of(i == 3 && i < 4), "i == 3");
}

TEST_F(Simplify, KeepsSwizzledAddressesAffineBelowTheSwizzle) {
  X row = digit("row", 64), chunk = digit("chunk", 8), lane = digit("lane", 16);
  X address = row * 128 + chunk * 16 + lane;
  EXPECT_EQ(of((address / 128) % 8), "row % 8");
  EXPECT_EQ(of(address ^ (((address / 128) & 7) * 16)), "row*128 + lane + ((chunk*16) ^ ((row % 8)*16))");
  X n = dim("n");
  EXPECT_EQ(of(n & 7), "n % 8");
  EXPECT_EQ(of(n & 48), "(n % 64) - (n % 16)");
  EXPECT_EQ(of(row * 16 | lane), "row*16 + lane");
  auto split = split_affine(ctx, (address ^ (((address / 128) & 7) * 16)).id, id(lane));
  ASSERT_TRUE(split);
  EXPECT_EQ(split->stride, 1);
}

TEST_F(Simplify, WorksBelowLoadsCastsAndFloats) {
  X i = digit("i", 8);
  auto load = [&](DType t, X index) {
    ExprId indices[] = {index.id};
    return X{&pool, pool.load(ir::ObjectId(0), t, indices)};
  };
  X f = load(DType::f32, (i + 8) / 8), g = load(DType::f32, (i * 3) % 3);
  EXPECT_EQ(of(f + g * f), "m0[1] + m0[0]*m0[1]");
  EXPECT_EQ(of({&pool, pool.cast(DType::f32, ((i + 8) - i).id)}), "8.000000");
  EXPECT_EQ(of({&pool, pool.cast(DType::i64, load(DType::i32, i - i).id)}), "i64(m0[0])");
  ExprId guarded[] = {(i * 2).id, (i < 8).id};
  EXPECT_EQ(of({&pool, pool.load(ir::ObjectId(0), DType::f16, guarded)}), "m0[i*2]");
  X u = load(DType::u8, i);
  EXPECT_EQ(of(X{&pool, pool.cast(DType::i64, u.id)} < 256), "true");
}

TEST_F(Simplify, LeavesDataThatMayWrapAlone) {
  X h = data("h"), i = digit("i", 8);
  EXPECT_EQ(of((h * 6) / 6), "(h*6) // 6");
  EXPECT_EQ(of((h * 6) % 3), "(h*6) % 3");
  EXPECT_EQ(of((h * 16) % 16), "0");
  EXPECT_EQ(of(h < h + 1), "h < h + 1");
  EXPECT_EQ(of(h + i - h), "i");
  EXPECT_FALSE(proves(h <= h + i));
  EXPECT_TRUE(proves(h <= h));
  EXPECT_EQ(of((h % 8) / 8), "0");
  EXPECT_EQ(range_of(ctx, (h + 1).id), Interval::whole());
}

TEST_F(Simplify, LeavesBoundVariablesThatMayWrapAlone) {
  X b = digit("b", 2), i = digit("i", 64), far = var("far", 0, INT64_MAX), n = dim("n"),
    least = num(b, INT64_MIN);
  EXPECT_FALSE(proves(0 <= b * INT64_MAX + i));
  EXPECT_FALSE(proves(0 <= b * far));
  EXPECT_FALSE(proves(b * far + i < b * far + 64));
  EXPECT_FALSE(proves(far < far + 1));
  EXPECT_EQ(of((i * INT64_MAX) / 16), text(((i * INT64_MAX) / 16).id));
  EXPECT_EQ(range_of(ctx, (n * n).id), Interval::whole());
  EXPECT_EQ(range_of(ctx, (i * (int64_t{1} << 58)).id), Interval::whole());
  EXPECT_EQ(range_of(ctx, (i / -INT64_MAX).id), (Interval{-1, 0}));
  EXPECT_EQ(range_of(ctx, (i % least).id), (Interval{INT64_MIN + 1, 0}));
  EXPECT_TRUE(proves(-64 < far - i));
  EXPECT_TRUE(proves(far / 2 * 2 <= far));
  EXPECT_FALSE(exact_difference(ctx, far.id, (0 - far - 2).id));
  EXPECT_TRUE(exact_difference(ctx, far.id, (i - 64).id) == std::nullopt);
  ASSERT_TRUE(exact_difference(ctx, far.id, n.id));
  EXPECT_EQ(exact_difference(ctx, (n + 3).id, i.id)->constant, 3);
}

// Deep and wide expressions answer within the budget, unchanged at worst.
TEST_F(Simplify, IsBoundedOnHostileInput) {
  X x = dim("x"), y = dim("y");
  X deep = x;
  for (int i = 0; i < 240; i++)
    deep = i % 3 == 0 ? deep + y * i : i % 3 == 1 ? (deep / 3) ^ y : (deep % 1000003) * 5;
  X wide = x;
  for (int i = 0; i < 200; i++) wide = wide + min(x / (i + 2), y % (i + 3)) * (i + 1);
  X square = x + 1;
  for (int i = 0; i < 40; i++) square = square * (x + y + i);
  X huge = x * INT64_MAX + INT64_MAX;
  for (X e : {deep, wide, square, huge * 3}) {
    ExprId s = simplify(ctx, e.id);
    EXPECT_EQ(pool.type(s), DType::i64);
    EXPECT_FALSE(proves(e < 0 - e * e));
    range_of(ctx, e.id);
    EXPECT_GE(divisor_of(ctx, e.id), 1);
  }
  ctx.set_step_budget(3);
  X again = wide + deep;  // nothing remembered helps here
  EXPECT_EQ(simplify(ctx, again.id), again.id);
  EXPECT_FALSE(proves(x % 4 + y % 4 < 7));
  ctx.set_step_budget(60000);
  EXPECT_TRUE(proves(x % 4 + y % 4 < 7));
}

}  // namespace
}  // namespace tilegen::arith
