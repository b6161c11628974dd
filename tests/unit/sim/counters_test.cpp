// Counters of accesses: bank conflicts as the bank model has them, sectors of global memory, instructions.
#include <algorithm>
#include <numeric>
#include <random>

#include "gemm_program.h"
#include "layout/bank_model.h"
#include "sim/access_costs.h"

namespace tilegen::sim::test {
namespace {

const AccessCount& access(const SimResult& r, const std::string& memory, const std::string& action) {
  for (const AccessCount& a : r.counters.accesses)
    if (a.memory == memory && a.action == action) return a;
  ADD_FAILURE() << "no " << action << " of " << memory;
  static const AccessCount none;
  return none;
}

TEST(SimCosts, SharedCostsAreThoseOfTheBankModel) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const int bytes = 1 << random() % 5;
    std::vector<int64_t> addresses(32);
    const int64_t stride = static_cast<int64_t>(random() % 66) * bytes, pattern = random() % 3;
    for (int l = 0; l < 32; ++l)
      addresses[static_cast<size_t>(l)] = pattern == 0   ? l * stride
                                          : pattern == 1 ? static_cast<int64_t>(random() % 512) * bytes
                                                         : (l / 4 ^ l % 4) * stride + l % 2 * bytes;
    const AccessCost cost = shared_cost(addresses.data(), 0xffffffffu, bytes);
    ASSERT_EQ(cost.taken, layout::wavefronts(addresses, bytes, sm80().banks)) << bytes;
    ASSERT_EQ(cost.taken - cost.least, layout::bank_conflicts(addresses, bytes, sm80().banks)) << bytes;
  }
}

TEST(SimCosts, SectorsOfGlobalMemory) {
  std::vector<int64_t> a(32);
  const auto cost = [&](int64_t start, int64_t stride, int bytes, uint32_t lanes = 0xffffffffu) {
    for (int l = 0; l < 32; ++l) a[static_cast<size_t>(l)] = start + l * stride;
    return global_cost(a.data(), lanes, bytes);
  };
  EXPECT_EQ(cost(0, 4, 4).taken, 4);
  EXPECT_EQ(cost(0, 4, 4).least, 4);
  EXPECT_EQ(cost(4, 4, 4).taken, 5);
  EXPECT_EQ(cost(0, 32, 4).taken, 32);
  EXPECT_EQ(cost(0, 32, 4).least, 4);
  EXPECT_EQ(cost(0, 0, 4).taken, 1);
  EXPECT_EQ(cost(0, 16, 16).taken, 16);
  EXPECT_EQ(cost(0, 16, 16).least, 16);
  EXPECT_EQ(cost(0, 4, 4, 0xff).taken, 1);
}

// Columns of a row-major tile: every lane in one bank; a padded row has none of that.
TEST(SimCounters, ConflictsOfAColumn) {
  for (const int64_t pitch : {32, 33}) {
    GpuProgram g(32);
    const MemoryId out = g.tensor("Out", DType::f32), tile = g.shared("Tile", DType::f32, 32 * pitch);
    g.loop(g.i(32), LoopForm::serial,
           [&](E i) { g.store(tile, i * pitch + g.thread(), g.num(1, DType::f32)); });
    g.barrier();
    g.store(out, g.thread(), g.load(tile, g.thread() * pitch + 3));
    std::vector<float> v(32);
    const SimResult r = run(g, Arguments().tensor(v));
    EXPECT_EQ(access(r, "Tile", "load").transactions, pitch == 32 ? 32 : 1);
    EXPECT_EQ(access(r, "Tile", "load").least, 1);
    EXPECT_EQ(access(r, "Tile", "store").requests, 32);
    EXPECT_EQ(access(r, "Tile", "store").transactions, access(r, "Tile", "store").least);
    EXPECT_EQ(access(r, "Out", "store").transactions, 4);
    EXPECT_EQ(access(r, "Out", "store").bytes, 128);
    EXPECT_EQ(r.counters.barriers, 1);
  }
}

// Without the swizzle the rows of a matrix fall on each other.
TEST(SimCounters, MatrixLoadsOfASwizzledTileHaveNoConflicts) {
  const GemmProgram g(4);
  GemmData data(4 * 32);
  const SimResult r = run(g, data.arguments());
  for (const char* memory : {"As", "Bs"}) {
    EXPECT_EQ(access(r, memory, "matrix load").transactions, access(r, memory, "matrix load").least)
        << memory;
    EXPECT_EQ(access(r, memory, "async copy").transactions, access(r, memory, "async copy").least) << memory;
    EXPECT_EQ(access(r, memory, "matrix load").requests, 4 * 4 * 8) << memory;
  }
  EXPECT_EQ(r.counters.matrix_instructions, 4 * 256);
  EXPECT_EQ(r.counters.async_bytes, 4 * 2 * 128 * 32 * 2);
  EXPECT_EQ(r.counters.barriers, 4 * 4);
}

TEST(SimCounters, WideAccessesAreCountedByParts) {
  GpuProgram g(32);
  const MemoryId in = g.tensor("In", DType::f64), out = g.tensor("Out", DType::f64);
  g.loop(g.i(4), LoopForm::vectorized,
         [&](E v) { g.store(out, g.thread() * 4 + v, g.load(in, g.thread() * 4 + v)); });
  alignas(16) static double x[128], y[128];
  Arguments a;
  for (double* t : {x, y}) a.slots.push_back(std::bit_cast<uint64_t>(t)), a.extents.push_back({0, sizeof x});
  const SimResult r = run(g, a);
  EXPECT_EQ(texts(r), "");
  EXPECT_EQ(access(r, "In", "load").requests, 2);
  EXPECT_EQ(access(r, "In", "load").bytes, 1024);
  EXPECT_EQ(access(r, "In", "load").least, 32);
}

// Loads come in their order: to wait for one is to wait for those before it. A register that is written by
// something else waits for its load; what is the same for all lanes is not counted.
TEST(SimCounters, LoadsAheadOfProducts) {
  const target::Target gfx942 = *target::find_target("gfx942");
  const auto atom = std::find_if(gfx942.mma.begin(), gfx942.mma.end(),
                                 [](const target::MmaAtom& a) { return a.name == "mfma.32x32x2.f32"; });
  ASSERT_NE(atom, gfx942.mma.end());
  GpuProgram g(64);
  g.p.machine = gfx942;
  const MemoryId first = g.tensor("First", DType::f32), second = g.tensor("Second", DType::f32),
                 third = g.tensor("Third", DType::f32), same = g.tensor("Same", DType::f32),
                 out = g.tensor("Out", DType::f32), operand = g.registers("operand", DType::f32, 1),
                 sum = g.registers("sum", DType::f32, 16), held = g.registers("held", DType::f32, 3);
  g.store(operand, g.i(0), g.num(1, DType::f32));
  g.loop(g.i(16), LoopForm::unrolled, [&](E i) { g.store(sum, i, g.num(0, DType::f32)); });
  const auto product = [&] {
    g.add(thread::WarpMma{atom->name, operand, operand, sum, g.i(0).id, g.i(0).id, g.i(0).id, 1, 1, 16},
          "product");
  };
  g.store(held, g.i(0), g.load(first, g.thread()));
  product();
  g.store(held, g.i(1), g.load(second, g.thread()));
  product();
  g.store(held, g.i(2), g.load(third, g.thread()));
  product();
  g.store(out, g.thread(), g.load(held, g.i(1)));  // the first, too
  g.store(out, g.thread(), g.load(held, g.i(0)));
  product();
  g.store(held, g.i(2), g.load(same, g.i(5)));
  g.store(out, g.thread(), g.load(first, g.thread() + 1) + g.load(held, g.i(2)), "at once");
  std::vector<float> v(65), w(65);
  const SimResult r = run(g, Arguments().tensor(v).tensor(v).tensor(v).tensor(v).tensor(w), {}, gfx942);
  EXPECT_EQ(texts(r), "");
  EXPECT_EQ(access(r, "First", "load").ahead, 3);
  EXPECT_EQ(access(r, "Second", "load").ahead, 2);
  EXPECT_EQ(access(r, "Third", "load").ahead, 2);
  EXPECT_EQ(access(r, "Same", "load").ahead, -1);
  EXPECT_EQ(access(r, "Out", "store").ahead, -1);
  EXPECT_EQ(r.counters.most_loads, 3);
  EXPECT_EQ(r.counters.load_waits, 3);
  int64_t at_once = -1;
  for (const AccessCount& a : r.counters.accesses)
    if (a.op == "at once" && a.memory == "First") at_once = a.ahead;
  EXPECT_EQ(at_once, 0);
}

TEST(SimCounters, AreTheSameWhateverTheSchedule) {
  const GemmProgram g(3);
  std::vector<int64_t> first;
  for_each_schedule([&](const SimOptions& options) {
    GemmData data(3 * 32);
    const SimResult r = run(g, data.arguments(), options);
    std::vector<int64_t> all = {r.counters.statements, r.counters.shared_bytes, r.counters.global_bytes};
    for (const AccessCount& a : r.counters.accesses)
      all.insert(all.end(), {a.requests, a.transactions, a.least, a.bytes});
    if (first.empty()) first = all;
    EXPECT_EQ(all, first);
  });
}

}  // namespace
}  // namespace tilegen::sim::test
