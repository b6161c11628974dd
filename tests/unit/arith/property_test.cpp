// What simplify, prove, range_of and divisor_of answer must agree with evaluation at sampled points.
#include <gtest/gtest.h>

#include <cstdlib>

#include "arith/period.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "expression_sampler.h"
#include "support/checked.h"

namespace tilegen::arith {
namespace {

using ir::ExprId;
using testing::Assignment;
using testing::Sampler;
using testing::SamplerOptions;

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

  Case(uint64_t seed, SamplerOptions options, bool with_assumption)
      : sampler(seed, options), ctx(sampler.pool) {
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
      if (sampler.eval(assumed, *a)) return true;
    }
    return false;
  }

  std::string facts() const {
    std::string s;
    for (const auto& v : sampler.vars)
      s += v.name + (v.bound ? " in [" + std::to_string(v.lo) + "," + std::to_string(v.hi) + "]/" +
                                   std::to_string(v.divisor) + " "
                             : " data ");
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
    const int64_t v = c.sampler.eval(e, a);
    tally->samples++;
    ASSERT_EQ(v, c.sampler.eval(s, a)) << c.sampler.text(e) << "\n became " << c.sampler.text(s) << "\n"
                                       << c.facts();
    ASSERT_TRUE(r.contains(v)) << c.sampler.text(e) << " = " << v << " outside [" << r.lo << ", " << r.hi
                               << "]\n"
                               << c.facts();
    ASSERT_TRUE(d == 0 ? v == 0 : v % d == 0)
        << c.sampler.text(e) << " = " << v << " not divisible by " << d << "\n"
        << c.facts();
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
    const int64_t v = c.sampler.eval(e, a);
    tally->samples++;
    ASSERT_EQ(v, c.sampler.eval(s, a)) << c.sampler.text(e) << "\n became " << c.sampler.text(s) << "\n"
                                       << c.facts();
    ASSERT_FALSE(always && !v) << "proved but false: " << c.sampler.text(e) << "\n" << c.facts();
    ASSERT_FALSE(never && v) << "refuted but true: " << c.sampler.text(e) << "\n" << c.facts();
  }
}

void run(uint64_t first_seed, int cases, SamplerOptions options, bool with_assumption) {
  Tally tally;
  for (int i = 0; i < cases; i++) {
    Case c(first_seed + static_cast<uint64_t>(i), options, with_assumption);
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

TEST(ArithProperty, IndexExpressions) { run(1, rounds(3000), {}, false); }
TEST(ArithProperty, IndexExpressionsUnderAssumptions) { run(100000, rounds(1500), {}, true); }
TEST(ArithProperty, DataExpressionsThatWrap) { run(200000, rounds(1500), {.data = true}, false); }
TEST(ArithProperty, EdgesOfTheTypes) { run(300000, rounds(2000), {.data = true, .edges = true}, false); }
TEST(ArithProperty, EdgesOfTheTypesUnderAssumptions) {
  run(400000, rounds(1500), {.data = true, .edges = true}, true);
}

// After a whole number of periods an expression has the value that it had.
TEST(ArithProperty, ExpressionsRepeatThemselvesAfterTheirPeriod) {
  int64_t told = 0, compared = 0;
  for (int seed = 0; seed < rounds(6000); ++seed) {
    Case c(static_cast<uint64_t>(500000 + seed), {.data = seed % 2 == 1, .edges = seed % 5 == 0}, false);
    const ExprId e = c.sampler.random_index(4);
    for (size_t v = 0; v < c.sampler.vars.size(); ++v) {
      const testing::SampledVar& var = c.sampler.vars[v];
      if (!var.bound || !depends_on(c.sampler.pool, e, ir::VarId(v))) continue;
      const auto period = period_of(c.ctx, e, ir::VarId(v), 4096);
      if (!period) continue;
      ++told;
      for (int i = 0; i < kSamples; ++i) {
        Assignment a;
        if (!c.sample(&a)) break;
        const int64_t before = c.sampler.eval(e, a), step = *period * var.divisor * c.sampler.pick(1, 9);
        if (a.vars[v] > var.hi - step) continue;
        a.vars[v] += step;
        ++compared;
        ASSERT_EQ(c.sampler.eval(e, a), before)
            << c.sampler.text(e) << " every " << *period << " of " << var.name << "\n"
            << c.facts();
      }
    }
  }
  EXPECT_GT(told, rounds(6000) / 50);
  EXPECT_GT(compared, told);
}

// Operands at the edges of the types: what the interval functions answer holds each result over the integers.
TEST(ArithProperty, IntervalsContainTheirPointsAtTheEdges) {
  std::mt19937_64 random(11);
  const std::vector<int64_t> edges = testing::edge_numbers();
  auto end = [&] {
    return random() % 3 ? edges[random() % edges.size()] : static_cast<int64_t>(random() % 9) - 4;
  };
  auto inside = [&](Interval r) { return std::uniform_int_distribution<int64_t>(r.lo, r.hi)(random); };
  for (int i = 0; i < 40000; i++) {
    const int64_t p = end(), q = random() % 3 ? end() : p, r = end(), s = random() % 3 ? end() : r;
    const Interval a{std::min(p, q), std::max(p, q)}, b{std::min(r, s), std::max(r, s)};
    const int64_t x = random() % 2 ? p : inside(a), y = random() % 2 ? r : inside(b);
    const auto contains = [](Interval in, __int128 v) {
      return (in.lo == Interval::kMin || in.lo <= v) && (in.hi == Interval::kMax || v <= in.hi);
    };
    ASSERT_TRUE(contains(interval_add(a, b), static_cast<__int128>(x) + y)) << x << " " << y;
    ASSERT_TRUE(contains(interval_sub(a, b), static_cast<__int128>(x) - y)) << x << " " << y;
    ASSERT_TRUE(contains(interval_mul(a, b), static_cast<__int128>(x) * y)) << x << " " << y;
    if (y != -1 || x != INT64_MIN) {
      ASSERT_TRUE(interval_floordiv(a, b).contains(floor_div(x, y))) << x << " " << y;
    }
    ASSERT_TRUE(interval_floormod(a, b).contains(floor_mod(x, y))) << x << " " << y;
    ASSERT_TRUE(interval_bit_and(a, b).contains(x & y)) << x << " " << y;
    ASSERT_TRUE(interval_bit_or(a, b).contains(x | y)) << x << " " << y;
    ASSERT_TRUE(interval_bit_xor(a, b).contains(x ^ y)) << x << " " << y;
    ASSERT_TRUE(interval_lt(a, b).contains(x < y)) << x << " " << y;
    ASSERT_TRUE(interval_eq(a, b).contains(x == y)) << x << " " << y;
    if (y >= 0 && y < 64) {
      ASSERT_TRUE(interval_shr(a, b).contains(x >> y)) << x << " " << y;
    }
  }
}

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
