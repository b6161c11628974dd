// Matrix loads and stores of a warp alone in a kernel, in every size and direction and for every width of
// elements, against the figures of the PTX ISA: on the simulator, and on the first CUDA device.
#include <gtest/gtest.h>

#include <cstring>

#include "one_instruction.h"

namespace tilegen::gpu {
namespace {

using differential::Data;
using ir::DType;
using ir::ExprId;

// bytes: of a matrix row, of a unit that moves, of a lane's part of a matrix
constexpr int64_t kRow = 16, kUnit = 2, kLane = 4;

// Any bits; no NaN, whose bits are not told.
std::vector<std::byte> bits(DType type, int64_t count, uint64_t seed) {
  std::vector<std::byte> out = elements(type, count, Data::bit_patterns, 0, seed);
  const int64_t bytes = ir::dtype_bytes(type);
  if (ir::is_float(type))
    for (int64_t i = bytes - 1; i < static_cast<int64_t>(out.size()); i += bytes)
      out[static_cast<size_t>(i)] &= std::byte{0xbb};
  return out;
}

struct Move {
  DType shared, registers;
  int matrices;
  bool transpose;
  int64_t element() const { return ir::dtype_bytes(shared); }
  int64_t lane_elements() const { return kLane * matrices / element(); }
  std::string name() const {
    return std::string(ir::dtype_name(shared)) + " and " + ir::dtype_name(registers) + " x" +
           std::to_string(matrices) + (transpose ? " transposed" : "");
  }
};

// Rows of the matrices lie in another order than lanes name them in: lane l names row 5 l modulo 32.
ExprId row_of_lane(WarpProgram& p) { return p.exprs().floormod(p.exprs().mul(p.lane(), 5), p.at(32)); }
int64_t row_of(int64_t lane) { return lane * 5 % 32; }

// Byte of the tile where byte `byte` of lane `lane`'s part of matrix `matrix` lies.
int64_t place(const Move& m, int64_t lane, int64_t matrix, int64_t byte) {
  const int64_t half = byte / kUnit, within = byte % kUnit;
  const int64_t row = m.transpose ? 2 * (lane % 4) + half : lane / 4;
  const int64_t unit = m.transpose ? lane / 4 : 2 * (lane % 4) + half;
  return row_of(8 * matrix + row) * kRow + unit * kUnit + within;
}

void check_load(const target::Target& target, const Move& m) {
  SCOPED_TRACE(m.name());
  const int64_t per_row = kRow / m.element(), tile = 32 * per_row, count = m.lane_elements();
  WarpProgram p("loads");
  const auto in = p.tensor("A", m.shared, tile), out = p.tensor("B", m.registers, 32 * count);
  const auto memory = p.shared("tile", m.shared, tile);
  const auto staged = p.registers("staged", m.shared, per_row), got = p.registers("got", m.registers, count);
  p.load(staged, in, per_row);
  ir::ExprPool& e = p.exprs();
  for (int64_t r = 0; r < per_row; ++r)
    p.add(thread::Store{memory, e.add(e.mul(p.lane(), per_row), r),
                        e.load(staged, m.shared, std::vector<ExprId>{p.at(r)}), ExprId(), false, ExprId()});
  p.add(thread::Barrier{});
  p.add(thread::LoadMatrix{got, p.at(0), memory, e.mul(row_of_lane(p), per_row), m.matrices, m.transpose});
  p.store(out, got, count);
  Tensors start = {bits(m.shared, tile, 7), elements(m.registers, 32 * count, Data::integers, 1, 8)},
          expected = start;
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < m.matrices; ++i)
      for (int64_t byte = 0; byte < kLane; ++byte)
        expected[1][static_cast<size_t>((lane * m.matrices + i) * kLane + byte)] =
            start[0][static_cast<size_t>(place(m, lane, i, byte))];
  expect_bytes(p, target, start, expected);
}

void check_store(const target::Target& target, const Move& m) {
  SCOPED_TRACE(m.name());
  const int64_t per_row = kRow / m.element(), tile = 32 * per_row, count = m.lane_elements();
  WarpProgram p("stores");
  const auto in = p.tensor("A", m.registers, 32 * count), out = p.tensor("B", m.shared, tile);
  const auto memory = p.shared("tile", m.shared, tile);
  const auto held = p.registers("held", m.registers, count), row = p.registers("row", m.shared, per_row);
  ir::ExprPool& e = p.exprs();
  const ExprId first = e.mul(p.lane(), per_row);
  // What no lane writes stays.
  for (int64_t r = 0; r < per_row; ++r)
    p.add(thread::Store{memory, e.add(first, r), e.const_number(1, m.shared), ExprId(), false, ExprId()});
  p.add(thread::Barrier{});
  p.load(held, in, count);
  p.add(thread::StoreMatrix{memory, e.mul(row_of_lane(p), per_row), held, p.at(0), m.matrices, m.transpose});
  p.add(thread::Barrier{});
  for (int64_t r = 0; r < per_row; ++r)
    p.add(thread::Store{row, p.at(r), e.load(memory, m.shared, std::vector<ExprId>{e.add(first, r)}),
                        ExprId(), false, ExprId()});
  p.store(out, row, per_row);
  Tensors start = {bits(m.registers, 32 * count, 3), elements(m.shared, tile, Data::integers, 1, 4)},
          expected = start;
  const uint64_t one = ir::is_float(m.shared) ? ir::float_to_bits(m.shared, 1) : 1;
  for (int64_t i = 0; i < tile; ++i)
    std::memcpy(&expected[1][static_cast<size_t>(i * m.element())], &one, static_cast<size_t>(m.element()));
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < m.matrices; ++i)
      for (int64_t byte = 0; byte < kLane; ++byte)
        expected[1][static_cast<size_t>(place(m, lane, i, byte))] =
            start[0][static_cast<size_t>((lane * m.matrices + i) * kLane + byte)];
  expect_bytes(p, target, start, expected);
}

template <class Check>
void check_all(std::initializer_list<std::pair<DType, DType>> types, Check&& check) {
  for (const auto& [shared, registers] : types)
    for (int matrices : {1, 2, 4})
      for (bool transpose : {false, true}) check(Move{shared, registers, matrices, transpose});
}

TEST(Instructions, MatrixLoads) {
  const target::Target target = instruction_target();
  check_all({{DType::f16, DType::f16}, {DType::bf16, DType::bf16}},
            [&](const Move& m) { check_load(target, m); });
  for (int matrices : {1, 2, 4}) check_load(target, {DType::f32, DType::f32, matrices, false});
}

// Two bytes move as one; as another type of bytes they are what they are.
TEST(Instructions, MatrixLoadsOfBytes) {
  const target::Target target = instruction_target();
  check_all({{DType::i8, DType::i8},
             {DType::u8, DType::u8},
             {DType::e4m3, DType::e4m3},
             {DType::e5m2, DType::e5m2},
             {DType::u8, DType::i8},
             {DType::e4m3, DType::u8},
             {DType::e5m2, DType::i8}},
            [&](const Move& m) { check_load(target, m); });
}

TEST(Instructions, MatrixStores) {
  const target::Target target = instruction_target();
  if (!target.store_matrix) GTEST_SKIP() << target.name << " has no matrix stores";
  check_all({{DType::f16, DType::f16}, {DType::bf16, DType::bf16}},
            [&](const Move& m) { check_store(target, m); });
}

TEST(Instructions, MatrixStoresOfBytes) {
  const target::Target target = instruction_target();
  if (!target.store_matrix) GTEST_SKIP() << target.name << " has no matrix stores";
  check_all({{DType::i8, DType::i8},
             {DType::u8, DType::u8},
             {DType::e4m3, DType::e4m3},
             {DType::e5m2, DType::e5m2},
             {DType::i8, DType::u8},
             {DType::u8, DType::e4m3},
             {DType::i8, DType::e5m2}},
            [&](const Move& m) { check_store(target, m); });
}

}  // namespace
}  // namespace tilegen::gpu
