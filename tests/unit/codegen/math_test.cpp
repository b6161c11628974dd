// Accuracy of the mathematical functions in units of the last place, against libm in the next wider type.
#include <cmath>
#include <numbers>

#include "kernel_builder.h"

namespace tilegen::codegen::test {
namespace {

struct Function {
  ExprOp op;
  long double (*exact)(long double);
  double float_ulps, double_ulps;  // bounds stated in codegen/llvm/math.h
};

long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double rsqrt(long double x) { return 1 / std::sqrt(x); }

const Function kFunctions[] = {
    {ExprOp::exp, [](long double x) { return std::exp(x); }, 1.5, 1.5},
    {ExprOp::exp2, [](long double x) { return std::exp2(x); }, 1, 1},
    {ExprOp::log, [](long double x) { return std::log(x); }, 1, 1.5},
    {ExprOp::log2, [](long double x) { return std::log2(x); }, 1.5, 1},
    {ExprOp::sqrt, [](long double x) { return std::sqrt(x); }, 0.5, 0.5},
    {ExprOp::rsqrt, rsqrt, 1.5, 1.5},
    {ExprOp::tanh, [](long double x) { return std::tanh(x); }, 1.5, 1.5},
    {ExprOp::erf, [](long double x) { return std::erf(x); }, 1.5, 1.5},
    {ExprOp::sigmoid, sigmoid, 2.5, 2},
    {ExprOp::floor, [](long double x) { return std::floor(x); }, 0, 0},
    {ExprOp::ceil, [](long double x) { return std::ceil(x); }, 0, 0},
    {ExprOp::sin, [](long double x) { return std::sin(x); }, 1, 1},
    {ExprOp::cos, [](long double x) { return std::cos(x); }, 1, 1},
    {ExprOp::tan, [](long double x) { return std::tan(x); }, 2.5, 2.5},
    {ExprOp::asin, [](long double x) { return std::asin(x); }, 1.5, 1.5},
    {ExprOp::acos, [](long double x) { return std::acos(x); }, 1.5, 1.5},
    {ExprOp::atan, [](long double x) { return std::atan(x); }, 2, 1.5},
    {ExprOp::exp10, [](long double x) { return std::pow(10.0L, x); }, 1.5, 1.5},
    {ExprOp::expm1, [](long double x) { return std::expm1(x); }, 1.5, 2},
    {ExprOp::log1p, [](long double x) { return std::log1p(x); }, 1.5, 1.5},
    {ExprOp::cbrt, [](long double x) { return std::cbrt(x); }, 1, 1},
    {ExprOp::erfc, [](long double x) { return std::erfc(x); }, 4.5, 3.5},
    {ExprOp::round, [](long double x) { return std::round(x); }, 0, 0},
    {ExprOp::rint, [](long double x) { return std::nearbyint(x); }, 0, 0},
    {ExprOp::trunc, [](long double x) { return std::trunc(x); }, 0, 0},
};

// out[i] = f(x[i]) for i < 16 * count, vectorised, and the same one by one.
thread::ThreadProgram program(ExprOp op, DType t, bool vector) {
  KernelBuilder kb;
  MemoryId x = kb.tensor("x", t), out = kb.tensor("out", t);
  ExprId n = kb.scalar("n", DType::i64, true);
  ir::VarId v = kb.loop_var("v"), lane = kb.loop_var("lane");
  auto& e = kb.p.exprs;
  ExprId at = e.add(e.mul(kb.var(v), 16), kb.var(lane));
  auto body = kb.loop(vector ? thread::LoopForm::vectorized : thread::LoopForm::serial, lane, kb.i(16),
                      {kb.store(out, at, e.unary(op, kb.load(x, at)))});
  kb.p.body = {kb.loop(thread::LoopForm::serial, v, n, {body})};
  return kb.p;
}

template <class T>
double ulps(T got, long double want) {
  T rounded = static_cast<T>(want);
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  if (got == rounded) return 0;
  if (std::isinf(got) || std::isinf(rounded)) {
    // one place beyond the largest finite value is infinity
    return std::abs(static_cast<long double>(std::isinf(got) ? rounded : got)) ==
                   std::numeric_limits<T>::max()
               ? 1
               : 1e30;
  }
  using L = std::numeric_limits<T>;
  int exponent = std::max(want == 0 ? L::min_exponent - 1 : std::ilogb(want), L::min_exponent - 1);
  long double unit = std::ldexp(1.0L, exponent - (L::digits - 1));
  return static_cast<double>(std::abs(static_cast<long double>(got) - want) / unit);
}

template <class T>
std::vector<T> samples(size_t random_count) {
  using L = std::numeric_limits<T>;
  std::vector<T> s{
      0,         -T(0),       1,         -1,         L::infinity(),   -L::infinity(),   L::quiet_NaN(),
      L::max(),  L::lowest(), L::min(),  -L::min(),  L::denorm_min(), -L::denorm_min(), T(0.5),
      T(0.75),   T(88.7),     T(88.73),  T(-87.4),   T(-103.9),       T(-104.1),        T(-149),
      T(-149.5), T(-150.5),   T(127.99), T(128),     T(709.7),        T(709.79),        T(-745.1),
      T(-745.2), T(1023.9),   T(1024),   T(-1074.5), T(-1075.5)};
  std::mt19937_64 random(7);
  for (T around : {T(0), T(0.625), T(0.92), T(1), T(-1), T(4), T(6), T(9), T(0.70710678118654752),
                   T(1.4142135623730951)}) {
    T up = around, down = around;
    for (int i = 0; i < 200; ++i) {
      s.push_back(up = std::nextafter(up, L::infinity()));
      s.push_back(down = std::nextafter(down, -L::infinity()));
    }
  }
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  for (size_t i = 0; i < random_count; ++i) {
    uint64_t r = random();
    double unit = static_cast<double>(random() >> 11) / 9007199254740992.0;  // [0, 1)
    switch (r % 5) {
      case 0:
        s.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
        break;  // any pattern
      case 1:
        s.push_back(static_cast<T>((unit - 0.5) * 20));
        break;
      case 2:
        s.push_back(static_cast<T>((unit - 0.5) * 2 * (sizeof(T) == 4 ? 110 : 760)));
        break;
      case 3:  // next to a multiple of pi / 2, where sines and cosines vanish
        s.push_back(static_cast<T>(std::numbers::pi_v<long double> / 2 *
                                   static_cast<long double>(random() % (1 << (r >> 8) % 30))));
        break;
      default:
        s.push_back(static_cast<T>(1 + (unit - 0.5) / (1 << (r >> 8) % 20)));
        break;  // near 1
    }
  }
  while (s.size() % 16) s.push_back(1);
  return s;
}

template <class T>
void check(const Function& f, const target::Target& target, bool vector, size_t count) {
  constexpr DType t = sizeof(T) == 4 ? DType::f32 : DType::f64;
  SCOPED_TRACE(std::string(ir::expr_text(f.op)) + " " + ir::dtype_name(t) +
               (vector ? " vector " : " scalar ") + target.name);
  Compiled code(program(f.op, t, vector), target);
  ASSERT_TRUE(code);
  std::vector<T> x = samples<T>(count), got(x.size());
  code.run({slot(x.data()), slot(got.data()), x.size() / 16});
  double worst = 0;
  T where = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double u = ulps<T>(got[i], f.exact(x[i]));
    if (u > worst) worst = u, where = x[i];
  }
  if (getenv("TILEGEN_SHOW_ULPS"))
    std::printf("%-8s %s %s %-10s worst %.3f ulp at %a\n", ir::expr_text(f.op), ir::dtype_name(t),
                vector ? "vector" : "scalar", target.name.c_str(), worst, static_cast<double>(where));
  EXPECT_LE(worst, (sizeof(T) == 4 ? f.float_ulps : f.double_ulps)) << "at " << std::hexfloat << where;
}

TEST(Math, Float) {
  for (const auto& t : runnable_targets())
    for (const Function& f : kFunctions) {
      check<float>(f, t, true, 200000);
      check<float>(f, t, false, 5000);
    }
}

TEST(Math, Double) {
  for (const auto& t : runnable_targets())
    for (const Function& f : kFunctions) {
      check<double>(f, t, true, 50000);
      check<double>(f, t, false, 5000);
    }
}

// ---- functions of two arguments ----

struct Function2 {
  ExprOp op;
  long double (*exact)(long double, long double);
  double ulps;
};

const Function2 kFunctions2[] = {
    {ExprOp::pow, [](long double x, long double y) { return std::pow(x, y); }, 1.5},
    {ExprOp::atan2, [](long double y, long double x) { return std::atan2(y, x); }, 2},
    {ExprOp::fmod, [](long double x, long double y) { return std::fmod(x, y); }, 0},
};

// Pairs of everything with zeros, infinities, NaN, whole numbers, halves, the ends of the type; the rest at
// random.
template <class T>
std::vector<std::pair<T, T>> pairs(size_t random_count) {
  using L = std::numeric_limits<T>;
  std::vector<T> edges{0,
                       1,
                       2,
                       3,
                       T(0.5),
                       T(1.5),
                       T(0.75),
                       7,
                       1e20,
                       L::min(),
                       L::denorm_min(),
                       3 * L::denorm_min(),
                       L::max(),
                       L::infinity(),
                       L::quiet_NaN(),
                       T(16777215),
                       T(9007199254740991),
                       T(1) + L::epsilon()};
  std::vector<std::pair<T, T>> out;
  for (T a : edges)
    for (T b : edges)
      for (int sign = 0; sign < 4; ++sign) out.push_back({sign & 1 ? -a : a, sign & 2 ? -b : b});
  std::mt19937_64 random(9);
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  auto any = [&] { return std::bit_cast<T>(static_cast<Bits>(random())); };
  auto unit = [&] { return static_cast<T>(static_cast<double>(random() >> 11) / 9007199254740992.0); };
  for (size_t i = 0; i < random_count; ++i) switch (i % 4) {
      case 0:
        out.push_back({any(), any()});
        break;
      case 1:
        out.push_back({(unit() - T(0.5)) * 200, (unit() - T(0.5)) * 20});
        break;
      case 2:  // powers next to 1, remainders of few steps
        out.push_back({1 + (unit() - T(0.5)) / T(1 << random() % 20), unit() * T(1 << random() % 20)});
        break;
      default:  // quotients next to the ends of octants
        out.push_back({unit() + T(0.1), (unit() + T(0.1)) * (random() % 2 ? 1 : -1)});
    }
  while (out.size() % 16) out.push_back({1, 1});
  return out;
}

template <class T>
void check2(const Function2& f, const target::Target& target, thread::LoopForm form) {
  constexpr DType t = sizeof(T) == 4 ? DType::f32 : DType::f64;
  SCOPED_TRACE(std::string(ir::expr_text(f.op)) + " " + ir::dtype_name(t) + " " + target.name);
  KernelBuilder kb;
  MemoryId x = kb.tensor("x", t), y = kb.tensor("y", t), out = kb.tensor("out", t);
  ExprId n = kb.scalar("n", DType::i64, true);
  ir::VarId v = kb.loop_var("v"), lane = kb.loop_var("lane");
  auto& e = kb.p.exprs;
  ExprId at = e.add(e.mul(kb.var(v), 16), kb.var(lane));
  auto store = kb.store(out, at, e.binary(f.op, kb.load(x, at), kb.load(y, at)));
  kb.p.body = {kb.loop(thread::LoopForm::serial, v, n, {kb.loop(form, lane, kb.i(16), {store})})};
  Compiled code(kb.p, target);
  ASSERT_TRUE(code);
  const auto cases = pairs<T>(form == thread::LoopForm::vectorized ? 60000 : 3000);
  std::vector<T> a, b, got(cases.size());
  for (auto [p, q] : cases) a.push_back(p), b.push_back(q);
  code.run({slot(a.data()), slot(b.data()), slot(got.data()), a.size() / 16});
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const long double want = f.exact(a[i], b[i]);
    double u = ulps<T>(got[i], want);
    if (want == 0 && std::signbit(want) != std::signbit(got[i])) u = 1e30;
    if (u > worst) worst = u, where = i;
  }
  if (getenv("TILEGEN_SHOW_ULPS"))
    std::printf("%-8s %s %-10s worst %.3f ulp at %a %a\n", ir::expr_text(f.op), ir::dtype_name(t),
                target.name.c_str(), worst, static_cast<double>(a[where]), static_cast<double>(b[where]));
  EXPECT_LE(worst, f.ulps) << "at " << std::hexfloat << a[where] << " and " << b[where] << ": " << got[where];
}

TEST(Math, TwoArguments) {
  for (const auto& t : runnable_targets())
    for (const Function2& f : kFunctions2)
      for (thread::LoopForm form : {thread::LoopForm::serial, thread::LoopForm::vectorized})
        check2<float>(f, t, form), check2<double>(f, t, form);
}

// Every 16-bit value: within one place of the function rounded to the type.
TEST(Math, EverySixteenBitValue) {
  for (DType t : {DType::f16, DType::bf16})
    for (const Function& f : kFunctions) {
      SCOPED_TRACE(std::string(ir::expr_text(f.op)) + " " + ir::dtype_name(t));
      Compiled code(program(f.op, t, true), this_machine());
      ASSERT_TRUE(code);
      Elements x(t, 65536), got(t, 65536);
      for (size_t i = 0; i < 65536; ++i) x.set_bits(i, i);
      code.run({x.slot(), got.slot(), 65536 / 16});
      size_t off_by_one = 0;
      for (size_t i = 0; i < 65536; ++i) {
        double want = ir::round_to(t, static_cast<double>(f.exact(x.get(i).f)));
        double have = got.get(i).f;
        if (want != want) {
          ASSERT_NE(have, have) << "at " << x.get(i).f;
          continue;
        }
        if (have == want) continue;
        ++off_by_one;
        uint64_t w = ir::float_to_bits(t, want), h = got.bits(i);
        ASSERT_TRUE(w + 1 == h || h + 1 == w) << "at " << x.get(i).f << " got " << have << " want " << want;
      }
      EXPECT_LT(off_by_one, 40u);  // only values that lie next to the middle of two neighbours
    }
}

}  // namespace
}  // namespace tilegen::codegen::test
