// Every product of a warpgroup, in every width and from operands in every form, against the sum of products
// that the PTX ISA defines.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>

#include "../differential/data.h"
#include "one_product.h"

namespace tilegen::gpu {
namespace {

using differential::Data;
using differential::Random;
using target::WarpgroupAtom;

// ---- operands

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

// Whole numbers: sums keep below 2^13, of f16 below 2^11, so that they are exact everywhere.
double whole(const Product& x) { return ir::dtype_bytes(x.atom->a) == 1 || x.atom->c == DType::f16 ? 4 : 8; }

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
  // Its subnormal codes; of f32 those that tf32 has.
  const uint64_t codes = x.atom->a == DType::bf16   ? 127
                         : x.atom->a == DType::e4m3 ? 7
                         : x.atom->a == DType::e5m2 ? 3
                                                    : 1023;
  const int unit = x.atom->a == DType::f32 ? 13 : 0;
  const uint64_t sign = uint64_t{1} << (ir::dtype_bits(x.atom->a) - 1);
  Random random(3);
  for (int64_t i = 0; i < kRows; ++i)
    o.a.at(i, i % x.k()) = (1 + random.bits() % codes) << unit | (i % 2 ? sign : 0);
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

// Sums beyond the range of their type, which not all operands reach.
bool overflows(const WarpgroupAtom& atom) {
  return atom.c == DType::f16 ? atom.a == DType::f16
                              : atom.c == DType::f32 && (atom.a == DType::bf16 || atom.a == DType::f32);
}
Operands beyond_range(const Product& x) {
  Operands o(x, "beyond the range");
  const bool half = x.atom->c == DType::f16;
  const int small = half ? 8 : 100, large = half ? 15 : 127;  // powers of two
  for (int64_t i = 0; i < kRows; ++i)
    o.a.at(i, i % x.k()) =
        ir::float_to_bits(x.atom->a, (i % 2 ? -1 : 1) * std::ldexp(1.0, i % 3 == 0 ? small : large));
  for (int64_t j = 0; j < x.n; ++j)
    for (int64_t k = 0; k < x.k(); ++k)
      o.b.at(j, k) = ir::float_to_bits(x.atom->b, j % 2 ? 1 : std::ldexp(1.0, small));
  // The greatest number of the sum's type and one half of it, of the same sign.
  const uint64_t greatest = half ? 0x7bff : 0x7f7fffff, sign = uint64_t{1} << (ir::dtype_bits(x.atom->c) - 1);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 1; j < x.n; j += 2)
      if (i % 3 != 0) o.c.at(i, j) = greatest | (i % 2 ? sign : 0);
  return o;
}

const target::Target& device() {
  static const target::Target t = *target::find_target("sm_90a");
  return t;
}
const std::vector<WarpgroupAtom>& rows() { return device().warpgroup_mma; }

bool whole_panels(const OperandForm& f, DType type, int64_t extent) {
  return f.in_registers || f.k_major || f.swizzle == 0 || extent % (f.swizzle / ir::dtype_bytes(type)) == 0;
}

constexpr int64_t kSteps[] = {4, 1, 2, 8, 3};
constexpr Start kStarts[] = {Start::accumulate, Start::overwrite, Start::loop};

// One row of the table: says in the end whether all its products were right.
class Row {
 public:
  explicit Row(const WarpgroupAtom& atom) : atom_(atom) { used_share = 0; }
  ~Row() {
    std::cout << (well_ ? "verified: " : "differs: ") << atom_.name;
    if (used_share > 0) std::cout << ", the device uses " << used_share << " of the bound at most";
    std::cout << "\n";
  }
  void expect(const Product& x, const std::vector<Operands>& all) {
    if (!enough_failures()) well_ &= expect_product(x, all);
  }

 private:
  const WarpgroupAtom& atom_;
  bool well_ = true;
};

std::vector<OperandForm> b_forms_of(const WarpgroupAtom& atom) {
  return operand_forms(false, atom.mn_major, int64_t{atom.k} * ir::dtype_bytes(atom.b));
}

void expect_every_width(const std::vector<WarpgroupAtom>& atoms) {
  size_t number = 0, compared = 0;
  for (const WarpgroupAtom& atom : atoms) {
    Row row(atom);
    const auto a_forms = operand_forms(true, atom.mn_major), b_forms = b_forms_of(atom);
    const auto of_k = static_cast<size_t>(std::ranges::count_if(b_forms, &OperandForm::k_major));
    for (int n : atom.widths) {
      if (n > 64 && n % 64 != 0 && n != 96 && n != 200 && n != 240) continue;
      const size_t turn = number++;
      OperandForm b = b_forms[turn % b_forms.size()];
      if (!whole_panels(b, atom.b, n)) b = b_forms[turn % of_k];
      const Product x{&atom, n, kSteps[turn % 5], a_forms[turn % a_forms.size()], b, kStarts[turn % 3]};
      std::vector<Operands> all = {whole_numbers(x)};
      if (ir::is_float(atom.c)) all.push_back(random_operands(x, "reals", Data::reals, 2, 21));
      row.expect(x, all);
      ++compared;
    }
  }
  EXPECT_GE(compared, 100u);
}

TEST(WarpgroupInstructions, EveryRowInEveryWidth) { expect_every_width(rows()); }
TEST(WarpgroupInstructions, EverySparseRowInEveryWidth) { expect_every_width(device().sparse_warpgroup_mma); }

void expect_every_form(const std::vector<WarpgroupAtom>& atoms) {
  for (const WarpgroupAtom& atom : atoms) {
    Row row(atom);
    const auto a_forms = operand_forms(true, atom.mn_major), b_forms = b_forms_of(atom);
    for (size_t a = 0; a < a_forms.size(); ++a)
      for (size_t b = 0; b < b_forms.size(); ++b) {
        // Every form with some of the others'; MN-major ones of two panels.
        if ((a + b) % 3 != 0) continue;
        const Product x{&atom,      128,        kSteps[(a + b) / 3 % 5],
                        a_forms[a], b_forms[b], kStarts[(a + 2 * b) % 3]};
        row.expect(x, {whole_numbers(x)});
      }
  }
}

TEST(WarpgroupInstructions, EveryFormOfOperands) { expect_every_form(rows()); }
TEST(WarpgroupInstructions, EveryFormOfSparseOperands) { expect_every_form(device().sparse_warpgroup_mma); }

// The last panel of B is wider than the product.
TEST(WarpgroupInstructions, PanelsWiderThanTheProduct) {
  for (const WarpgroupAtom& atom : rows()) {
    if (!atom.mn_major) continue;
    Row row(atom);
    for (int swizzle : {128, 64, 32})
      for (int n : {8, 24, 40, 72, 136, 248}) {
        const Product x{&atom,           n, 2, {false, 128, true, true}, {false, swizzle, false, true},
                        Start::overwrite};
        if (whole_panels(x.b, atom.b, n)) continue;
        row.expect(x, {whole_numbers(x)});
      }
  }
}

TEST(WarpgroupInstructions, SpecialValues) {
  for (const WarpgroupAtom& atom : rows()) {
    if (!ir::is_float(atom.c)) continue;
    Row row(atom);
    for (bool in_registers : {false, true})
      for (Start start : kStarts) {
        const Product x{
            &atom, 64, 2, {in_registers, in_registers ? 0 : 128, true, true}, {false, 128, true, true},
            start};
        std::vector<Operands> all = {specials(x), zeros(x)};
        if (start != Start::loop) all.push_back(subnormals(x));
        row.expect(x, all);
      }
  }
}

TEST(WarpgroupInstructions, SumsBeyondTheRangeAreInfinite) {
  for (const WarpgroupAtom& atom : rows()) {
    if (!overflows(atom)) continue;
    const Product x{&atom, 64, 2, {false, 128, true, true}, {false, 128, true, true}, Start::accumulate};
    Row(atom).expect(x, {beyond_range(x)});
  }
}

// C begins far from the ends of its range, near them, and at random: sums wrap.
TEST(WarpgroupInstructions, IntegerSumsWrap) {
  for (const WarpgroupAtom& atom : rows()) {
    if (atom.c != DType::i32) continue;
    Row row(atom);
    const Product x{&atom, 64, 4, {false, 128, true, true}, {false, 128, true, true}, Start::accumulate};
    std::vector<Operands> all;
    for (uint64_t end : {uint64_t{0x7fffffff}, uint64_t{0x80000000}}) {
      all.push_back(whole_numbers(x));
      all.back().name = "at an end of the range";
      for (uint64_t& c : all.back().c.bits) c = end;
    }
    row.expect(x, all);
  }
}

// A large accumulator and small products, reals of a wide range: what an 8-bit float's sum loses is within
// the bound.
TEST(WarpgroupInstructions, SumsOfByteFloatsLoseNoMoreThanStated) {
  for (const WarpgroupAtom& atom : rows()) {
    if (ir::dtype_bytes(atom.a) != 1 || atom.c != DType::f32) continue;
    Row row(atom);
    const Product x{&atom, 64, 4, {false, 128, true, true}, {false, 128, true, true}, Start::accumulate};
    std::vector<Operands> all;
    for (double c : {0.0, 1.0, 4096.0, 1e6}) {
      all.push_back(random_operands(x, "reals on a large sum", Data::reals, 4, 31));
      for (uint64_t& bits : all.back().c.bits) bits = ir::float_to_bits(DType::f32, c);
    }
    row.expect(x, all);
  }
}

// Two warpgroups, each with its rows of A, and two groups of products each: the older one's results are used
// while the newer one is under way.
TEST(WarpgroupInstructions, GroupsUnderWay) {
  constexpr int64_t kN = 64, kK = 64, kGroup = 128, kOwn = kN / 2;
  const OperandForm form{false, 128, true, true};
  const OperandImage a_image(form, DType::f16, 128, kK, 16), b_image(form, DType::f16, kN, kK, 16);
  EngineProgram g(2 * kGroup);
  const MemoryId a = g.tensor("A", DType::f16, a_image.elements()),
                 b = g.tensor("B", DType::f16, 2 * b_image.elements());
  const MemoryId c = g.tensor("C", DType::f32, 2 * 2 * kGroup * kOwn);
  const MemoryId as = g.tile("As", DType::f16, a_image.elements()),
                 bs = g.tile("Bs", DType::f16, 2 * b_image.elements());
  const MemoryId acc[] = {g.registers("acc0", DType::f32, kOwn), g.registers("acc1", DType::f32, kOwn)};
  g.spread(a_image.elements(), [&](E j, E) { g.store(as, j, g.load(a, j)); });
  g.spread(2 * b_image.elements(), [&](E j, E) { g.store(bs, j, g.load(b, j)); });
  g.proxy_fence();
  g.barrier();
  g.add(thread::WarpgroupFence{}, "product");
  for (int64_t half : {0, 1}) {
    thread::WarpgroupMma m;
    m.atom = "wgmma.m64n64k16.f32.f16.f16";
    m.a = as, m.b = bs, m.c = acc[half];
    m.a_index = (g.thread() / kGroup * (kRows * kK)).id, m.b_index = g.i(half * b_image.elements()).id,
    m.c_index = g.i(0).id;
    m.a_steps = a_image.steps(), m.b_steps = b_image.steps();
    m.a_form = a_image.matrix_form(), m.b_form = b_image.matrix_form();
    m.accumulate = (g.i(0) == 1).id;
    g.add(m, "product");
    g.add(thread::WarpgroupCommit{}, "product");
  }
  for (int64_t half : {0, 1}) {
    g.add(thread::WarpgroupWait{1 - half, {acc[half]}}, "product");
    g.loop(g.i(kOwn), LoopForm::unrolled,
           [&](E r) { g.store(c, (g.thread() + half * 2 * kGroup) * kOwn + r, g.load(acc[half], r)); });
  }
  Matrix ma(DType::f16, 128, kK), mb0(DType::f16, kN, kK), mb1(DType::f16, kN, kK);
  fill(ma, Data::integers, 8, 1), fill(mb0, Data::integers, 8, 2), fill(mb1, Data::integers, 8, 3);
  Tensors start = {a_image.make(ma), b_image.make(mb0),
                   same_bytes(2 * 2 * kGroup * kOwn * 4, std::byte{0x11})};
  const std::vector<std::byte> second = b_image.make(mb1);
  start[1].insert(start[1].end(), second.begin(), second.end());
  Tensors expected = start;
  for (int64_t half : {0, 1})
    for (int64_t t = 0; t < 2 * kGroup; ++t)
      for (int64_t r = 0; r < kOwn; ++r) {
        const Place p = accumulator_place(t, r);
        double sum = 0;
        for (int64_t k = 0; k < kK; ++k) sum += ma.value(p.row, k) * (half ? mb1 : mb0).value(p.column, k);
        const auto f = static_cast<float>(sum);
        std::memcpy(&expected[2][static_cast<size_t>(((t + half * 2 * kGroup) * kOwn + r) * 4)], &f, 4);
      }
  EngineRun(g).expect_exactly(start, expected);
}

}  // namespace
}  // namespace tilegen::gpu
