// Matrix loads and stores, the meaning of every atom, and a whole matrix product.
#include <chrono>
#include <iostream>
#include <numeric>
#include <random>

#include "gemm_program.h"
#include "sim/lanes.h"

namespace tilegen::sim::test {
namespace {

// Rows of `count` matrices at places of the arena that no formula of the test orders, 16 bytes each.
int64_t scattered_row(int matrix, int row) { return (matrix * 8 + row) * 5 % 32; }

void check_load_matrix(DType type, int count, bool transpose) {
  GpuProgram g(32);
  const int bytes = ir::dtype_bytes(type), per_row = 16 / bytes, per_lane = 4 / bytes;
  const MemoryId in = g.tensor("In", type), out = g.tensor("Out", type);
  const MemoryId tile = g.shared("Tile", type, 32 * per_row), r = g.registers("r", type, count * per_lane);
  g.loop(g.i(per_row), LoopForm::serial,
         [&](E e) { g.store(tile, g.thread() * per_row + e, g.load(in, g.thread() * per_row + e)); });
  g.barrier();
  const E row = g.lane() * 5 % 32;
  g.add(thread::LoadMatrix{r, g.i(0).id, tile, (row * per_row).id, count, transpose}, "ldmatrix");
  g.loop(g.i(count * per_lane), LoopForm::unrolled,
         [&](E e) { g.store(out, g.thread() * (count * per_lane) + e, g.load(r, e)); });
  std::vector<uint8_t> x(512), y(128 * count);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>((i * 37 + i / 50) % 120);
  EXPECT_EQ(texts(run(g, Arguments().tensor(x).tensor(y))), "");
  for (int l = 0; l < 32; ++l)
    for (int m = 0; m < count; ++m)
      for (int byte = 0; byte < 4; ++byte) {
        const int unit = byte / 2;  // of 16 bits
        const int matrix_row = transpose ? 2 * (l % 4) + unit : l / 4;
        const int in_row = transpose ? 2 * (l / 4) + byte % 2 : 4 * (l % 4) + byte;
        const uint8_t expected = x[static_cast<size_t>(scattered_row(m, matrix_row) * 16 + in_row)];
        EXPECT_EQ(y[static_cast<size_t>((l * count + m) * 4 + byte)], expected)
            << "lane " << l << " matrix " << m;
      }
}

TEST(SimMatrix, LoadsGiveEachLaneItsUnits) {
  for (int count : {1, 2, 4}) {
    check_load_matrix(DType::i8, count, false);
    check_load_matrix(DType::f16, count, false);
    check_load_matrix(DType::f16, count, true);
    check_load_matrix(DType::i32, count, false);
  }
}

TEST(SimMatrix, StoresReverseLoads) {
  for (bool transpose : {false, true}) {
    GpuProgram g(32);
    const MemoryId in = g.tensor("In", DType::f16), out = g.tensor("Out", DType::f16);
    const MemoryId from = g.shared("From", DType::f16, 256), to = g.shared("To", DType::f16, 256);
    const MemoryId r = g.registers("r", DType::f16, 8);
    g.loop(g.i(8), LoopForm::vectorized,
           [&](E e) { g.store(from, g.thread() * 8 + e, g.load(in, g.thread() * 8 + e)); });
    g.barrier();
    g.add(thread::LoadMatrix{r, g.i(0).id, from, (g.lane() * 8).id, 4, transpose}, "ldmatrix");
    g.add(thread::StoreMatrix{to, ((g.lane() ^ 3) * 8).id, r, g.i(0).id, 4, transpose}, "stmatrix");
    g.barrier();
    g.loop(g.i(8), LoopForm::vectorized,
           [&](E e) { g.store(out, g.thread() * 8 + e, g.load(to, g.thread() * 8 + e)); });
    std::vector<uint16_t> x(256), y(256);
    for (size_t i = 0; i < x.size(); ++i) x[i] = f16_bits(static_cast<double>(i));
    EXPECT_EQ(texts(run(g, Arguments().tensor(x).tensor(y))), "");
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], x[(i / 8 ^ 3) * 8 + i % 8]);
  }
}

// Operands through the fragments into one instruction, against a plain triple loop on exact values.
void check_atom(const target::Target& target, const target::MmaAtom& atom) {
  GpuProgram g(32);
  const MemoryId a = g.tensor("A", atom.a), b = g.tensor("B", atom.b), c = g.tensor("C", atom.c),
                 d = g.tensor("D", atom.c), p = g.tensor("P", DType::u32);
  const auto registers = [](const layout::Fragment& f) { return f.registers(); };
  const MemoryId ra = g.registers("ra", atom.a, registers(atom.a_layout)),
                 rb = g.registers("rb", atom.b, registers(atom.b_layout)),
                 rc = g.registers("rc", atom.c, registers(atom.c_layout));
  // Element [register * 32 + lane] of the arrays is what the lane holds.
  const auto fetch = [&](MemoryId to, MemoryId from, int64_t n) {
    g.loop(g.i(n), LoopForm::unrolled, [&](E u) { g.store(to, u, g.load(from, u * 32 + g.thread())); });
  };
  fetch(ra, a, registers(atom.a_layout)), fetch(rb, b, registers(atom.b_layout)),
      fetch(rc, c, registers(atom.c_layout));
  thread::WarpMma mma{atom.name,
                      ra,
                      rb,
                      rc,
                      g.i(0).id,
                      g.i(0).id,
                      g.i(0).id,
                      static_cast<int>(registers(atom.a_layout)),
                      static_cast<int>(registers(atom.b_layout)),
                      static_cast<int>(registers(atom.c_layout))};
  if (atom.sparse()) {
    mma.places = g.registers("rp", DType::u32, 1);
    mma.places_index = g.i(0).id;
    fetch(mma.places, p, 1);
  }
  g.add(mma, "mma");
  g.loop(g.i(registers(atom.c_layout)), LoopForm::unrolled,
         [&](E u) { g.store(d, u * 32 + g.thread(), g.load(rc, u)); });

  std::mt19937 random(5);
  const auto matrix = [&](int rows, int columns, DType t, int spread) {
    std::vector<double> v(static_cast<size_t>(rows * columns));
    const bool is_unsigned = ir::dtype_kind(t) == ir::DTypeKind::unsigned_int;
    for (double& x : v)
      x = static_cast<double>(static_cast<int>(random() % (2 * spread)) - (is_unsigned ? 0 : spread));
    return v;
  };
  const bool floating = ir::is_float(atom.c);
  const std::vector<double> ma = matrix(atom.m, atom.a_k(), atom.a, floating ? 8 : 128),
                            mb = matrix(atom.k, atom.n, atom.b, floating ? 8 : 128),
                            mc = matrix(atom.m, atom.n, atom.c, floating ? 64 : 1 << 30);
  const auto pack = [&](const layout::Fragment& f, DType t, const std::vector<double>& m) {
    std::vector<uint64_t> memory(static_cast<size_t>(f.registers()) * 32);
    auto* bytes = reinterpret_cast<std::byte*>(memory.data());
    for (int64_t i = 0; i < f.shape()[0]; ++i)
      for (int64_t j = 0; j < f.shape()[1]; ++j) {
        const int64_t at[] = {i, j};
        Cell cell;
        const double v = m[static_cast<size_t>(i * f.shape()[1] + j)];
        ir::is_float(t) ? void(cell.f = v) : void(cell.i = static_cast<int64_t>(v));
        for (int64_t lane : f.holders(at))
          encode_one(t, cell, bytes + (f.register_of(at) * 32 + lane) * ir::dtype_bytes(t));
      }
    return memory;
  };
  // Any places, of which no two of a group are equal.
  std::vector<uint32_t> words(32);
  for (uint32_t& word : words)
    for (int i = 0; i < 8; ++i) {
      const uint32_t first = random() % 4, second = (first + 1 + random() % 3) % 4;
      word |= (first | second << 2) << 4 * i;
    }
  // k of A's value `k` of the row.
  const auto k_of = [&](int row, int k) {
    if (!atom.sparse()) return k;
    const int64_t at[] = {row, k / 2};
    const uint32_t word = words[static_cast<size_t>(atom.places->holders(at)[0])];
    return k / 2 * 4 + static_cast<int>(word >> (atom.places->register_of(at) * 4 + k % 2 * 2) & 3);
  };
  std::vector<uint64_t> va = pack(atom.a_layout, atom.a, ma), vb = pack(atom.b_layout, atom.b, mb),
                        vc = pack(atom.c_layout, atom.c, mc), vd(vc.size());
  EXPECT_EQ(texts(run(g, Arguments().tensor(va).tensor(vb).tensor(vc).tensor(vd).tensor(words), {}, target)),
            "")
      << atom.name;
  std::vector<double> expected = mc;
  for (int i = 0; i < atom.m; ++i)
    for (int j = 0; j < atom.n; ++j) {
      double sum = mc[static_cast<size_t>(i * atom.n + j)];
      for (int k = 0; k < atom.a_k(); ++k)
        sum += ma[static_cast<size_t>(i * atom.a_k() + k)] * mb[static_cast<size_t>(k_of(i, k) * atom.n + j)];
      expected[static_cast<size_t>(i * atom.n + j)] =
          floating ? sum : static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(sum)));
    }
  EXPECT_EQ(vd, pack(atom.c_layout, atom.c, expected)) << atom.name;
}

TEST(SimMatrix, EveryAtomMultipliesMatrices) {
  for (const char* name : {"sm_80", "sm_89", "sm_90"}) {
    const target::Target t = *target::find_target(name);
    ASSERT_FALSE(t.mma.empty());
    for (const target::MmaAtom& atom : t.mma) check_atom(t, atom);
    ASSERT_FALSE(t.sparse_mma.empty());
    for (const target::MmaAtom& atom : t.sparse_mma) check_atom(t, atom);
  }
}

TEST(SimMatrix, IntegerSumsWrap) {
  const double a[] = {127}, b[] = {127};
  double c[] = {2147483647.0};
  target::meaning::dot_i32({1, 1, 1}, a, b, c);
  EXPECT_EQ(c[0], -2147483648.0 + 127 * 127 - 1);
}

TEST(SimMatrix, Tf32OperandsAreRoundedAndTheirSumIsNot) {
  const double a[] = {1 + 0x1p-11, 1}, b[] = {1, 1 + 0x1p-12};
  double c[] = {0x1p-12};
  target::meaning::dot_tf32({1, 1, 2}, a, b, c);
  EXPECT_EQ(c[0], 2 + 0x1p-10 + 0x1p-12);
}

TEST(SimMatrix, SumsAreRoundedToTheAccumulator) {
  const double a[] = {1, 1}, b[] = {0x1p-11, 0x1p-11};
  double half[] = {1}, single[] = {1};
  target::meaning::dot_f16({1, 1, 2}, a, b, half);  // the sum of one instruction is rounded once
  EXPECT_EQ(half[0], 1 + 0x1p-10);
  const double tiny[] = {0x1p-24, 0x1p-24};
  target::meaning::dot_f32({1, 1, 2}, a, tiny, single);  // each addition is rounded
  EXPECT_EQ(single[0], 1);
  double fused[] = {-1};
  const double x[] = {1 + 0x1p-30}, y[] = {1 - 0x1p-30};
  target::meaning::fma_f64({1, 1, 1}, x, y, fused);
  EXPECT_EQ(fused[0], -0x1p-60);
}

TEST(SimMatrix, PipelinedProductIsRightUnderEverySchedule) {
  for (int64_t stages : {2, 3, 4}) {
    GemmProgram g(5, stages);
    for_each_schedule([&](const SimOptions& options) {
      GemmData data(5 * 32);
      EXPECT_EQ(texts(run(g, data.arguments(), options)), "");
      EXPECT_EQ(data.c, data.expected);
    });
  }
}

// 5 ms is what keeps whole programs checkable; the bound here leaves room for slow and loaded machines.
TEST(SimMatrix, OneStepOfABlockIsQuick) {
  const auto time = [](int64_t steps) {
    GemmProgram g(steps);
    GemmData data(steps * 32);
    SimOptions options;
    options.workers = 1;
    double best = 1e30;
    for (int i = 0; i < 3; ++i) {
      const auto start = std::chrono::steady_clock::now();
      run(g, data.arguments(), options);
      best = std::min(
          best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  };
  const double step = (time(40) - time(8)) / 32;
  std::cout << "128x128x32 f16 block step: " << step << " ms\n";
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(step, 20);
#endif
}

}  // namespace
}  // namespace tilegen::sim::test
