// Transaction barriers, barriers of some of a block's threads, roles with registers of their own, and
// matrices stored by warps, each alone.
#include <cstring>

#include "engine_program.h"

namespace tilegen::gpu {
namespace {

constexpr int64_t kWarp = 32;

// ---- phases and arrivals

// Warps 1 .. 3 write, warp 0 reads, round after round; `arrivals` of the writers tell that it is there.
void pass_numbers(int64_t arrivals) {
  SCOPED_TRACE(std::to_string(arrivals) + " arrivals");
  constexpr int64_t kRounds = 7, kWriters = 96;
  EngineProgram g(kWriters + kWarp);
  const MemoryId in = g.tensor("In", DType::i32, kRounds * kWriters),
                 out = g.tensor("Out", DType::i32, kRounds * kWriters);
  const MemoryId tile = g.tile("tile", DType::i32, kWriters);
  const int unused = g.barriers("unused", 3, 5), full = g.barriers("full", 2, arrivals),
            empty = g.barriers("empty", 1, kWarp);
  ASSERT_EQ(unused, 0);
  const E writer = g.thread() - kWarp;
  g.loop(g.i(kRounds), LoopForm::serial, [&](E r) {
    g.branch(
        g.thread() < kWarp,
        [&] {
          g.wait_for(full, g.i(1), r % 2);
          g.wait_for(full, g.i(1), r % 2);  // a phase that is over stays so until the next one is
          for (int64_t w = 0; w < kWriters; w += kWarp)
            g.store(out, r * kWriters + g.thread() + w, g.load(tile, g.thread() + w));
          g.arrive(empty, g.i(0), 0);
        },
        [&] {
          g.wait_for(empty, g.i(0), (r + 1) % 2);  // a fresh barrier lets parity 1 pass
          g.store(tile, writer, g.load(in, r * kWriters + writer));
          if (arrivals == kWriters) return g.arrive(full, g.i(1), 0);
          g.barrier(1, kWriters);
          g.branch(writer % (kWriters / arrivals) == 0, [&] { g.arrive(full, g.i(1), 0); });
        });
  });
  Tensors start = {random_elements(DType::i32, kRounds * kWriters, 3),
                   same_bytes(kRounds * kWriters * 4, std::byte{0x11})};
  EngineRun(g).expect_exactly(start, {start[0], start[0]});
}

TEST(Transactions, PhasesOfOneAndMoreArrivals) {
  for (int64_t arrivals : {1, 3, 32, 96}) pass_numbers(arrivals);
}

// Warp 1 writes, warp 0 reads what it has asked for ahead, now before and now after the arrival; what it was
// told is a result, where there is no doubt.
TEST(Transactions, PhasesAskedAhead) {
  constexpr int64_t kRounds = 8;
  EngineProgram g(2 * kWarp);
  const MemoryId in = g.tensor("In", DType::i32, kRounds * kWarp),
                 out = g.tensor("Out", DType::i32, kRounds * kWarp),
                 told = g.tensor("Told", DType::i32, 2 * kRounds);
  const MemoryId tile = g.tile("tile", DType::i32, kWarp), answer = g.registers("answer", DType::i32, 1);
  const int full = g.barriers("full", 1, kWarp), empty = g.barriers("empty", 1, kWarp);
  g.loop(g.i(kRounds), LoopForm::serial, [&](E r) {
    g.branch(
        g.thread() < kWarp,
        [&] {
          // Nobody writes before the first barrier, all have arrived after the second.
          g.test(full, g.i(0), r % 2, answer);
          g.branch(g.thread() == 0, [&] { g.store(told, r * 2, g.load(answer, g.i(0))); });
          g.barrier(1, 2 * kWarp);
          g.branch(r % 4 < 2, [&] { g.test(full, g.i(0), r % 2, answer); });
          g.barrier(2, 2 * kWarp);
          g.branch(r % 4 == 3, [&] { g.test(full, g.i(0), r % 2, answer); });
          g.wait_unless(answer, full, g.i(0), r % 2);
          g.store(out, r * kWarp + g.thread(), g.load(tile, g.thread()));
          g.test(full, g.i(0), r % 2, answer);
          g.branch(g.thread() == 0, [&] { g.store(told, r * 2 + 1, g.load(answer, g.i(0))); });
          g.arrive(empty, g.i(0), 0);
        },
        [&] {
          g.wait_for(empty, g.i(0), (r + 1) % 2);
          g.barrier(1, 2 * kWarp);
          g.store(tile, g.thread() - kWarp, g.load(in, r * kWarp + g.thread() - kWarp));
          g.arrive(full, g.i(0), 0);
          g.barrier(2, 2 * kWarp);
        });
  });
  Tensors start = {random_elements(DType::i32, kRounds * kWarp, 3),
                   same_bytes(kRounds * kWarp * 4, std::byte{0x11}),
                   same_bytes(kRounds * 2 * 4, std::byte{0x11})};
  Tensors expected = {start[0], start[0], same_bytes(kRounds * 2 * 4, std::byte{0})};
  for (size_t r = 0; r < kRounds; ++r) expected[2][8 * r + 4] = std::byte{1};
  EngineRun(g).expect_exactly(start, expected);
}

// ---- bytes that are announced, and land

enum class Announced { at_once, one_by_one, behind_others, by_threads, late };

constexpr int64_t kRow = 64, kBoxes = 3;

// Boxes of 8, 4 and 2 rows of one tensor to one barrier, three rounds.
struct Landing : EngineProgram {
  static constexpr int64_t kRows[kBoxes] = {8, 4, 2}, kAll = 14, kRounds = 3;
  static constexpr int64_t bytes(int64_t rows) { return rows * kRow * 2; }

  explicit Landing(Announced how) : EngineProgram(64) {
    const MemoryId in = tensor("In", DType::f16, kRounds * kAll * kRow),
                   out = tensor("Out", DType::f16, kRounds * kAll * kRow);
    tile_ = tile("tile", DType::f16, kAll * kRow), other_ = tile("other", DType::f16, kRow);
    for (int64_t rows : kRows) map(in, {kRow, kRounds * kAll}, {kRow * 2}, {kRow, rows}, 0);
    map(in, {kRow, kRounds * kAll}, {kRow * 2}, {kRow, 1}, 0);
    const int64_t arrivals = how == Announced::at_once || how == Announced::late ? 1
                             : how == Announced::by_threads                      ? 4
                                                                                 : kBoxes;
    full_ = barriers("full", 1, arrivals), side_ = barriers("side", 1, 1);
    loop(i(kRounds), LoopForm::serial, [&](E r) {
      if (how == Announced::by_threads) {
        // Two lanes announce a box each, one the third, one nothing.
        branch(thread() < 1, [&] { arrive(full_, i(0), bytes(kRows[0])); });
        branch((thread() == 1), [&] { arrive(full_, i(0), bytes(kRows[1])); });
        branch((thread() == 2), [&] { arrive(full_, i(0), bytes(kRows[2])); });
        branch((thread() == 3), [&] { arrive(full_, i(0), 0); });
      }
      first_thread([&] { bring(how, r); });
      wait_for(full_, i(0), r % 2);
      spread(kAll * kRow,
             [&](E j, E inside) { store_if(out, r * (kAll * kRow) + j, load_if(tile_, j, inside), inside); });
      proxy_fence();
      barrier();
    });
  }

 private:
  void box(E r, int64_t n) {
    int64_t first = 0;
    for (int64_t b = 0; b < n; ++b) first += kRows[b];
    add(
        thread::TensorLoad{
            static_cast<int>(n), {i(0).id, (r * kAll + first).id}, tile_, i(first * kRow).id, full_, i(0).id},
        "load");
  }
  void bring(Announced how, E r) {
    if (how == Announced::at_once) arrive(full_, i(0), bytes(kAll));
    for (int64_t n = 0; n < kBoxes; ++n) {
      if (how == Announced::one_by_one || how == Announced::behind_others)
        arrive(full_, i(0), bytes(kRows[n]));
      box(r, n);
      // Time for the box to land, while the phase lacks arrivals.
      if (how == Announced::behind_others || (how == Announced::late && n == 0)) pause(r, n);
    }
    if (how == Announced::late) arrive(full_, i(0), bytes(kAll));
  }
  // Another box there, on a barrier of its own.
  void pause(E r, int64_t n) {
    const bool each = p.barriers[static_cast<size_t>(full_)].arrivals == kBoxes;
    arrive(side_, i(0), bytes(1));
    add(thread::TensorLoad{kBoxes, {i(0).id, i(0).id}, other_, i(0).id, side_, i(0).id}, "load");
    wait_for(side_, i(0), each ? (r * kBoxes + n) % 2 : r % 2);
  }
  MemoryId tile_, other_;
  int full_ = 0, side_ = 0;
};

TEST(Transactions, BytesAnnouncedBeforeTheyLand) {
  for (Announced how :
       {Announced::at_once, Announced::one_by_one, Announced::behind_others, Announced::by_threads}) {
    SCOPED_TRACE(static_cast<int>(how));
    const Landing g(how);
    Tensors start = {random_elements(DType::f16, Landing::kRounds * Landing::kAll * kRow, 3), {}};
    start[1] = same_bytes(static_cast<int64_t>(start[0].size()), std::byte{0x11});
    EngineRun(g).expect_exactly(start, {start[0], start[0]});
  }
}

// The hardware counts below zero until the announcement comes; lowering never asks for it, and the simulator
// says so.
TEST(Transactions, BytesAnnouncedBehindTheirCopy) {
  const Landing g(Announced::late);
  Tensors start = {random_elements(DType::f16, Landing::kRounds * Landing::kAll * kRow, 3), {}};
  start[1] = same_bytes(static_cast<int64_t>(start[0].size()), std::byte{0x11});
  EngineRun(g).expect_finding(start, sim::FindingKind::transaction_bytes, {start[0], start[0]});
}

// ---- barriers of a warpgroup

// Each warpgroup turns its own tile round, at its own pace: the second has twice the rounds.
TEST(Transactions, BarriersOfAWarpgroup) {
  constexpr int64_t kGroup = 128, kRounds = 5;
  EngineProgram g(2 * kGroup);
  const MemoryId in = g.tensor("In", DType::i32, 2 * kGroup), out = g.tensor("Out", DType::i32, 2 * kGroup);
  const MemoryId tile = g.tile("tile", DType::i32, 2 * kGroup), own = g.registers("own", DType::i32, 1);
  const E zero = g.i(0);
  g.store(own, zero, g.load(in, g.thread()));
  const auto turn = [&](int64_t group) {
    const int id = static_cast<int>(1 + group);
    const E here = g.thread() - group * kGroup, base = g.i(group * kGroup);
    g.loop(g.i(kRounds * (group + 1)), LoopForm::serial, [&](E) {
      g.store(tile, base + here, g.load(own, zero));
      g.barrier(id, kGroup);
      g.store(own, zero, g.load(tile, base + (here + 37) % kGroup) * 3);
      g.barrier(id, kGroup);
    });
  };
  g.branch(
      g.thread() < kGroup, [&] { turn(0); }, [&] { turn(1); });
  g.store(out, g.thread(), g.load(own, zero));
  Tensors start = {random_elements(DType::i32, 2 * kGroup, 9), same_bytes(2 * kGroup * 4, std::byte{0x11})};
  Tensors expected = start;
  for (int64_t t = 0; t < 2 * kGroup; ++t) {
    const int64_t rounds = kRounds * (t / kGroup + 1),
                  from = t / kGroup * kGroup + (t % kGroup + 37 * rounds) % kGroup;
    uint32_t v = 0;
    std::memcpy(&v, &start[0][static_cast<size_t>(from * 4)], 4);
    for (int64_t r = 0; r < rounds; ++r) v *= 3;
    std::memcpy(&expected[1][static_cast<size_t>(t * 4)], &v, 4);
  }
  EngineRun(g).expect_exactly(start, expected);
}

// One warp writes and goes on (bar.arrive), another waits (bar.sync), and back.
TEST(Transactions, WarpsThatArriveAndDoNotWait) {
  constexpr int64_t kRounds = 6;
  EngineProgram g(2 * kWarp);
  const MemoryId in = g.tensor("In", DType::i32, kRounds * kWarp),
                 out = g.tensor("Out", DType::i32, kRounds * kWarp);
  const MemoryId tile = g.tile("tile", DType::i32, kWarp);
  g.loop(g.i(kRounds), LoopForm::serial, [&](E r) {
    g.branch(
        g.thread() < kWarp,
        [&] {
          g.store(tile, g.thread(), g.load(in, r * kWarp + g.thread()));
          g.barrier(3, 2 * kWarp, true);
          g.barrier(4, 2 * kWarp);
        },
        [&] {
          g.barrier(3, 2 * kWarp);
          g.store(out, r * kWarp + g.lane(), g.load(tile, (g.lane() + 1) % kWarp));
          g.barrier(4, 2 * kWarp, true);
        });
  });
  Tensors start = {random_elements(DType::i32, kRounds * kWarp, 9),
                   same_bytes(kRounds * kWarp * 4, std::byte{0x11})};
  Tensors expected = start;
  for (int64_t j = 0; j < kRounds * kWarp; ++j)
    std::memcpy(&expected[1][static_cast<size_t>(j * 4)],
                &start[0][static_cast<size_t>((j / kWarp * kWarp + (j + 1) % kWarp) * 4)], 4);
  EngineRun(g).expect_exactly(start, expected);
}

// ---- roles

// What threads hold in registers when they part is there in their roles, whether those have more registers or
// fewer.
void keep_registers(int64_t consumers, int64_t producers, int more, int fewer, int64_t held,
                    int64_t producer_held) {
  SCOPED_TRACE(std::to_string(more) + " and " + std::to_string(fewer) + " registers");
  const int64_t threads = consumers + producers;
  EngineProgram g(threads);
  const MemoryId in = g.tensor("In", DType::i32, threads * held),
                 out = g.tensor("Out", DType::i32, threads * held);
  const MemoryId own = g.registers("own", DType::i32, held), sum = g.registers("sum", DType::i32, held);
  // Through a shuffle, which no compiler moves into a role.
  g.loop(g.i(held), LoopForm::unrolled, [&](E r) {
    g.add(thread::Shuffle{thread::Shuffle::Mode::butterfly, own, r.id,
                          g.load(in, r * threads + g.thread()).id, g.i(1).id},
          "swap");
  });
  const auto role = [&](int64_t count, int64_t factor) {
    thread::Block body;
    g.open.push_back(&body);
    g.loop(g.i(count), LoopForm::unrolled, [&](E r) { g.store(sum, r, g.load(own, r)); });
    g.loop(g.i(3), LoopForm::serial, [&](E) {
      g.loop(g.i(count), LoopForm::unrolled,
             [&](E r) { g.store(sum, r, g.load(sum, r) * factor + g.load(own, r)); });
    });
    g.loop(g.i(count), LoopForm::unrolled,
           [&](E r) { g.store(out, r * threads + g.thread(), g.load(sum, r)); });
    g.open.pop_back();
    return body;
  };
  thread::Roles roles;
  roles.roles.push_back({"consumer", 0, consumers, more, role(held, 3)});
  roles.roles.push_back({"producer", consumers, producers, fewer, role(producer_held, 5)});
  g.add(std::move(roles), "roles");
  Tensors start = {random_elements(DType::i32, threads * held, 9),
                   same_bytes(threads * held * 4, std::byte{0x11})};
  Tensors expected = start;
  for (int64_t t = 0; t < threads; ++t)
    for (int64_t r = 0; r < (t < consumers ? held : producer_held); ++r) {
      uint32_t x = 0, v = 0;
      std::memcpy(&x, &start[0][static_cast<size_t>((r * threads + (t ^ 1)) * 4)], 4);
      v = x;
      for (int round = 0; round < 3; ++round) v = v * (t < consumers ? 3 : 5) + x;
      std::memcpy(&expected[1][static_cast<size_t>((r * threads + t) * 4)], &v, 4);
    }
  EngineRun(g).expect_exactly(start, expected);
}

TEST(Transactions, RegistersOfTheRoles) {
  keep_registers(256, 128, 240, 24, 64, 4);
  keep_registers(256, 128, 232, 40, 64, 8);
  keep_registers(128, 128, 0, 0, 64, 64);
  keep_registers(256, 32, 0, 0, 48, 48);
}

// ---- both proxies

// In by the copy engine, changed by threads, out by the copy engine; the next round's box after the threads'
// reads.
TEST(Transactions, ThreadsAndTheCopyEngineTakeTurns) {
  constexpr int64_t kRounds = 5, kRows = 16, kColumns = 64, kBox = kRows * kColumns;
  EngineProgram g(128);
  const MemoryId in = g.tensor("In", DType::i32, kRounds * kBox),
                 out = g.tensor("Out", DType::i32, kRounds * kBox);
  const MemoryId tile = g.tile("tile", DType::i32, kBox);
  const int full = g.barriers("full", 1, 1);
  const int from = g.map(in, {kColumns, kRounds * kRows}, {kColumns * 4}, {kColumns, kRows}, 0);
  const int to = g.map(out, {kColumns, kRounds * kRows}, {kColumns * 4}, {kColumns, kRows}, 0);
  g.loop(g.i(kRounds), LoopForm::serial, [&](E r) {
    const std::vector<ir::ExprId> at = {g.i(0).id, (r * kRows).id};
    g.first_thread([&] {
      g.add(thread::BulkWait{0, true}, "store");
      g.arrive(full, g.i(0), kBox * 4);
      g.add(thread::TensorLoad{from, at, tile, g.i(0).id, full, g.i(0).id}, "load");
    });
    g.wait_for(full, g.i(0), r % 2);
    g.spread(kBox, [&](E j, E) { g.store(tile, j, g.load(tile, j) * 7 + sim::test::cast(DType::i32, j)); });
    g.proxy_fence();
    g.barrier();
    g.first_thread([&] {
      g.add(thread::TensorStore{to, at, tile, g.i(0).id}, "store");
      g.add(thread::BulkCommit{}, "store");
    });
  });
  g.first_thread([&] { g.add(thread::BulkWait{0, false}, "store"); });
  Tensors start = {random_elements(DType::i32, kRounds * kBox, 9),
                   same_bytes(kRounds * kBox * 4, std::byte{0x11})};
  Tensors expected = start;
  for (int64_t j = 0; j < kRounds * kBox; ++j) {
    uint32_t v = 0;
    std::memcpy(&v, &start[0][static_cast<size_t>(j * 4)], 4);
    v = v * 7 + static_cast<uint32_t>(j % kBox);
    std::memcpy(&expected[1][static_cast<size_t>(j * 4)], &v, 4);
  }
  EngineRun(g).expect_exactly(start, expected);
}

// ---- stmatrix

// Four warps store 1, 2 or 4 matrices each, rows in a swizzled tile; the tile as it lies.
TEST(Transactions, MatricesStoredByWarps) {
  for (DType type : {DType::f16, DType::bf16})
    for (int matrices : {1, 2, 4})
      for (bool transpose : {false, true}) {
        SCOPED_TRACE(std::to_string(matrices) + (transpose ? " transposed" : ""));
        constexpr int64_t kUnits = 8, kWarpRows = 32;  // a lane's row is one unit of a line of 128 bytes
        const int64_t held = 2 * matrices, tile_elements = 4 * kWarpRows * kUnits * 8;
        EngineProgram g(128);
        const MemoryId in = g.tensor("In", type, 128 * held), out = g.tensor("Out", type, tile_elements);
        const MemoryId tile = g.tile("tile", type, tile_elements), own = g.registers("own", type, held);
        g.loop(g.i(held), LoopForm::unrolled,
               [&](E r) { g.store(own, r, g.load(in, g.thread() * held + r)); });
        g.spread(tile_elements, [&](E j, E) { g.store(tile, j, g.num(2, type)); });
        g.barrier();
        // Lane l: line l of its warp, unit 3 XOR the line.
        const E at = (g.thread() * kUnits + ((g.i(3) ^ g.thread()) & 7)) * 8;
        g.add(thread::StoreMatrix{tile, at.id, own, g.i(0).id, matrices, transpose}, "store");
        g.barrier();
        g.spread(tile_elements, [&](E j, E) { g.store(out, j, g.load(tile, j)); });
        Tensors start = {random_elements(type, 128 * held, 9),
                         same_bytes(tile_elements * 2, std::byte{0x11})};
        // no NaN: its bits are not told
        for (size_t i = 1; i < start[0].size(); i += 2) start[0][i] &= std::byte{0xbf};
        Tensors expected = start;
        const uint64_t mark = ir::float_to_bits(type, 2);
        for (int64_t j = 0; j < tile_elements; ++j)
          std::memcpy(&expected[1][static_cast<size_t>(2 * j)], &mark, 2);
        for (int64_t t = 0; t < 128; ++t)
          for (int64_t r = 0; r < held; ++r) {
            const int64_t matrix = r / 2, lane = t % 32;
            int64_t row = lane / 4, column = lane % 4 * 2 + r % 2;
            if (transpose) std::swap(row, column);
            const int64_t line = t / 32 * 32 + matrix * 8 + row, unit = swizzled_unit(128, line, 3);
            std::memcpy(&expected[1][static_cast<size_t>((line * kUnits + unit) * 16 + column * 2)],
                        &start[0][static_cast<size_t>((t * held + r) * 2)], 2);
          }
        EngineRun(g).expect_exactly(start, expected);
        if (enough_failures()) return;
      }
}

}  // namespace
}  // namespace tilegen::gpu
