// The dynamic tile scheduler: a block takes its next tile of the grid from a counter that all blocks share.
//
// A block begins with the tile of its own index. The one thread that makes copies fetches the next tile when
// it has issued the copies of one, long before the computing threads are done with it, hands its number over
// through shared memory and goes on with it. The number after the last tile ends both.
//
//   producer                                          computing threads
//     tile = block                                      tile = block
//     loop turn while tile < tiles {                    loop turn while tile < tiles {
//       copies of the tile                                work on the tile
//       number = fetch_tile                               wait full[turn % slots]
//       tile = launched + number                          number = handed[turn % slots]
//       while the tile is empty: the same again           all of the warpgroup have it:
//       wait empty[turn % slots]                            arrive empty[turn % slots]
//       handed[turn % slots] = number                     tile = launched + number
//       arrive full[turn % slots]                       }
//     }
//
// Further producers take the number as the computing threads do, one thread each.
//
// A tile is empty where a block would store nothing. Where the schedule has them skipped, the computing
// threads never see them; each costs the producer one fetch, concurrent with the work on other tiles.
//
// A block gets a number after the last tile exactly once. Tiles beyond the launched blocks are fetched once
// each: a launch fetches as often as the grid has tiles, which is what the counter counts to.
#include "lower/gpu/tile_scheduler.h"

#include "analysis/empty_tiles.h"
#include "lower/addressing.h"
#include "lower/gpu/counts.h"
#include "lower/gpu/grid.h"
#include "lower/gpu/registers.h"
#include "lower/gpu/warpgroups.h"
#include "lower/lowering_context.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

namespace {

constexpr int64_t kSlots = plan::kTileSlots;

// What was said of the block's own tile, of another: block indices as they are there, and tensors are read
// only where it is a tile of the grid.
class AtTile final : public ir::ExprRewriter {
 public:
  AtTile(thread::ThreadProgram& p, const std::map<VarId, ExprId>& block_indices, ExprId in_grid)
      : ExprRewriter(p.exprs, p.exprs), p_(p), block_indices_(block_indices), in_grid_(in_grid) {}

 protected:
  ExprId rewrite_var(const ir::ExprNode& n) override {
    const auto it = block_indices_.find(n.var());
    return it == block_indices_.end() ? ExprRewriter::rewrite_var(n) : it->second;
  }
  ExprId rewrite_load(const ir::ExprNode& n, std::span<const ExprId> indices) override {
    if (p_.memory(n.object).space != thread::Space::global) return ExprRewriter::rewrite_load(n, indices);
    const ExprId known = indices.size() > 1 ? p_.exprs.logical_and(in_grid_, indices[1]) : in_grid_;
    return p_.exprs.load(n.object, n.type, std::vector<ExprId>{indices[0], known});
  }

 private:
  thread::ThreadProgram& p_;
  const std::map<VarId, ExprId>& block_indices_;
  const ExprId in_grid_;
};

}  // namespace

TileScheduler::TileScheduler(LoweringContext& k) : k_(k), e_(k.out.exprs) {
  k.out.dynamic_tiles = true;
  number_ = add_registers(k, "number", ir::DType::i32, 1);
  tile_ = add_registers(k, "tile", ir::DType::i32, 1);
}

ExprId TileScheduler::current_tile() {
  return e_.binary(ir::ExprOp::max, held_number(k_, tile_), e_.const_int(0));
}

void TileScheduler::declare() {
  const plan::MemoryPlan* place =
      plan::find_memory(k_.in.schedule, plan::Storage::tile_scheduler, k_.in.kernel.name);
  if (!place)
    return k_.fail(DiagCode::schedule_illegal, k_.in.kernel.name,
                   "the tile scheduler has no place in shared memory", "plan the program for this target");
  const int64_t barriers = k_.in.target.transaction_barrier_bytes * kSlots;
  const std::string name = k_.in.kernel.name + ":tile_scheduler";
  full_ = static_cast<int>(k_.out.barriers.size());
  k_.out.barriers.push_back({name + ".full", kSlots, 1, place->offset});
  empty_ = static_cast<int>(k_.out.barriers.size());
  const int64_t takers =
      k_.out.threads / k_.in.target.warpgroup + static_cast<int64_t>(k_.in.scheduled.roles.size()) - 2;
  k_.out.barriers.push_back({name + ".empty", kSlots, takers, place->offset + barriers});
  thread::Memory handed;
  handed.name = name;
  handed.space = thread::Space::shared;
  handed.type = ir::DType::i32;
  handed.elements = kSlots;
  handed.alignment = 4;
  handed.arena_offset = place->offset + 2 * barriers;
  k_.out.arena_bytes = std::max(k_.out.arena_bytes, place->offset + place->bytes);
  handed_ = k_.out.add_memory(std::move(handed));
}

ExprId TileScheduler::tile_in_grid() { return e_.lt(held_number(k_, tile_), points(k_)); }

thread::StmtId TileScheduler::set_tile(ExprId to) {
  // of a grid of few points, and the blocks launched
  const ExprId narrow = e_.cast(ir::DType::i32, to);
  return k_.out.add(thread::Store{tile_, e_.const_int(0), narrow, ExprId(), false, ExprId()},
                    k_.in.kernel.name);
}

thread::StmtId TileScheduler::set_tile_to_number() {
  return set_tile(e_.add(held_number(k_, number_), e_.var(k_.out.launched_var)));
}

// The body once for each point, with the way to the next one after it.
thread::Block TileScheduler::walk(thread::Block body, bool fetches) {
  if (fetches)
    fetch_next(body);
  else
    k_.role.kind == expand::RoleKind::producer ? take_next_alone(body) : take_next(body);
  thread::Loop walk{k_.grid.tile_var, points(k_), thread::LoopForm::serial, std::move(body), tile_in_grid()};
  return {set_tile(e_.var(k_.out.block_vars[0])), k_.out.add(std::move(walk), k_.in.kernel.name)};
}

thread::Block TileScheduler::first_tile(thread::Block body) {
  thread::Loop once{k_.grid.tile_var, e_.const_int(1), thread::LoopForm::serial, std::move(body),
                    tile_in_grid()};
  return {set_tile(e_.var(k_.out.block_vars[0])), k_.out.add(std::move(once), k_.in.kernel.name)};
}

// The block's point is one of the grid, and nothing is to be stored there.
ExprId TileScheduler::tile_is_empty() {
  const auto at = [&](ExprId index, const std::map<VarId, int64_t>& inside) {
    for (const auto& [var, number] : inside) k_.names.vars[var] = e_.const_int(number);
    const ExprId lowered = lower_expr(k_, index);
    for (const auto& [var, number] : inside) k_.names.vars.erase(var);
    return lowered;
  };
  ExprId stores = e_.const_int(0, ir::DType::boolean);
  for (const analysis::StoreTest& test : analysis::store_tests(k_.in.program, k_.in.kernel, k_.in.ops)) {
    ExprId passes;
    for (const analysis::StoreComparison& c : test) {
      const ExprId a = at(c.a, c.in_a), b = at(c.b, c.in_b);
      passes = both(k_, passes, k_.simplified(c.or_equal ? e_.le(a, b) : e_.lt(a, b)));
    }
    stores = e_.binary(ir::ExprOp::logical_or, stores, passes ? passes : e_.const_int(1, ir::DType::boolean));
  }
  const ExprId in_grid = tile_in_grid();
  return e_.logical_and(in_grid, AtTile(k_.out, k_.grid.block_indices, in_grid)
                                     .rewrite(e_.unary(ir::ExprOp::logical_not, k_.simplified(stores))));
}

// Where the number after this turn is handed over, and the parity of the phase that has it.
ExprId TileScheduler::handed_slot() {
  return k_.simplified(e_.floormod(e_.var(k_.grid.tile_var), e_.const_int(kSlots)));
}
ExprId TileScheduler::handed_parity() {
  return k_.simplified(
      e_.floormod(e_.floordiv(e_.var(k_.grid.tile_var), e_.const_int(kSlots)), e_.const_int(2)));
}

void TileScheduler::fetch_next(thread::Block& out) {
  const ExprId zero = e_.const_int(0), slot = handed_slot();
  const auto emit = [&](auto node) { out.push_back(k_.out.add(std::move(node), k_.in.kernel.name)); };
  emit(thread::FetchTile{number_, zero});
  out.push_back(set_tile_to_number());
  if (k_.in.schedule.persistence->skip_empty_tiles.value_or(false)) {
    const VarId again = k_.out.add_var("again", ir::VarKind::loop);
    thread::Block next = {k_.out.add(thread::FetchTile{number_, zero}, k_.in.kernel.name),
                          set_tile_to_number()};
    emit(thread::Loop{again, points(k_), thread::LoopForm::serial, std::move(next), tile_is_empty()});
  }
  const ExprId number = e_.load(number_, ir::DType::i32, std::vector<ExprId>{zero});
  emit(thread::TransactionWait{empty_, slot, k_.simplified(e_.sub(e_.const_int(1), handed_parity()))});
  emit(thread::Store{handed_, slot, number, ExprId(), false, ExprId()});
  emit(thread::TransactionArrive{full_, slot, 0, {}});
}

// The first lane's, so that it is known to be the same for the warp.
void TileScheduler::take_next(thread::Block& out) {
  const ExprId zero = e_.const_int(0), slot = handed_slot();
  const auto emit = [&](auto node) { out.push_back(k_.out.add(std::move(node), k_.in.kernel.name)); };
  emit(thread::TransactionWait{full_, slot, handed_parity()});
  thread::Shuffle take;
  take.mode = thread::Shuffle::Mode::indexed;
  take.dst = number_;
  take.dst_index = zero;
  take.value = e_.load(handed_, ir::DType::i32, std::vector<ExprId>{slot});
  take.lane = zero;
  emit(std::move(take));
  warpgroup_barrier(k_, out, k_.in.kernel.name);
  thread::Block freed = {k_.out.add(thread::TransactionArrive{empty_, slot, 0, {}}, k_.in.kernel.name)};
  out.push_back(only_first_of_warpgroup(k_, std::move(freed), k_.in.kernel.name));
  out.push_back(set_tile_to_number());
}

// By the one thread of a producer.
void TileScheduler::take_next_alone(thread::Block& out) {
  const ExprId zero = e_.const_int(0), slot = handed_slot();
  const auto emit = [&](auto node) { out.push_back(k_.out.add(std::move(node), k_.in.kernel.name)); };
  emit(thread::TransactionWait{full_, slot, handed_parity()});
  const ExprId handed = e_.load(handed_, ir::DType::i32, std::vector<ExprId>{slot});
  emit(thread::Store{number_, zero, handed, ExprId(), false, ExprId()});
  emit(thread::TransactionArrive{empty_, slot, 0, {}});
  out.push_back(set_tile_to_number());
}

}  // namespace tilegen::lower
