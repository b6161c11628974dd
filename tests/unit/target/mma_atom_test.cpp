// Operand layouts of every matrix atom against the formulas of the PTX ISA's fragment figures, written here
// anew.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "target/target.h"

namespace tilegen::target {
namespace {

using layout::Fragment;
using RowCol = std::pair<int64_t, int64_t>;
// Element that lane `lane` holds in register slot `i`, where groupID = lane >> 2 and threadID_in_group = lane
// % 4.
using Formula = std::function<RowCol(int64_t lane, int64_t i)>;

struct Figures {
  Formula a, b, c;
};

// "Matrix Fragments for mma.m16n8k16 with floating point type"
RowCol a_m16n8k16(int64_t lane, int64_t i) {
  const int64_t group = lane >> 2, thread = lane % 4;
  const int64_t row = (0 <= i && i < 2) || (4 <= i && i < 6) ? group : group + 8;
  const int64_t col = i < 4 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8;
  return {row, col};
}
RowCol b_m16n8k16(int64_t lane, int64_t i) {
  const int64_t group = lane >> 2, thread = lane % 4;
  return {i < 2 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8, group};
}
RowCol c_m16n8(int64_t lane, int64_t i) {
  const int64_t group = lane >> 2, thread = lane % 4;
  return {i < 2 ? group : group + 8, thread * 2 + (i & 1)};
}
// "Matrix Fragments for mma.m16n8k32", 8-bit integers
RowCol a_m16n8k32(int64_t lane, int64_t i) {
  const int64_t group = lane >> 2, thread = lane % 4;
  const int64_t row = (0 <= i && i < 4) || (8 <= i && i < 12) ? group : group + 8;
  return {row, i < 8 ? thread * 4 + (i & 3) : thread * 4 + (i & 3) + 16};
}
RowCol b_m16n8k32(int64_t lane, int64_t i) {
  const int64_t group = lane >> 2, thread = lane % 4;
  return {i < 4 ? thread * 4 + (i & 3) : thread * 4 + (i & 3) + 16, group};
}
// "Matrix Fragments for mma.m8n8k4 with .f64"
RowCol a_m8n8k4(int64_t lane, int64_t) { return {lane >> 2, lane % 4}; }
RowCol b_m8n8k4(int64_t lane, int64_t) { return {lane % 4, lane >> 2}; }
RowCol c_m8n8(int64_t lane, int64_t i) { return {lane >> 2, (lane % 4) * 2 + (i & 1)}; }
// "Matrix Fragments for mma.m16n8k8" and "m16n8k4" with .tf32
RowCol a_m16n8k8_tf32(int64_t lane, int64_t i) {
  const int64_t group = lane >> 2, thread = lane % 4;
  return {i == 0 || i == 2 ? group : group + 8, i < 2 ? thread : thread + 4};
}
RowCol b_m16n8k8_tf32(int64_t lane, int64_t i) { return {i == 0 ? lane % 4 : lane % 4 + 4, lane >> 2}; }
RowCol a_m16n8k4_tf32(int64_t lane, int64_t i) { return {i == 0 ? lane >> 2 : (lane >> 2) + 8, lane % 4}; }
RowCol b_m16n8k4_tf32(int64_t lane, int64_t) { return {lane % 4, lane >> 2}; }
// Byte dot products: what a multiply-add has of an operand's row or column, for four k.
RowCol a_dp4a(int64_t lane, int64_t i) { return {lane / 4, i}; }
RowCol b_dp4a(int64_t lane, int64_t i) { return {i, lane % 4}; }
RowCol a_dp4a_4x4(int64_t lane, int64_t i) { return {lane / 4 * 4 + i / 4, i % 4}; }
RowCol b_dp4a_4x4(int64_t lane, int64_t i) { return {i % 4, lane % 4 * 4 + i / 4}; }
// Plain multiply-add: one element of C a lane, in row-major order of an 8 x 4 tile.
RowCol a_fma(int64_t lane, int64_t) { return {lane / 4, 0}; }
RowCol b_fma(int64_t lane, int64_t) { return {0, lane % 4}; }
RowCol c_fma(int64_t lane, int64_t) { return {lane / 4, lane % 4}; }

// Plain multiply-add, 4x4 elements of C a lane.
RowCol a_fma_4x4(int64_t lane, int64_t r) { return {lane / 4 * 4 + r, 0}; }
RowCol b_fma_4x4(int64_t lane, int64_t r) { return {0, lane % 4 * 4 + r}; }
RowCol c_fma_4x4(int64_t lane, int64_t r) { return {lane / 4 * 4 + r / 4, lane % 4 * 4 + r % 4}; }

Figures figures_of(const MmaAtom& atom) {
  if (atom.k == 16) return {a_m16n8k16, b_m16n8k16, c_m16n8};
  if (atom.tf32 && atom.k == 8) return {a_m16n8k8_tf32, b_m16n8k8_tf32, c_m16n8};
  if (atom.tf32) return {a_m16n8k4_tf32, b_m16n8k4_tf32, c_m16n8};
  if (atom.name.starts_with("dp4a."))
    return atom.m == 32 ? Figures{a_dp4a_4x4, b_dp4a_4x4, c_fma_4x4} : Figures{a_dp4a, b_dp4a, c_fma};
  if (atom.k == 32) return {a_m16n8k32, b_m16n8k32, c_m16n8};
  if (atom.k == 4) return {a_m8n8k4, b_m8n8k4, c_m8n8};
  if (atom.m == 32) return {a_fma_4x4, b_fma_4x4, c_fma_4x4};
  return {a_fma, b_fma, c_fma};
}

// Every lane holds what the figure says, in the register it says, and nothing else.
void expect_figure(const Fragment& f, int64_t rows, int64_t cols, const Formula& formula,
                   const std::string& what) {
  ASSERT_EQ(f.shape(), (std::vector<int64_t>{rows, cols})) << what;
  ASSERT_EQ(f.threads(), 32) << what;
  std::set<std::pair<int64_t, int64_t>> held;  // lane, register
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      const std::vector<int64_t> at = {r, c};
      const int64_t reg = f.register_of(at);
      const std::vector<int64_t> holders = f.holders(at);
      ASSERT_FALSE(holders.empty()) << what << " (" << r << "," << c << ") is held by no lane";
      for (int64_t lane : holders) {
        EXPECT_TRUE(held.insert({lane, reg}).second)
            << what << ": lane " << lane << " register " << reg << " twice";
        EXPECT_EQ(formula(lane, reg), RowCol(r, c)) << what << ": lane " << lane << " register " << reg;
      }
    }
  EXPECT_EQ(static_cast<int64_t>(held.size()), 32 * f.registers()) << what << ": a lane's register is unused";
}

class MmaAtoms : public ::testing::TestWithParam<const char*> {};

TEST_P(MmaAtoms, LieAsTheFiguresSay) {
  auto t = find_target(GetParam());
  ASSERT_TRUE(t);
  ASSERT_FALSE(t->mma.empty());
  for (const MmaAtom& atom : t->mma) {
    const Figures figures = figures_of(atom);
    expect_figure(atom.a_layout, atom.m, atom.k, figures.a, atom.name + " A");
    expect_figure(atom.b_layout, atom.k, atom.n, figures.b, atom.name + " B");
    expect_figure(atom.c_layout, atom.m, atom.n, figures.c, atom.name + " C");
  }
}

TEST_P(MmaAtoms, NamesTypesAndCosts) {
  auto t = find_target(GetParam());
  ASSERT_TRUE(t);
  std::set<std::string> names;
  for (const MmaAtom& atom : t->mma) {
    EXPECT_TRUE(names.insert(atom.name).second) << atom.name;
    const bool tensor_core = atom.name.rfind("mma.", 0) == 0;
    EXPECT_TRUE(tensor_core || atom.name.starts_with("fma.") || atom.name.starts_with("dp4a.")) << atom.name;
    EXPECT_EQ(atom.tf32, atom.name.ends_with(".tf32")) << atom.name;
    if (tensor_core) {
      EXPECT_NE(atom.name.find("m" + std::to_string(atom.m) + "n" + std::to_string(atom.n) + "k" +
                               std::to_string(atom.k)),
                std::string::npos)
          << atom.name;
    }
    EXPECT_EQ(ir::is_float(atom.a), ir::is_float(atom.c)) << atom.name;
    EXPECT_EQ(ir::is_float(atom.b), ir::is_float(atom.c)) << atom.name;
    EXPECT_GE(ir::dtype_bits(atom.c), ir::dtype_bits(atom.a)) << atom.name;
    EXPECT_GT(atom.cycles, 0) << atom.name;
  }
  // For one triple of types the tensor core comes before plain multiply-adds, and what does more in a cycle
  // first.
  for (size_t i = 0; i < t->mma.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (t->mma[i].a == t->mma[k].a && t->mma[i].b == t->mma[k].b && t->mma[i].c == t->mma[k].c) {
        auto rank = [](const MmaAtom& a) { return std::string("mdf").find(a.name[0]); };  // mma, dp4a, fma
        EXPECT_LE(rank(t->mma[k]), rank(t->mma[i])) << t->mma[k].name << " before " << t->mma[i].name;
        // What only some products ask for comes first for them.
        if (t->mma[i].tf32 != t->mma[k].tf32) continue;
        auto macs_per_cycle = [](const MmaAtom& a) { return a.m * a.n * a.k / a.cycles; };
        EXPECT_GE(macs_per_cycle(t->mma[k]), macs_per_cycle(t->mma[i]));
      }
}

INSTANTIATE_TEST_SUITE_P(Nvidia, MmaAtoms, ::testing::Values("sm_80", "sm_89", "sm_90"));

TEST(NvidiaTargets, LimitsAreThoseOfTheProgrammingGuide) {
  const std::pair<const char*, int64_t> shared[] = {{"sm_80", 163}, {"sm_89", 99}, {"sm_90", 227}};
  for (auto [name, kilobytes] : shared) {
    auto t = find_target(name);
    ASSERT_TRUE(t) << name;
    EXPECT_EQ(t->name, name);
    EXPECT_EQ(t->code, CodeFormat::ptx);
    EXPECT_TRUE(t->has_block_threads());
    EXPECT_FALSE(t->addressable_registers());
    EXPECT_EQ(t->shared_bytes, kilobytes * 1024);
    EXPECT_EQ(t->warp, 32);
    EXPECT_EQ(t->max_threads, 1024);
    EXPECT_EQ(t->registers_per_thread, 255);
    EXPECT_EQ(t->vector_bytes, 16);
    EXPECT_EQ(t->default_threads % t->warp, 0);
    EXPECT_TRUE(t->async_copy());
    EXPECT_TRUE(t->micro_kernels.empty());
  }
}

}  // namespace
}  // namespace tilegen::target
