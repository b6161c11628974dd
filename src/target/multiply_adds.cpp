#include "target/multiply_adds.h"

#include "target/lane_layout.h"

namespace tilegen::target {

using ir::DType;
using layout::kRegister;
using layout::kReplica;
using layout::kThread;

namespace {

struct Types {
  const char* name;
  DType a, b, c;
  MmaSemantics meaning;
};

constexpr int kRegisterBytes = 4;
constexpr int kTile = 4;  // elements of C along m and n that a lane of the wide form has

// Rows of a table read better as rows. In all of them lane = columns * row + column.
// clang-format off
MmaAtom wide(const Types& t, const LaneGrid& g) {
  const int m = g.rows * kTile, n = g.columns * kTile;
  return {std::string(t.name) + ":4x4", m, n, 1, t.a, t.b, t.c,
          over_lanes(g.lanes(), {m, 1}, {{0, kTile, kRegister, 1}, {0, g.rows, kThread, g.columns},
                                         {kReplica, g.columns, kThread, 1}}),
          over_lanes(g.lanes(), {1, n}, {{1, kTile, kRegister, 1}, {1, g.columns, kThread, 1},
                                         {kReplica, g.rows, kThread, g.columns}}),
          over_lanes(g.lanes(), {m, n}, {{0, kTile, kRegister, kTile}, {0, g.rows, kThread, g.columns},
                                         {1, kTile, kRegister, 1}, {1, g.columns, kThread, 1}}),
          kTile * kTile * g.cycles, t.meaning, MmaUnit::multiply_add, {}};
}

MmaAtom single(const Types& t, const LaneGrid& g) {
  return {std::string(t.name) + ":1x1", g.rows, g.columns, 1, t.a, t.b, t.c,
          over_lanes(g.lanes(), {g.rows, 1}, {{0, g.rows, kThread, g.columns},
                                              {kReplica, g.columns, kThread, 1}}),
          over_lanes(g.lanes(), {1, g.columns}, {{1, g.columns, kThread, 1},
                                                 {kReplica, g.rows, kThread, g.columns}}),
          over_lanes(g.lanes(), {g.rows, g.columns}, {{0, g.rows, kThread, g.columns},
                                                      {1, g.columns, kThread, 1}}),
          g.cycles, t.meaning, MmaUnit::multiply_add, {}};
}

// The arrangement of the multiply-adds, where each element of A and B is a register of `k` of them.
MmaAtom wide_dot(const DotProduct& p, const LaneGrid& g) {
  const int m = g.rows * kTile, n = g.columns * kTile, k = kRegisterBytes / ir::dtype_bytes(p.a);
  return {p.name + ":4x4", m, n, k, p.a, p.b, p.c,
          over_lanes(g.lanes(), {m, k}, {{0, kTile, kRegister, k}, {0, g.rows, kThread, g.columns},
                                         {1, k, kRegister, 1}, {kReplica, g.columns, kThread, 1}}),
          over_lanes(g.lanes(), {k, n}, {{0, k, kRegister, 1}, {1, kTile, kRegister, k},
                                         {1, g.columns, kThread, 1}, {kReplica, g.rows, kThread, g.columns}}),
          over_lanes(g.lanes(), {m, n}, {{0, kTile, kRegister, kTile}, {0, g.rows, kThread, g.columns},
                                         {1, kTile, kRegister, 1}, {1, g.columns, kThread, 1}}),
          kTile * kTile * g.cycles, p.meaning, MmaUnit::dot, p.instruction};
}

MmaAtom single_dot(const DotProduct& p, const LaneGrid& g) {
  const int k = kRegisterBytes / ir::dtype_bytes(p.a);
  return {p.name + ":1x1", g.rows, g.columns, k, p.a, p.b, p.c,
          over_lanes(g.lanes(), {g.rows, k}, {{0, g.rows, kThread, g.columns}, {1, k, kRegister, 1},
                                              {kReplica, g.columns, kThread, 1}}),
          over_lanes(g.lanes(), {k, g.columns}, {{0, k, kRegister, 1}, {1, g.columns, kThread, 1},
                                                 {kReplica, g.rows, kThread, g.columns}}),
          over_lanes(g.lanes(), {g.rows, g.columns}, {{0, g.rows, kThread, g.columns},
                                                      {1, g.columns, kThread, 1}}),
          g.cycles, p.meaning, MmaUnit::dot, p.instruction};
}
// clang-format on

}  // namespace

std::vector<MmaAtom> multiply_add_atoms(const LaneGrid& grid) {
  const Types plain[] = {
      {"fma.f32", DType::f32, DType::f32, DType::f32, meaning::fma_f32},
      {"fma.f32.f16", DType::f16, DType::f16, DType::f32, meaning::fma_f32},
      {"fma.f32.bf16", DType::bf16, DType::bf16, DType::f32, meaning::fma_f32},
      {"fma.f32.e4m3.e4m3", DType::e4m3, DType::e4m3, DType::f32, meaning::fma_f32},
      {"fma.f32.e4m3.e5m2", DType::e4m3, DType::e5m2, DType::f32, meaning::fma_f32},
      {"fma.f32.e5m2.e4m3", DType::e5m2, DType::e4m3, DType::f32, meaning::fma_f32},
      {"fma.f32.e5m2.e5m2", DType::e5m2, DType::e5m2, DType::f32, meaning::fma_f32},
      {"fma.f32.e4m3fnuz.e4m3fnuz", DType::e4m3fnuz, DType::e4m3fnuz, DType::f32, meaning::fma_f32},
      {"fma.f32.e4m3fnuz.e5m2fnuz", DType::e4m3fnuz, DType::e5m2fnuz, DType::f32, meaning::fma_f32},
      {"fma.f32.e5m2fnuz.e4m3fnuz", DType::e5m2fnuz, DType::e4m3fnuz, DType::f32, meaning::fma_f32},
      {"fma.f32.e5m2fnuz.e5m2fnuz", DType::e5m2fnuz, DType::e5m2fnuz, DType::f32, meaning::fma_f32},
      {"fma.f64", DType::f64, DType::f64, DType::f64, meaning::fma_f64},
      {"fma.s32.s8.s8", DType::i8, DType::i8, DType::i32, meaning::dot_i32},
      {"fma.s32.u8.u8", DType::u8, DType::u8, DType::i32, meaning::dot_i32},
      {"fma.s32.s8.u8", DType::i8, DType::u8, DType::i32, meaning::dot_i32},
      {"fma.s32.u8.s8", DType::u8, DType::i8, DType::i32, meaning::dot_i32},
  };
  std::vector<MmaAtom> atoms;
  for (const Types& t : plain) {
    atoms.push_back(wide(t, grid));
    atoms.push_back(single(t, grid));
  }
  return atoms;
}

std::vector<MmaAtom> dot_atoms(const LaneGrid& grid, std::span<const DotProduct> products) {
  std::vector<MmaAtom> atoms;
  for (const DotProduct& p : products) {
    atoms.push_back(wide_dot(p, grid));
    atoms.push_back(single_dot(p, grid));
  }
  return atoms;
}

bool is_loop_over_k(const MmaAtom& atom, int64_t tiles_m, int64_t tiles_n, int64_t steps) {
  constexpr int64_t kConversion = 8, kMost = 4096, kMostWithConversions = 1024;
  const auto conversions = [&](ir::DType type, int64_t elements) {
    return ir::is_float(type) && ir::dtype_bits(type) == 8 ? elements * kConversion : 0;
  };
  const int64_t products = tiles_m * tiles_n * atom.c_layout.registers(),
                converted = conversions(atom.a, tiles_m * atom.a_layout.registers()) +
                            conversions(atom.b, tiles_n * atom.b_layout.registers());
  return (products + converted) * steps > (converted > 0 ? kMostWithConversions : kMost);
}

}  // namespace tilegen::target
