// Roles of blocks in turns: who goes on is the order's to say, the rest is the block's (scheduled_block.h).
#include "interp/run_scheduled.h"

#include <algorithm>

#include "interp/scheduled_block.h"
#include "support/checked.h"

namespace tilegen::interp {

namespace {

constexpr int64_t kPersistentBlocks = 2;
constexpr uint64_t kMaxStatementsInARow = 6;
constexpr uint64_t kOneLandsOf = 4;  // statements, of a random order

using Blocks = std::vector<std::unique_ptr<ScheduledBlock>>;
using Step = ScheduledBlock::Step;

struct Runner {
  ScheduledBlock* block = nullptr;
  size_t role = 0;
  Step step() const { return block->step(role); }
};

expand::Walk walk_of(const expand::ScheduledKernel& k) {
  for (const expand::Role& r : k.roles)
    for (const expand::Stmt& s : r.body)
      if (const auto* tiles = std::get_if<expand::TileLoop>(&s.node)) return tiles->walk;
  return expand::Walk::own;
}

// Each as far as it can. Whether any did a statement.
bool each_in_turn(const std::vector<Runner>& runners) {
  bool moved = false;
  for (const Runner& r : runners)
    while (r.step() == Step::done) moved = true;
  return moved;
}

// The last that can: producers stand after those that they feed.
bool last_first(const std::vector<Runner>& runners) {
  return std::any_of(runners.rbegin(), runners.rend(),
                     [](const Runner& r) { return r.step() == Step::done; });
}

bool at_random(const std::vector<Runner>& runners, Chance& chance) {
  bool moved = false;
  const size_t first = chance.below(runners.size());
  for (size_t i = 0; i < runners.size() && !moved; ++i) {
    const Runner& r = runners[(first + i) % runners.size()];
    for (uint64_t n = 1 + chance.below(kMaxStatementsInARow); n > 0 && r.step() == Step::done; --n) {
      moved = true;
      if (chance.below(kOneLandsOf) == 0) r.block->land_one();
    }
  }
  return moved;
}

void play(const Execution& run, const Blocks& blocks, Order order, Chance& chance) {
  std::vector<Runner> runners;
  for (const auto& block : blocks)
    for (size_t r = 0; r < block->roles(); ++r) runners.push_back({block.get(), r});
  for (bool moved = true; moved && !run.failed();)
    moved = order.kind == Order::Kind::early  ? each_in_turn(runners)
            : order.kind == Order::Kind::late ? last_first(runners)
                                              : at_random(runners, chance);
  if (run.failed()) return;
  for (const auto& block : blocks)
    if (block->tell_waiting()) return;
  for (const auto& block : blocks) block->end();
}

Checked run_kernel(Execution& run, const ir::Program& program, const expand::ScheduledKernel& k, Order order,
                   Chance& chance) {
  auto extents = run.grid_of(program.kernels[static_cast<size_t>(k.kernel)]);
  if (!extents) return extents.error();
  GridWalk grid;
  grid.extents = std::move(*extents);
  if (std::any_of(grid.extents.begin(), grid.extents.end(), [](int64_t e) { return e <= 0; })) return Unit{};
  grid.tiles = *checked_product(grid.extents);
  grid.walk = walk_of(k);
  const bool own = grid.walk == expand::Walk::own;
  grid.launched = own ? grid.tiles : std::min(grid.tiles, kPersistentBlocks);
  const std::vector<ir::BufferId> owned = run.place_tiles(static_cast<size_t>(k.kernel));
  Blocks blocks;
  // Where blocks share a loop's iterations the first part comes last: it reads what the others leave.
  const bool parts = program.kernels[static_cast<size_t>(k.kernel)].split.has_value();
  for (int64_t n = 0; n < grid.launched && !run.failed(); ++n) {
    const int64_t index = parts ? grid.launched - 1 - n : n;
    blocks.push_back(std::make_unique<ScheduledBlock>(run, program, k, order, chance, grid, index));
    if (!own) continue;
    play(run, blocks, order, chance);
    blocks.clear();
  }
  if (!blocks.empty()) play(run, blocks, order, chance);
  for (ir::BufferId b : owned) run.buffers()[b.value] = Storage();
  return Unit{};
}

}  // namespace

Checked interpret_scheduled(const ir::Program& program,
                            std::span<const expand::ScheduledKernel* const> kernels,
                            std::span<const uint64_t> params, Order order, const Cancellation* cancellation) {
  Execution run(program, cancellation);
  if (Checked bound = run.bind(params); !bound) return bound;
  Chance chance(order.seed);
  for (const expand::ScheduledKernel* k : kernels) {
    if (run.failed()) break;
    if (Checked ran = run_kernel(run, program, *k, order, chance); !ran) return ran;
  }
  return run.outcome();
}

}  // namespace tilegen::interp
