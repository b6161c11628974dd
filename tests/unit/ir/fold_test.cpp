// Folding changes no value: random expressions are built twice, once in a pool that folds and once as a plain
// tree evaluated step by step, and must agree bit for bit for random values of the variables.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "ir/expr.h"

namespace tilegen::ir {
namespace {

using Values = std::vector<ScalarValue>;  // by variable

bool same_value(ScalarValue a, ScalarValue b) {
  if (a.type != b.type) return false;
  if (!is_float(a.type)) return a.i == b.i;
  // The payload of a NaN is not part of the contract.
  return std::isnan(a.f) ? std::isnan(b.f) : std::bit_cast<uint64_t>(a.f) == std::bit_cast<uint64_t>(b.f);
}

ScalarValue evaluate(const ExprPool& pool, ExprId id, const Values& values) {
  const ExprNode& n = pool[id];
  switch (n.op) {
    case ExprOp::const_int:
      return {n.type, n.imm, 0};
    case ExprOp::const_float:
      return {n.type, 0, n.float_value()};
    case ExprOp::var:
      return values[n.var().value];
    default: {
      const auto operand = [&](ExprId e) { return e.valid() ? evaluate(pool, e, values) : ScalarValue(); };
      return eval_operation(n.op, n.type, operand(n.a), operand(n.b), operand(n.c));
    }
  }
}

// An expression in the pool together with the values the unfolded tree takes for each sample.
struct Twin {
  ExprId id;
  Values samples;
};

class Generator {
 public:
  static constexpr int kSamples = 6;
  explicit Generator(uint64_t seed) : random_(seed) {
    for (size_t v = 0; v < std::size(kTypes) * 2; ++v) {
      Values samples;
      for (int s = 0; s < kSamples; ++s) samples.push_back(literal(kTypes[v / 2]));
      vars_.push_back(samples);
    }
  }

  Twin make(DType t, int depth) {
    if (depth == 0 || random_() % 8 == 0) return leaf(t);
    if (random_() % 8 == 0) return make_select(t, depth);
    if (random_() % 6 == 0) return make_cast(t, depth);
    if (random_() % 6 == 0 && !is_bool(t)) return make_bitcast(t, depth);
    const ExprOp op = pick_op(t);
    const DType operand = expr_class(op) == ExprClass::compare ? any_type()
                          : expr_class(op) == ExprClass::test  ? kTypes[random_() % 4]
                                                               : t;
    Twin a = make(operand, depth - 1);
    if (expr_arity(op) == 1) {
      for (ScalarValue& v : a.samples) v = eval_unary(op, t, v);
      return {pool.unary(op, a.id), a.samples};
    }
    // Often the same operand twice, so that those identities are met.
    const Twin b = random_() % 5 == 0 ? a : make(operand, depth - 1);
    if (expr_arity(op) == 3) {
      const Twin c = random_() % 3 == 0 ? b : make(operand, depth - 1);
      const ExprId id = pool.ternary(op, a.id, b.id, c.id);
      for (int s = 0; s < kSamples; ++s)
        a.samples[s] = eval_ternary(op, t, a.samples[s], b.samples[s], c.samples[s]);
      return {id, a.samples};
    }
    const ExprId id = pool.binary(op, a.id, b.id);
    for (int s = 0; s < kSamples; ++s) a.samples[s] = eval_binary(op, t, a.samples[s], b.samples[s]);
    return {id, a.samples};
  }

  Values values(int sample) const {
    Values at;
    for (const Values& v : vars_) at.push_back(v[sample]);
    return at;
  }
  DType any_type() { return kTypes[random_() % std::size(kTypes)]; }

  ExprPool pool;

 private:
  static constexpr DType kTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64,    DType::i8,
                                     DType::u8,  DType::i32,  DType::i64, DType::boolean};

  ScalarValue literal(DType t) {
    constexpr double kReals[] = {0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 65504.0, 1e-7, -2.75};
    constexpr int64_t kWholes[] = {0, 1, -1, 2, 7, -128, 255, 1 << 30, INT64_MIN, INT64_MAX};
    if (!is_float(t)) return {t, wrap_to(t, kWholes[random_() % std::size(kWholes)]), 0};
    const uint64_t which = random_() % (std::size(kReals) + 3);
    if (which < std::size(kReals)) return {t, 0, round_to(t, kReals[which])};
    if (which == std::size(kReals)) return {t, 0, std::numeric_limits<double>::quiet_NaN()};
    return {
        t, 0,
        which % 2 == 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity()};
  }

  Twin leaf(DType t) {
    if (random_() % 2 == 0) {
      const ScalarValue v = literal(t);
      return {is_float(t) ? pool.const_float(v.f, t) : pool.const_int(v.i, t), Values(kSamples, v)};
    }
    size_t type_index = 0;
    while (kTypes[type_index] != t) ++type_index;
    const size_t v = type_index * 2 + random_() % 2;
    return {pool.var(VarId(v), t), vars_[v]};
  }

  Twin make_select(DType t, int depth) {
    const Twin c = make(DType::boolean, depth - 1), a = make(t, depth - 1);
    const Twin b = random_() % 4 == 0 ? a : make(t, depth - 1);
    Twin r{pool.select(c.id, a.id, b.id), {}};
    for (int s = 0; s < kSamples; ++s) r.samples.push_back(c.samples[s].i != 0 ? a.samples[s] : b.samples[s]);
    return r;
  }

  Twin make_cast(DType t, int depth) {
    Twin a = make(any_type(), depth - 1);
    for (ScalarValue& v : a.samples) v = eval_cast(t, v);
    return {pool.cast(t, a.id), a.samples};
  }

  Twin make_bitcast(DType t, int depth) {
    DType from = any_type();
    while (from != t && !same_bits(from, t)) from = any_type();
    Twin a = make(from, depth - 1);
    for (ScalarValue& v : a.samples) v = eval_bitcast(t, v);
    return {pool.bitcast(t, a.id), a.samples};
  }

  ExprOp pick_op(DType t) {
    while (true) {
      const auto op = static_cast<ExprOp>(random_() % expr_op_count());
      switch (expr_class(op)) {
        case ExprClass::arith:
          if (is_bool(t)) continue;
          return op;
        case ExprClass::integer:
          if (!is_integer(t)) continue;
          return op;
        case ExprClass::math:
          if (!is_float(t)) continue;
          return op;
        case ExprClass::logic:
        case ExprClass::compare:
        case ExprClass::test:
          if (!is_bool(t)) continue;
          return op;
        default:
          continue;
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<Values> vars_;
};

TEST(Fold, ChangesNoValue) {
  int folded = 0, total = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    Generator g(seed);
    const Twin twin = g.make(g.any_type(), 5);
    ++total;
    if (g.pool.is_const(twin.id)) ++folded;
    for (int s = 0; s < Generator::kSamples; ++s) {
      const ScalarValue got = evaluate(g.pool, twin.id, g.values(s)), expected = twin.samples[s];
      ASSERT_TRUE(same_value(got, expected))
          << "seed " << seed << " " << dtype_name(expected.type) << ": got " << got.i << "/" << got.f
          << ", expected " << expected.i << "/" << expected.f;
    }
  }
  EXPECT_GT(folded, 0);
  EXPECT_LT(folded, total / 2);  // else the test says little about identities
}

// Random expressions rarely meet a given chain of casts, so all of them are tried.
TEST(Fold, ChainsOfCastsKeepTheirValue) {
  constexpr double kSamples[] = {0,
                                 -0.0,
                                 1,
                                 -1,
                                 2.5,
                                 -3.5,
                                 127,
                                 128,
                                 255,
                                 256,
                                 300,
                                 -129,
                                 65504,
                                 1e5,
                                 3e9,
                                 -3e9,
                                 0x1p62,
                                 1e300,
                                 std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()};
  for (uint32_t from = 1; dtype_valid(from); ++from)
    for (uint32_t middle = 1; dtype_valid(middle); ++middle)
      for (uint32_t to = 1; dtype_valid(to); ++to)
        for (double sample : kSamples) {
          const auto s = static_cast<DType>(from), m = static_cast<DType>(middle), t = static_cast<DType>(to);
          ExprPool pool;
          const ExprId chain = pool.cast(t, pool.cast(m, pool.var(VarId(size_t{0}), s)));
          const ScalarValue x = eval_cast(s, {DType::f64, 0, sample});
          ASSERT_TRUE(same_value(evaluate(pool, chain, {x}), eval_cast(t, eval_cast(m, x))))
              << dtype_name(s) << " " << dtype_name(m) << " " << dtype_name(t) << " " << sample;
        }
}

// Every pattern of 8 and 16 bits, and of wider types those of NaNs that signal and that do not, as the bits
// of each type and back, of literals and of variables.
TEST(Fold, BitsStayThroughChainsOfBitcasts) {
  for (uint32_t from = 1; dtype_valid(from); ++from)
    for (uint32_t middle = 1; dtype_valid(middle); ++middle) {
      const auto s = static_cast<DType>(from), m = static_cast<DType>(middle);
      if (!same_bits(s, m) || is_float(s)) continue;
      const bool wide = dtype_bits(s) > 16;
      std::vector<int64_t> patterns = {0,
                                       -1,
                                       1,
                                       INT64_MIN,
                                       0x7f800001,
                                       0x7fc00001,
                                       0xff812345,
                                       0x7ff0000000000001,
                                       0x7ff8000000000001,
                                       -0x000fedcba9876543};
      if (!wide) patterns.clear();
      for (int64_t v = 0; !wide && v >> dtype_bits(s) == 0; ++v) patterns.push_back(v);
      ExprPool pool;
      const ExprId x = pool.var(VarId(size_t{0}), s), there = pool.bitcast(m, x);
      EXPECT_EQ(pool.bitcast(s, there), x);
      for (int64_t pattern : patterns) {
        const ScalarValue bits{s, wrap_to(s, pattern), 0};
        ASSERT_EQ(eval_bitcast(s, eval_bitcast(m, bits)).i, bits.i) << dtype_name(s) << " " << dtype_name(m);
        const ExprId literal = pool.bitcast(s, pool.bitcast(m, pool.const_int(bits.i, s)));
        ASSERT_EQ(pool[literal].op, ExprOp::const_int);
        ASSERT_EQ(pool[literal].imm, bits.i) << dtype_name(s) << " " << dtype_name(m);
        ASSERT_EQ(eval_operation(ExprOp::bitcast, m, bits, {}, {}).type, m);
      }
    }
  ExprPool pool;
  const ExprId f = pool.var(VarId(size_t{0}), DType::f32), u = pool.bitcast(DType::u32, f);
  EXPECT_EQ(pool.bitcast(DType::f32, pool.bitcast(DType::i32, u)), f);  // between integers they are casts
  EXPECT_EQ(pool[u].op, ExprOp::bitcast);
}

// Rebuilding an expression from its nodes gives that expression: what the text form's round trip rests on.
TEST(Fold, IsStable) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Generator g(seed);
    const Twin twin = g.make(g.any_type(), 6);
    ExprPool& pool = g.pool;
    EXPECT_EQ(ExprRewriter(pool, pool).rewrite(twin.id), twin.id) << seed;
  }
}

}  // namespace
}  // namespace tilegen::ir
