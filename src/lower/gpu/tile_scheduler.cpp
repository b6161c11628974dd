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
#include "analysis/empty_tiles.h"
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

namespace {

constexpr int64_t kSlots = plan::kTileSlots;
constexpr int64_t kMax = thread::kMaxPersistentPoints;

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

// Registers that both roles know by one name; each has its own.
ExprId KernelLowering::current_tile() {
  ir::ExprPool& e = out_.exprs;
  out_.dynamic_tiles = true;
  scheduler_.number = add_registers("number", ir::DType::i32, 1);
  scheduler_.tile = add_registers("tile", ir::DType::i32, 1);
  return e.binary(ir::ExprOp::max, held_number(scheduler_.tile), e.const_int(0));
}

void KernelLowering::declare_tile_scheduler() {
  const plan::MemoryPlan* place = plan::find_memory(schedule_, plan::Storage::tile_scheduler, kernel_.name);
  if (!place)
    return fail(DiagCode::schedule_illegal, kernel_.name, "the tile scheduler has no place in shared memory",
                "plan the program for this target");
  const int64_t barriers = target_.transaction_barrier_bytes * kSlots;
  const std::string name = kernel_.name + ":tile_scheduler";
  scheduler_.full = static_cast<int>(out_.barriers.size());
  out_.barriers.push_back({name + ".full", kSlots, 1, place->offset});
  scheduler_.empty = static_cast<int>(out_.barriers.size());
  const int64_t takers = out_.threads / target_.warpgroup + static_cast<int64_t>(scheduled_.roles.size()) - 2;
  out_.barriers.push_back({name + ".empty", kSlots, takers, place->offset + barriers});
  thread::Memory handed;
  handed.name = name;
  handed.space = thread::Space::shared;
  handed.type = ir::DType::i32;
  handed.elements = kSlots;
  handed.alignment = 4;
  handed.arena_offset = place->offset + 2 * barriers;
  handed.ordered = true;
  out_.arena_bytes = std::max(out_.arena_bytes, place->offset + place->bytes);
  scheduler_.handed = out_.add_memory(std::move(handed));
}

ExprId KernelLowering::points() {
  return simplified(out_.exprs.binary(ir::ExprOp::min, tiles_, out_.exprs.const_int(kMax)));
}

ExprId KernelLowering::tile_in_grid() { return out_.exprs.lt(held_number(scheduler_.tile), points()); }

thread::StmtId KernelLowering::set_tile(ExprId to) {
  // of a grid of few points, and the blocks launched
  const ExprId narrow = out_.exprs.cast(ir::DType::i32, to);
  return out_.add(thread::Store{scheduler_.tile, out_.exprs.const_int(0), narrow, ExprId(), false, ExprId()},
                  kernel_.name);
}

thread::StmtId KernelLowering::set_tile_to_number() {
  return set_tile(out_.exprs.add(held_number(scheduler_.number), out_.exprs.var(out_.launched_var)));
}

// The body once for each point, with the way to the next one after it.
thread::Block KernelLowering::walk_dynamic(thread::Block body, bool fetches) {
  if (fetches)
    fetch_next(body);
  else
    role_ == expand::RoleKind::producer ? take_next_alone(body) : take_next(body);
  thread::Loop walk{tile_var_, points(), thread::LoopForm::serial, std::move(body), tile_in_grid()};
  return {set_tile(out_.exprs.var(out_.block_vars[0])), out_.add(std::move(walk), kernel_.name)};
}

// The block's point is one of the grid, and nothing is to be stored there.
ExprId KernelLowering::tile_is_empty() {
  ir::ExprPool& e = out_.exprs;
  const auto at = [&](ExprId index, const std::map<VarId, int64_t>& inside) {
    for (const auto& [var, number] : inside) vars_[var] = e.const_int(number);
    const ExprId lowered = lower_expr(index);
    for (const auto& [var, number] : inside) vars_.erase(var);
    return lowered;
  };
  ExprId stores = e.const_int(0, ir::DType::boolean);
  for (const analysis::StoreTest& test : analysis::store_tests(p_, kernel_, ops_)) {
    ExprId passes;
    for (const analysis::StoreComparison& c : test) {
      const ExprId a = at(c.a, c.in_a), b = at(c.b, c.in_b);
      passes = both(passes, simplified(c.or_equal ? e.le(a, b) : e.lt(a, b)));
    }
    stores = e.binary(ir::ExprOp::logical_or, stores, passes ? passes : e.const_int(1, ir::DType::boolean));
  }
  const ExprId in_grid = tile_in_grid();
  return e.logical_and(
      in_grid,
      AtTile(out_, block_indices_, in_grid).rewrite(e.unary(ir::ExprOp::logical_not, simplified(stores))));
}

// Where the number after this turn is handed over, and the parity of the phase that has it.
ExprId KernelLowering::handed_slot() {
  ir::ExprPool& e = out_.exprs;
  return simplified(e.floormod(e.var(tile_var_), e.const_int(kSlots)));
}
ExprId KernelLowering::handed_parity() {
  ir::ExprPool& e = out_.exprs;
  return simplified(e.floormod(e.floordiv(e.var(tile_var_), e.const_int(kSlots)), e.const_int(2)));
}

void KernelLowering::fetch_next(thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ExprId zero = e.const_int(0), slot = handed_slot();
  const auto emit = [&](auto node) { out.push_back(out_.add(std::move(node), kernel_.name)); };
  emit(thread::FetchTile{scheduler_.number, zero});
  out.push_back(set_tile_to_number());
  if (schedule_.persistence->skip_empty_tiles.value_or(false)) {
    const VarId again = out_.add_var("again", ir::VarKind::loop);
    thread::Block next = {out_.add(thread::FetchTile{scheduler_.number, zero}, kernel_.name),
                          set_tile_to_number()};
    emit(thread::Loop{again, points(), thread::LoopForm::serial, std::move(next), tile_is_empty()});
  }
  const ExprId number = e.load(scheduler_.number, ir::DType::i32, std::vector<ExprId>{zero});
  emit(thread::TransactionWait{scheduler_.empty, slot, simplified(e.sub(e.const_int(1), handed_parity()))});
  emit(thread::Store{scheduler_.handed, slot, number, ExprId(), false, ExprId()});
  emit(thread::TransactionArrive{scheduler_.full, slot, 0, {}});
}

// The first lane's, so that it is known to be the same for the warp.
void KernelLowering::take_next(thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ExprId zero = e.const_int(0), slot = handed_slot();
  const auto emit = [&](auto node) { out.push_back(out_.add(std::move(node), kernel_.name)); };
  emit(thread::TransactionWait{scheduler_.full, slot, handed_parity()});
  thread::Shuffle take;
  take.mode = thread::Shuffle::Mode::indexed;
  take.dst = scheduler_.number;
  take.dst_index = zero;
  take.value = e.load(scheduler_.handed, ir::DType::i32, std::vector<ExprId>{slot});
  take.lane = zero;
  emit(std::move(take));
  warpgroup_barrier(out, kernel_.name);
  thread::Block freed = {out_.add(thread::TransactionArrive{scheduler_.empty, slot, 0, {}}, kernel_.name)};
  out.push_back(only_first_of_warpgroup(std::move(freed), kernel_.name));
  out.push_back(set_tile_to_number());
}

// By the one thread of a producer.
void KernelLowering::take_next_alone(thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ExprId zero = e.const_int(0), slot = handed_slot();
  const auto emit = [&](auto node) { out.push_back(out_.add(std::move(node), kernel_.name)); };
  emit(thread::TransactionWait{scheduler_.full, slot, handed_parity()});
  const ExprId handed = e.load(scheduler_.handed, ir::DType::i32, std::vector<ExprId>{slot});
  emit(thread::Store{scheduler_.number, zero, handed, ExprId(), false, ExprId()});
  emit(thread::TransactionArrive{scheduler_.empty, slot, 0, {}});
  out.push_back(set_tile_to_number());
}

}  // namespace tilegen::lower
