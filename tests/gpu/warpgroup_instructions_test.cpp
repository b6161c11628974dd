// Every product of a warpgroup, in every width and from operands in every form, against the sum of products
// that the PTX ISA defines.
//
// Products of integers, and of whole numbers that are small enough, are exact. Others are within a bound: the
// order and the rounding of the sum within one instruction are the hardware's. On compute capability 9.0 the
// addends of an instruction (its products and the accumulator) are aligned to the largest and truncated: of
// 16-bit floats bits below 2^-23 of the largest are lost at most, of 8-bit floats those below 2^-13, and so
// are those of the result (DeepSeek-V3 technical report, 3.5.2: 14 bits are kept).
#include <cmath>
#include <cstring>
#include <iostream>

#include "../differential/data.h"
#include "warpgroup_operands.h"

namespace tilegen::gpu {
namespace {

using differential::Data;
using differential::Random;
using target::WarpgroupAtom;

constexpr int64_t kRows = 64, kThreads = 128;

enum class Start { accumulate, overwrite, loop };  // loop: of two rounds the first overwrites

struct Product {
  const WarpgroupAtom* atom = nullptr;
  int n = 64;
  int64_t steps = 1;
  OperandForm a, b;
  Start start = Start::accumulate;

  int64_t k() const { return steps * atom->k; }
  int rounds() const { return start == Start::loop ? 2 : 1; }
  std::string name() const {
    return target::warpgroup_instruction_name(*atom, n) + ", " + std::to_string(steps) + " steps, A " +
           a.name() + ", B " + b.name() +
           (start == Start::accumulate  ? ", accumulates"
            : start == Start::overwrite ? ", overwrites"
                                        : ", in a loop");
  }
};

struct ProductProgram : EngineProgram {
  OperandImage a_image, b_image;

  explicit ProductProgram(const Product& x)
      : EngineProgram(kThreads),
        a_image(x.a, x.atom->a, kRows, x.k(), x.atom->k),
        b_image(x.b, x.atom->b, x.n, x.k(), x.atom->k) {
    const int64_t own = x.n / 2;  // elements of C
    const MemoryId a = tensor("A", x.atom->a, a_image.elements()),
                   b = tensor("B", x.atom->b, b_image.elements());
    const MemoryId c = tensor("C", x.atom->c, kThreads * own);
    thread::WarpgroupMma m;
    m.atom = target::warpgroup_instruction_name(*x.atom, x.n);
    m.a = x.a.in_registers ? registers("a", x.atom->a, a_image.elements() / kThreads)
                           : tile("As", x.atom->a, a_image.elements());
    m.b = tile("Bs", x.atom->b, b_image.elements());
    m.c = registers("acc", x.atom->c, own);
    if (x.a.in_registers)
      take(m.a, a, a_image.elements() / kThreads);
    else
      spread(a_image.elements(), [&](E j, E in) { store_if(m.a, j, load_if(a, j, in), in); });
    spread(b_image.elements(), [&](E j, E in) { store_if(m.b, j, load_if(b, j, in), in); });
    take(m.c, c, own);
    proxy_fence();
    barrier();
    m.a_index = m.b_index = m.c_index = i(0).id;
    m.a_steps = a_image.steps(), m.b_steps = b_image.steps();
    m.a_form = a_image.matrix_form(), m.b_form = b_image.matrix_form();
    if (x.start == Start::overwrite) m.accumulate = (i(0) == 1).id;
    if (x.start == Start::loop)
      loop(i(2), LoopForm::serial, [&](E round) {
        m.accumulate = (i(0) < round).id;
        multiply(m);
      });
    else
      multiply(m);
    loop(i(own), LoopForm::unrolled, [&](E r) { store(c, thread() * own + r, load(m.c, r)); });
  }

 private:
  void take(MemoryId to, MemoryId from, int64_t each) {
    loop(i(each), LoopForm::unrolled, [&](E r) { store(to, r, load(from, thread() * each + r)); });
  }
  void multiply(const thread::WarpgroupMma& m) {
    add(thread::WarpgroupFence{}, "product");
    add(m, "product");
    add(thread::WarpgroupCommit{}, "product");
    add(thread::WarpgroupWait{0, {m.c}}, "product");
  }
};

// ---- what a product has to be

// The largest of what is added up, and the sum.
struct Sum {
  double value = 0, largest = 0;
  void add(double x) {
    value += x;
    largest = std::max({largest, std::fabs(x), std::fabs(value)});
  }
};

Sum expected_sum(const Product& x, const Matrix& a, const Matrix& b, double c, int64_t i, int64_t j) {
  Sum s;
  s.add(x.start == Start::accumulate ? c : 0.0);
  for (int round = 0; round < x.rounds(); ++round)
    for (int64_t k = 0; k < x.k(); ++k) s.add(a.value(i, k) * b.value(j, k));
  return s;
}

double bound_of(const Product& x, const Sum& s, bool device) {
  const bool bytes = ir::dtype_bytes(x.atom->a) == 1;
  const double bits = !device ? 0x1p-24 : bytes ? 0x1p-13 : 0x1p-23;
  double each = static_cast<double>(x.atom->k + 2) * bits;
  if (x.atom->c == DType::f16) each += 0x1p-10;
  return each * static_cast<double>(x.steps * x.rounds()) * s.largest;
}

double in_type(DType t, double v) {
  return ir::is_float(t) ? ir::float_from_bits(t, ir::float_to_bits(t, v))
                         : static_cast<double>(ir::wrap_to(t, static_cast<int64_t>(v)));
}

// ---- operands

struct Operands {
  std::string name;
  bool exact = true;
  Matrix a, b, c;

  Operands(const Product& x, std::string what)
      : name(std::move(what)),
        a(x.atom->a, kRows, x.k()),
        b(x.atom->b, x.n, x.k()),
        c(x.atom->c, kRows, x.n) {}
};

void fill(Matrix& m, Data data, double magnitude, uint64_t seed) {
  Random random(seed);
  for (uint64_t& bits : m.bits)
    bits = m.type == DType::i32 ? random.bits() & 0xffffffff
                                : differential::random_element(random, m.type, data, magnitude);
}

Operands random_operands(const Product& x, const char* name, Data data, double magnitude, uint64_t seed) {
  Operands o(x, name);
  o.exact = !ir::is_float(x.atom->c) || data == Data::integers;
  fill(o.a, data, magnitude, seed), fill(o.b, data, magnitude, seed + 1),
      fill(o.c, data, magnitude, seed + 2);
  return o;
}

// Whole numbers: sums keep below 2^13, so that they are exact everywhere.
double whole(const Product& x) { return ir::dtype_bytes(x.atom->a) == 1 ? 4 : 8; }

Operands whole_numbers(const Product& x) {
  return random_operands(x, "whole numbers", Data::integers, whole(x), 1);
}

// Whole numbers; in some rows of A, columns of B and elements of C one that is none.
Operands specials(const Product& x) {
  Operands o = whole_numbers(x);
  o.name = "NaN and infinities";
  Random random(7);
  const auto special = [&](DType t) {
    const double inf = t == DType::e4m3 ? NAN : INFINITY;  // it has none
    return ir::float_to_bits(t, random.pick({inf, -inf, double(NAN)}));
  };
  for (Matrix* m : {&o.a, &o.b})
    for (int64_t row = 0; row < m->rows; ++row)
      if (random.chance(3)) m->at(row, random.below(m->k)) = special(m->type);
  for (uint64_t& c : o.c.bits)
    if (random.chance(16)) c = special(o.c.type);
  return o;
}

// One product a sum: the smallest numbers of A's type times powers of two; where B is zero the smallest of
// C's.
Operands subnormals(const Product& x) {
  Operands o(x, "subnormal numbers");
  const uint64_t codes = x.atom->a == DType::f16    ? 1023
                         : x.atom->a == DType::bf16 ? 127
                         : x.atom->a == DType::e4m3 ? 7
                                                    : 3;
  const uint64_t sign = uint64_t{1} << (ir::dtype_bits(x.atom->a) - 1);
  Random random(3);
  for (int64_t i = 0; i < kRows; ++i) o.a.at(i, i % x.k()) = (1 + random.bits() % codes) | (i % 2 ? sign : 0);
  for (int64_t j = 0; j < x.n; j += 2)
    for (int64_t k = 0; k < x.k(); ++k)
      o.b.at(j, k) = ir::float_to_bits(x.atom->b, random.chance(2) ? 1 : -4);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 1; j < x.n; j += 2)
      o.c.at(i, j) = ir::float_to_bits(x.atom->c, std::ldexp(double(1 + i % 7), -130));
  return o;
}

// Signed zeros in, zeros of either sign out.
Operands zeros(const Product& x) {
  Operands o(x, "zeros of both signs");
  Random random(4);
  for (Matrix* m : {&o.a, &o.b, &o.c})
    for (uint64_t& bits : m->bits)
      bits = ir::float_to_bits(m->type, random.chance(3) ? -0.0 : m == &o.b ? 1.0 : 0.0);
  return o;
}

// Sums beyond the range of f32, which only these types reach.
Operands overflows(const Product& x) {
  Operands o(x, "overflow");
  for (int64_t i = 0; i < kRows; ++i)
    o.a.at(i, i % x.k()) =
        ir::float_to_bits(DType::bf16, (i % 2 ? -1 : 1) * std::ldexp(1.0, i % 3 == 0 ? 100 : 127));
  for (int64_t j = 0; j < x.n; ++j)
    for (int64_t k = 0; k < x.k(); ++k)
      o.b.at(j, k) = ir::float_to_bits(DType::bf16, j % 2 ? 1 : std::ldexp(1.0, 100));
  // The greatest f32 and 2^127 of the same sign.
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 1; j < x.n; j += 2)
      if (i % 3 != 0) o.c.at(i, j) = 0x7f7fffff | (i % 2 ? 0x80000000u : 0);
  return o;
}

// ---- running

std::vector<std::byte> accumulators(const Product& x, const Matrix& c) {
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(c.type));
  std::vector<std::byte> out(static_cast<size_t>(kRows * x.n) * bytes);
  for (int64_t t = 0; t < kThreads; ++t)
    for (int64_t r = 0; r < x.n / 2; ++r) {
      const Place p = accumulator_place(t, r);
      std::memcpy(&out[static_cast<size_t>(t * (x.n / 2) + r) * bytes],
                  &c.bits[static_cast<size_t>(p.row * x.n + p.column)], bytes);
    }
  return out;
}

// How much of the bound the device has used at most, by instruction.
double used_share = 0;

std::string compare(const Product& x, const Operands& o, const std::vector<std::byte>& actual, bool device) {
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(x.atom->c));
  for (int64_t t = 0; t < kThreads; ++t)
    for (int64_t r = 0; r < x.n / 2; ++r) {
      const Place p = accumulator_place(t, r);
      uint64_t bits = 0;
      std::memcpy(&bits, &actual[static_cast<size_t>(t * (x.n / 2) + r) * bytes], bytes);
      Matrix one(x.atom->c, 1, 1);
      one.bits[0] = bits;
      const Sum s = expected_sum(x, o.a, o.b, o.c.value(p.row, p.column), p.row, p.column);
      const double got = one.value(0, 0), exact = in_type(x.atom->c, s.value);
      if (got == exact || (std::isnan(got) && std::isnan(exact))) continue;
      const double bound = o.exact ? 0 : bound_of(x, s, device);
      const double off = std::fabs(got - s.value);
      if (std::isfinite(got) && off <= bound) {
        if (device) used_share = std::max(used_share, off / bound);
        continue;
      }
      std::array<char, 160> text;
      std::snprintf(text.data(), text.size(), "element [%d, %d] is %.9g, expected %.9g within %.3g",
                    static_cast<int>(p.row), static_cast<int>(p.column), got, exact, bound);
      return text.data();
    }
  return {};
}

bool expect_product(const Product& x, const std::vector<Operands>& all) {
  SCOPED_TRACE(x.name());
  const ProductProgram g(x);
  EngineRun run(g, false);
  for (const Operands& o : all) {
    SCOPED_TRACE(o.name);
    const Tensors start = {g.a_image.make(o.a), g.b_image.make(o.b), accumulators(x, o.c)};
    if (!run.expect(start,
                    [&](const Executor& by, const Tensors& t) { return compare(x, o, t[2], by.device); }))
      return false;
  }
  return !testing::Test::HasFailure();
}

const std::vector<WarpgroupAtom>& rows() {
  static const target::Target t = *target::find_target("sm_90a");
  return t.warpgroup_mma;
}

bool whole_panels(const OperandForm& f, DType type, int64_t extent) {
  return f.in_registers || f.k_major || f.swizzle == 0 || extent % (f.swizzle / ir::dtype_bytes(type)) == 0;
}

constexpr int64_t kSteps[] = {4, 1, 2, 8, 3};
constexpr Start kStarts[] = {Start::accumulate, Start::overwrite, Start::loop};

TEST(WarpgroupInstructions, EveryRowInEveryWidth) {
  size_t number = 0, compared = 0;
  for (const WarpgroupAtom& atom : rows()) {
    used_share = 0;
    const auto a_forms = operand_forms(true, atom.mn_major), b_forms = operand_forms(false, atom.mn_major);
    for (int n : atom.widths) {
      if (n > 64 && n % 64 != 0 && n != 96 && n != 200 && n != 240) continue;
      const size_t turn = number++;
      OperandForm b = b_forms[turn % b_forms.size()];
      if (!whole_panels(b, atom.b, n)) b = b_forms[turn % 5];
      const Product x{&atom, n, kSteps[turn % 5], a_forms[turn % a_forms.size()], b, kStarts[turn % 3]};
      std::vector<Operands> all = {whole_numbers(x)};
      if (ir::is_float(atom.c)) all.push_back(random_operands(x, "reals", Data::reals, 2, 21));
      if (!expect_product(x, all)) return;
      ++compared;
    }
    std::cout << "verified: " << atom.name << ", at most " << used_share << " of the bound on the device\n";
  }
  EXPECT_GE(compared, 100u);
}

TEST(WarpgroupInstructions, EveryFormOfOperands) {
  for (const WarpgroupAtom& atom : rows()) {
    const auto a_forms = operand_forms(true, atom.mn_major), b_forms = operand_forms(false, atom.mn_major);
    for (size_t a = 0; a < a_forms.size(); ++a)
      for (size_t b = 0; b < b_forms.size(); ++b) {
        // Every form with some of the others'; MN-major ones of two panels.
        if ((a + b) % 3 != 0) continue;
        const Product x{&atom,      128,        kSteps[(a + b) / 3 % 5],
                        a_forms[a], b_forms[b], kStarts[(a + 2 * b) % 3]};
        if (!expect_product(x, {whole_numbers(x)})) return;
      }
    std::cout << "verified: " << atom.name << "\n";
  }
}

// The last panel of B is wider than the product.
TEST(WarpgroupInstructions, PanelsWiderThanTheProduct) {
  for (const WarpgroupAtom& atom : rows()) {
    if (!atom.mn_major) continue;
    for (int swizzle : {128, 64, 32})
      for (int n : {8, 24, 40, 72, 136, 248}) {
        const Product x{&atom,           n, 2, {false, 128, true, true}, {false, swizzle, false, true},
                        Start::overwrite};
        if (whole_panels(x.b, atom.b, n)) continue;
        if (!expect_product(x, {whole_numbers(x)})) return;
      }
  }
}

TEST(WarpgroupInstructions, SpecialValues) {
  for (const WarpgroupAtom& atom : rows()) {
    if (!ir::is_float(atom.c)) continue;
    for (bool in_registers : {false, true})
      for (Start start : kStarts) {
        const Product x{
            &atom, 64, 2, {in_registers, in_registers ? 0 : 128, true, true}, {false, 128, true, true},
            start};
        std::vector<Operands> all = {specials(x), zeros(x)};
        if (start != Start::loop) all.push_back(subnormals(x));
        if (!expect_product(x, all)) return;
      }
    std::cout << "verified: " << atom.name << "\n";
  }
}

TEST(WarpgroupInstructions, SumsBeyondF32AreInfinite) {
  for (const WarpgroupAtom& atom : rows()) {
    if (atom.a != DType::bf16 || atom.c != DType::f32) continue;
    const Product x{&atom, 64, 2, {false, 128, true, true}, {false, 128, true, true}, Start::accumulate};
    expect_product(x, {overflows(x)});
  }
}

// C begins far from the ends of its range, near them, and at random: sums wrap.
TEST(WarpgroupInstructions, IntegerSumsWrap) {
  for (const WarpgroupAtom& atom : rows()) {
    if (atom.c != DType::i32) continue;
    const Product x{&atom, 64, 4, {false, 128, true, true}, {false, 128, true, true}, Start::accumulate};
    std::vector<Operands> all;
    for (uint64_t end : {uint64_t{0x7fffffff}, uint64_t{0x80000000}}) {
      all.push_back(whole_numbers(x));
      all.back().name = "at an end of the range";
      for (uint64_t& c : all.back().c.bits) c = end;
    }
    if (!expect_product(x, all)) return;
  }
}

// A large accumulator and small products, reals of a wide range: what an 8-bit float's sum loses is within
// the bound.
TEST(WarpgroupInstructions, SumsOfByteFloatsLoseNoMoreThanStated) {
  for (const WarpgroupAtom& atom : rows()) {
    if (ir::dtype_bytes(atom.a) != 1 || atom.c != DType::f32) continue;
    used_share = 0;
    const Product x{&atom, 64, 4, {false, 128, true, true}, {false, 128, true, true}, Start::accumulate};
    std::vector<Operands> all;
    for (double c : {0.0, 1.0, 4096.0, 1e6}) {
      all.push_back(random_operands(x, "reals on a large sum", Data::reals, 4, 31));
      for (uint64_t& bits : all.back().c.bits) bits = ir::float_to_bits(DType::f32, c);
    }
    if (!expect_product(x, all)) return;
    std::cout << "verified: " << atom.name << ", at most " << used_share << " of the bound on the device\n";
  }
}

}  // namespace
}  // namespace tilegen::gpu
