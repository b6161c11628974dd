// What simplify, prove, range_of and divisor_of answer must agree with evaluation at sampled points.
#include <gtest/gtest.h>

#include <cstdlib>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "expression_sampler.h"
#include "support/checked.h"

namespace tilegen::arith {
namespace {

using ir::ExprId;
using testing::Assignment;
using testing::Sampler;
using testing::Value;

constexpr int kSamples = 60;

int rounds(int normal) {
  const char* factor = std::getenv("TILEGEN_PROPERTY_FACTOR");
  return factor ? normal * std::atoi(factor) : normal;
}

// Facts, one expression and one condition; `assumed` holds in every sample that counts.
struct Case {
  Sampler sampler;
  Context ctx;
  ExprId assumed;

  Case(uint64_t seed, bool with_data, bool with_assumption) : sampler(seed, with_data), ctx(sampler.pool) {
    sampler.bind_all(ctx);
    if (!with_assumption) return;
    assumed = sampler.random_condition(2);
    ctx.assume(assumed);
  }

  // An assignment that fits the facts, most of the time.
  bool sample(Assignment* a) {
    for (int tries = 0; tries < 20; tries++) {
      *a = sampler.random_assignment();
      if (!assumed.valid()) return true;
      Value v = sampler.eval(assumed, *a);
      if (v.scalar.i && !v.overflowed) return true;
    }
    return false;
  }

  std::string facts() const {
    std::string s;
    for (const auto& v : sampler.vars)
      s += v.name + (v.bound ? " in [" + std::to_string(v.lo) + "," + std::to_string(v.hi) + "]/" +
                                   std::to_string(v.divisor) + " " : " data ");
    return assumed.valid() ? s + "given " + sampler.text(assumed) : s;
  }
};

struct Tally {
  int64_t samples = 0, proved = 0, folded = 0, narrowed = 0;
};

void check_index(Case& c, Tally* tally) {
  ExprId e = c.sampler.random_index(5);
  ExprId s = simplify(c.ctx, e);
  Interval r = range_of(c.ctx, e);
  int64_t d = divisor_of(c.ctx, e);
  tally->folded += c.sampler.pool.is_const(s);
  tally->narrowed += r.is_finite();
  for (int i = 0; i < kSamples; i++) {
    Assignment a;
    if (!c.sample(&a)) break;
    Value v = c.sampler.eval(e, a);
    if (v.overflowed) continue;
    tally->samples++;
    Value w = c.sampler.eval(s, a);
    ASSERT_EQ(v.scalar.i, w.scalar.i) << c.sampler.text(e) << "\n became " << c.sampler.text(s) << "\n" << c.facts();
    ASSERT_TRUE(r.contains(v.scalar.i)) << c.sampler.text(e) << " = " << v.scalar.i << " outside [" << r.lo << ", "
                                        << r.hi << "]\n" << c.facts();
    ASSERT_TRUE(d == 0 ? v.scalar.i == 0 : v.scalar.i % d == 0)
        << c.sampler.text(e) << " = " << v.scalar.i << " not divisible by " << d << "\n" << c.facts();
  }
}

void check_condition(Case& c, Tally* tally) {
  ExprId e = c.sampler.random_condition(4);
  ExprId s = simplify(c.ctx, e);
  ExprId opposite = c.sampler.pool.unary(ir::ExprOp::logical_not, e);
  bool always = prove(c.ctx, e), never = prove(c.ctx, opposite);
  tally->proved += always + never;
  for (int i = 0; i < kSamples; i++) {
    Assignment a;
    if (!c.sample(&a)) break;
    Value v = c.sampler.eval(e, a);
    if (v.overflowed) continue;
    tally->samples++;
    ASSERT_EQ(v.scalar.i, c.sampler.eval(s, a).scalar.i)
        << c.sampler.text(e) << "\n became " << c.sampler.text(s) << "\n" << c.facts();
    ASSERT_FALSE(always && !v.scalar.i) << "proved but false: " << c.sampler.text(e) << "\n" << c.facts();
    ASSERT_FALSE(never && v.scalar.i) << "refuted but true: " << c.sampler.text(e) << "\n" << c.facts();
  }
}

void run(uint64_t first_seed, int cases, bool with_data, bool with_assumption) {
  Tally tally;
  for (int i = 0; i < cases; i++) {
    Case c(first_seed + static_cast<uint64_t>(i), with_data, with_assumption);
    SCOPED_TRACE("seed " + std::to_string(first_seed + static_cast<uint64_t>(i)));
    check_index(c, &tally);
    check_condition(c, &tally);
    if (::testing::Test::HasFatalFailure()) return;
  }
  // The properties must have been exercised, not vacuously true.
  EXPECT_GT(tally.samples, cases * 10);
  EXPECT_GT(tally.proved, cases / 20);
  EXPECT_GT(tally.narrowed, cases / 10);
}

TEST(ArithProperty, IndexExpressions) { run(1, rounds(3000), false, false); }
TEST(ArithProperty, IndexExpressionsUnderAssumptions) { run(100000, rounds(1500), false, true); }
TEST(ArithProperty, DataExpressionsThatWrap) { run(200000, rounds(1500), true, false); }

// Operands near the ends of i64: every interval function contains what its operation gives over the integers.
TEST(ArithProperty, IntervalsContainTheirPoints) {
  std::mt19937_64 random(7);
  auto end = [&] {
    int64_t v = static_cast<int64_t>(random() % 41) - 20;
    return random() % 8 == 0 ? v * 1000003 : v;
  };
  for (int i = 0; i < 20000; i++) {
    int64_t p = end(), q = end(), r = end(), s = end();
    Interval a{std::min(p, q), std::max(p, q)}, b{std::min(r, s), std::max(r, s)};
    int64_t x = std::uniform_int_distribution<int64_t>(a.lo, a.hi)(random);
    int64_t y = std::uniform_int_distribution<int64_t>(b.lo, b.hi)(random);
    Interval wide_a = random() % 4 == 0 ? Interval{Interval::kMin, a.hi} : a;
    Interval wide_b = random() % 4 == 0 ? Interval{b.lo, Interval::kMax} : b;
    ASSERT_TRUE(interval_add(wide_a, wide_b).contains(x + y));
    ASSERT_TRUE(interval_sub(wide_a, wide_b).contains(x - y));
    ASSERT_TRUE(interval_mul(wide_a, wide_b).contains(x * y));
    ASSERT_TRUE(interval_neg(wide_a).contains(-x));
    ASSERT_TRUE(interval_abs(wide_a).contains(x < 0 ? -x : x));
    ASSERT_TRUE(interval_floordiv(wide_a, wide_b).contains(floor_div(x, y))) << x << " " << y;
    ASSERT_TRUE(interval_floormod(wide_a, wide_b).contains(floor_mod(x, y))) << x << " " << y;
    ASSERT_TRUE(interval_min(wide_a, wide_b).contains(std::min(x, y)));
    ASSERT_TRUE(interval_max(wide_a, wide_b).contains(std::max(x, y)));
    ASSERT_TRUE(interval_bit_and(wide_a, wide_b).contains(x & y));
    ASSERT_TRUE(interval_bit_or(wide_a, wide_b).contains(x | y));
    ASSERT_TRUE(interval_bit_xor(wide_a, wide_b).contains(x ^ y));
    if (y >= 0 && y < 64) {
      ASSERT_TRUE(interval_shr(wide_a, wide_b).contains(x >> y));
    }
    ASSERT_TRUE(interval_lt(wide_a, wide_b).contains(x < y));
    ASSERT_TRUE(interval_le(wide_a, wide_b).contains(x <= y));
    ASSERT_TRUE(interval_eq(wide_a, wide_b).contains(x == y));
    ASSERT_TRUE(interval_ne(wide_a, wide_b).contains(x != y));
  }
}

}  // namespace
}  // namespace tilegen::arith
