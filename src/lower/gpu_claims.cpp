// Blocks that claim the points of the grid they walk.
//
// A block begins with the point of its own index. The one thread that makes copies claims the next one when
// it has issued those of a point, long before the computing threads are done with them, hands its number over
// through shared memory and goes on with it itself. The number behind the last point ends both.
//
//   producer                                          computing threads
//     point = block                                     point = block
//     loop turn while point < points {                  loop turn while point < points {
//       copies of the point                               work on the point
//       number = claim                                    wait full[turn % slots]
//       point = launched + number                         number = handed[turn % slots]
//       while point is idle: the same again               all of the warpgroup have it:
//       wait empty[turn % slots]                            arrive empty[turn % slots]
//       handed[turn % slots] = number                     point = launched + number
//       arrive full[turn % slots]                       }
//     }
//
// Idle are points at which a block would store nothing, where the schedule says that they are passed over:
// the computing threads never hear of them, and those of short sequences cost a claim each, beside the work
// on longer ones.
//
// A block is told a number behind the last point exactly once. Points beyond the launched blocks are claimed
// once each: the launch claims as often as the grid has points, which is what the counter counts to.
#include "analysis/empty_tiles.h"
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

namespace {

constexpr int64_t kSlots = 2;
constexpr int64_t kMost = thread::kMostPersistentPoints;

// What was said of the block's own point, of another: block indices as they are there, and tensors are read
// only where it is a point of the grid.
class AtPoint final : public ir::ExprRewriter {
 public:
  AtPoint(thread::ThreadProgram& p, const std::map<VarId, ExprId>& block_indices, ExprId in_grid)
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
ExprId KernelLowering::walked_point() {
  ir::ExprPool& e = out_.exprs;
  out_.claims = true;
  claims_.number = add_registers("claimed", ir::DType::i32, 1);
  claims_.point = add_registers("point", ir::DType::i32, 1);
  return e.binary(ir::ExprOp::max, held_number(claims_.point), e.const_int(0));
}

void KernelLowering::declare_claims() {
  int64_t offset = -1;
  for (const plan::MemoryPlan& place : schedule_.memory)
    if (place.value == kernel_.name + ":claims") offset = place.offset;
  if (offset < 0)
    return fail(DiagCode::schedule_illegal, kernel_.name,
                "points that the blocks claim have no place in shared memory",
                "plan the program for this target");
  const std::string name = kernel_.name + ":claims";
  claims_.full = static_cast<int>(out_.barriers.size());
  out_.barriers.push_back({name + ".full", kSlots, 1, offset});
  claims_.empty = static_cast<int>(out_.barriers.size());
  out_.barriers.push_back({name + ".empty", kSlots, out_.threads / target_.warpgroup,
                           offset + target_.transaction_barrier_bytes * kSlots});
  thread::Memory handed;
  handed.name = name;
  handed.space = thread::Space::shared;
  handed.type = ir::DType::i32;
  handed.elements = kSlots;
  handed.alignment = 4;
  handed.arena_offset = offset + 2 * target_.transaction_barrier_bytes * kSlots;
  handed.ordered = true;
  out_.arena_bytes = std::max(out_.arena_bytes, handed.arena_offset + 4 * kSlots);
  claims_.handed = out_.add_memory(std::move(handed));
}

ExprId KernelLowering::points() {
  return simplified(out_.exprs.binary(ir::ExprOp::min, tiles_, out_.exprs.const_int(kMost)));
}

ExprId KernelLowering::point_in_grid() { return out_.exprs.lt(held_number(claims_.point), points()); }

thread::StmtId KernelLowering::set_point(ExprId to) {
  // of a grid of few points, and the blocks launched
  const ExprId narrow = out_.exprs.cast(ir::DType::i32, to);
  return out_.add(thread::Store{claims_.point, out_.exprs.const_int(0), narrow, ExprId(), false, ExprId()},
                  kernel_.name);
}

thread::StmtId KernelLowering::set_point_to_number() {
  return set_point(out_.exprs.add(held_number(claims_.number), out_.exprs.var(out_.launched_var)));
}

// The body once for each point, with the way to the next one behind it.
thread::Block KernelLowering::walk_claimed(thread::Block body) {
  role_ == expand::RoleKind::producer ? claim_next(body) : take_next(body);
  thread::Loop walk{tile_var_, points(), thread::LoopForm::serial, std::move(body), point_in_grid()};
  return {set_point(out_.exprs.var(out_.block_vars[0])), out_.add(std::move(walk), kernel_.name)};
}

// The block's point is one of the grid, and nothing is to be stored there.
ExprId KernelLowering::point_is_idle() {
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
  const ExprId in_grid = point_in_grid();
  return e.logical_and(
      in_grid,
      AtPoint(out_, block_indices_, in_grid).rewrite(e.unary(ir::ExprOp::logical_not, simplified(stores))));
}

// Where the number behind this turn is handed over, and the parity of the phase that has it.
ExprId KernelLowering::handed_slot() {
  ir::ExprPool& e = out_.exprs;
  return simplified(e.floormod(e.var(tile_var_), e.const_int(kSlots)));
}
ExprId KernelLowering::handed_parity() {
  ir::ExprPool& e = out_.exprs;
  return simplified(e.floormod(e.floordiv(e.var(tile_var_), e.const_int(kSlots)), e.const_int(2)));
}

void KernelLowering::claim_next(thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ExprId zero = e.const_int(0), slot = handed_slot();
  const auto emit = [&](auto node) { out.push_back(out_.add(std::move(node), kernel_.name)); };
  emit(thread::Claim{claims_.number, zero});
  out.push_back(set_point_to_number());
  if (schedule_.persistence->skips_idle.value_or(false)) {
    const VarId again = out_.add_var("again", ir::VarKind::loop);
    thread::Block next = {out_.add(thread::Claim{claims_.number, zero}, kernel_.name), set_point_to_number()};
    emit(thread::Loop{again, points(), thread::LoopForm::serial, std::move(next), point_is_idle()});
  }
  const ExprId number = e.load(claims_.number, ir::DType::i32, std::vector<ExprId>{zero});
  emit(thread::TransactionWait{claims_.empty, slot, simplified(e.sub(e.const_int(1), handed_parity()))});
  emit(thread::Store{claims_.handed, slot, number, ExprId(), false, ExprId()});
  emit(thread::TransactionArrive{claims_.full, slot, 0, {}});
}

// The first lane's, so that it is known to be the same for the warp.
void KernelLowering::take_next(thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ExprId zero = e.const_int(0), slot = handed_slot();
  const auto emit = [&](auto node) { out.push_back(out_.add(std::move(node), kernel_.name)); };
  emit(thread::TransactionWait{claims_.full, slot, handed_parity()});
  thread::Shuffle take;
  take.mode = thread::Shuffle::Mode::indexed;
  take.dst = claims_.number;
  take.dst_index = zero;
  take.value = e.load(claims_.handed, ir::DType::i32, std::vector<ExprId>{slot});
  take.lane = zero;
  emit(std::move(take));
  warpgroup_barrier(out, kernel_.name);
  thread::Block freed = {out_.add(thread::TransactionArrive{claims_.empty, slot, 0, {}}, kernel_.name)};
  out.push_back(only_first_of_warpgroup(std::move(freed), kernel_.name));
  out.push_back(set_point_to_number());
}

}  // namespace tilegen::lower
