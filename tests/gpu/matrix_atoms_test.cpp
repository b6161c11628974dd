// Every matrix instruction of a warp alone in a kernel, against sums of products: on the simulator, and on
// the first CUDA device. Where lanes have the elements is the table's, which its own test compares with the
// figures of the PTX ISA.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <random>

#include "one_instruction.h"

namespace tilegen::gpu {
namespace {

using differential::Data;
using ir::DType;

// Operands of which several lanes hold a copy: the copies are equal, as they are in a program.
void make_copies_equal(const layout::Fragment& f, DType type, std::vector<std::byte>& lanes) {
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(type));
  for (int64_t i = 0; i < f.shape()[0]; ++i)
    for (int64_t j = 0; j < f.shape()[1]; ++j) {
      const std::vector<int64_t> index = {i, j};
      const std::vector<int64_t> holders = f.holders(index);
      const auto place = [&](int64_t lane) {
        return static_cast<size_t>(lane * f.registers() + f.register_of(index)) * bytes;
      };
      for (int64_t lane : holders) std::memcpy(&lanes[place(lane)], &lanes[place(holders.front())], bytes);
    }
}

// An operand as the instruction takes it: f32 as tf32, to nearest, ties away from zero.
double operand(const target::MmaAtom& atom, const layout::Fragment& f, DType type,
               const std::vector<std::byte>& lanes, int64_t i, int64_t j) {
  const std::vector<int64_t> index = {i, j};
  const double v = element_value(
      type, lanes, static_cast<size_t>(f.holders(index)[0] * f.registers() + f.register_of(index)));
  if (!atom.tf32 || !std::isfinite(v)) return v;
  const uint64_t bits = ir::float_to_bits(DType::f32, v) + 0x1000;
  return ir::float_from_bits(DType::f32, bits & ~uint64_t{0x1fff});
}

// How far a sum may be from the exact one: it is not rounded as f32 additions in order are.
double tolerance(const target::MmaAtom& atom, double largest_product) {
  if (!ir::is_float(atom.c)) return 0;
  const double epsilon = atom.c == DType::f64 ? 0x1p-52 : atom.c == DType::f16 ? 0x1p-10 : 0x1p-22;
  return epsilon * (atom.k + 1) * largest_product;
}

struct Case {
  const char* name;
  Data data;
  double magnitude;
};

// Words of any places, of which no two of a group are equal. Lanes that have the same differ: which of them
// is read is the instruction's.
std::vector<std::byte> any_places(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> lanes(32 * sizeof(uint32_t));
  for (size_t l = 0; l < 32; ++l) {
    uint32_t word = 0;
    for (int i = 0; i < 8; ++i) {
      const auto first = static_cast<uint32_t>(random() % 4);
      const auto second = static_cast<uint32_t>(first + 1 + random() % 3) % 4;
      word |= (first | second << 2) << 4 * i;
    }
    std::memcpy(&lanes[l * sizeof word], &word, sizeof word);
  }
  return lanes;
}

// k of value `k` of a row of a sparse A.
int64_t kept_k(const target::MmaAtom& atom, const std::vector<std::byte>& places, int64_t row, int64_t k) {
  const std::vector<int64_t> at = {row, k / 2};
  uint32_t word = 0;
  std::memcpy(&word, &places[static_cast<size_t>(atom.places->holders(at)[0]) * sizeof word], sizeof word);
  return k / 2 * 4 + static_cast<int64_t>(word >> (atom.places->register_of(at) * 4 + k % 2 * 2)) % 4;
}

std::string wrong_sum(const target::MmaAtom& atom, const Tensors& start, const Tensors& results,
                      double bound) {
  for (int64_t i = 0; i < atom.m; ++i)
    for (int64_t j = 0; j < atom.n; ++j) {
      const std::vector<int64_t> at = {i, j};
      for (int64_t lane : atom.c_layout.holders(at)) {
        const auto b_row = [&](int64_t k) { return atom.sparse() ? kept_k(atom, start[3], i, k) : k; };
        const auto place =
            static_cast<size_t>(lane * atom.c_layout.registers() + atom.c_layout.register_of(at));
        double sum = element_value(atom.c, start[2], place);
        for (int64_t k = 0; k < atom.a_k(); ++k)
          sum += operand(atom, atom.a_layout, atom.a, start[0], i, k) *
                 operand(atom, atom.b_layout, atom.b, start[1], b_row(k), j);
        if (!ir::is_float(atom.c)) sum = static_cast<double>(ir::wrap_to(atom.c, static_cast<int64_t>(sum)));
        const double got = element_value(atom.c, results[2], place);
        if (got == sum || (std::isnan(got) && std::isnan(sum))) continue;
        if (std::isfinite(got) && std::isfinite(sum) && std::fabs(got - sum) <= bound) continue;
        return "C(" + std::to_string(i) + ", " + std::to_string(j) + ") of lane " + std::to_string(lane) +
               " is " + std::to_string(got) + ", expected " + std::to_string(sum);
      }
    }
  return {};
}

bool compare_atom(const target::Target& target, const target::MmaAtom& atom, const Case& c) {
  SCOPED_TRACE(atom.name + ", " + c.name);
  const int64_t na = atom.a_layout.registers(), nb = atom.b_layout.registers(),
                nc = atom.c_layout.registers();
  WarpProgram p("atom");
  const auto ta = p.tensor("A", atom.a, 32 * na), tb = p.tensor("B", atom.b, 32 * nb),
             tc = p.tensor("C", atom.c, 32 * nc);
  const auto a = p.registers("a", atom.a, na), b = p.registers("b", atom.b, nb),
             acc = p.registers("c", atom.c, nc);
  p.load(a, ta, na);
  p.load(b, tb, nb);
  p.load(acc, tc, nc);
  thread::WarpMma mma{
      atom.name,           a, b, acc, p.at(0), p.at(0), p.at(0), static_cast<int>(na), static_cast<int>(nb),
      static_cast<int>(nc)};
  if (atom.sparse()) {
    const auto words = p.tensor("P", DType::u32, 32);
    mma.places = p.registers("p", DType::u32, 1);
    mma.places_index = p.at(0);
    p.load(mma.places, words, 1);
  }
  p.add(mma);
  p.store(tc, acc, nc);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Tensors start = {elements(atom.a, 32 * na, c.data, c.magnitude, seed),
                     elements(atom.b, 32 * nb, c.data, c.magnitude, seed + 100),
                     elements(atom.c, 32 * nc, c.data, c.magnitude, seed + 200)};
    if (atom.sparse()) start.push_back(any_places(seed + 300));
    make_copies_equal(atom.a_layout, atom.a, start[0]);
    make_copies_equal(atom.b_layout, atom.b, start[1]);
    const double bound = tolerance(atom, std::max(c.magnitude * c.magnitude, 1.0));
    if (!expect_result(p, target, start,
                       [&](const Tensors& results) { return wrong_sum(atom, start, results, bound); }))
      return false;
  }
  return true;
}

TEST(Instructions, MatrixAtomsAreSumsOfProducts) {
  const target::Target target = instruction_target();
  const Case cases[] = {{"whole numbers", Data::integers, 8},
                        {"reals", Data::reals, 2},
                        {"whole numbers with NaN, infinities and zeros", Data::integers_specials, 8}};
  int compared = 0;
  for (const auto* atoms : {&target.mma, &target.sparse_mma})
    for (const target::MmaAtom& atom : *atoms) {
      if (atom.unit == target::MmaUnit::multiply_add) continue;  // multiply-adds are plain expressions
      ++compared;
      bool well = true;
      for (const Case& c : cases) well = compare_atom(target, atom, c) && well;
      std::cout << (well ? "verified: " : "differs: ") << atom.name << "\n";
    }
  EXPECT_GE(compared, 24);
}

}  // namespace
}  // namespace tilegen::gpu
