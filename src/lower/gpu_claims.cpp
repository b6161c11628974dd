// Blocks that claim the points of the grid they walk.
//
// A block begins with the point of its own index. The one thread that makes copies claims the next one when it has issued
// those of a point, long before the computing threads are done with them, hands its number over through shared memory and
// goes on with it itself. The number behind the last point ends both.
//
//   producer                                          computing threads
//     point = block                                     point = block
//     loop turn while point < points {                  loop turn while point < points {
//       copies of the point                               work on the point
//       number = claim                                    wait full[turn % slots]
//       wait empty[turn % slots]                          number = handed[turn % slots]
//       handed[turn % slots] = number                     all of the warpgroup have it: arrive empty[turn % slots]
//       arrive full[turn % slots]                         point = launched + number
//       point = launched + number                       }
//     }
//
// A block is told a number behind the last point exactly once. Points beyond the launched blocks are claimed once each: the
// launch claims as often as the grid has points, which is what the counter counts to.
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

namespace {

constexpr int64_t kSlots = 2;
constexpr int64_t kMost = thread::kMostPersistentPoints;

}  // namespace

// Registers that both roles know by one name; each has its own.
ExprId KernelLowering::walked_point() {
  ir::ExprPool& e = out_.exprs;
  out_.claims = true;
  claims_.number = add_registers("claimed", ir::DType::i32, 1);
  claims_.point = add_registers("point", ir::DType::i64, 1);
  const ExprId held = e.load(claims_.point, ir::DType::i64, std::vector<ExprId>{e.const_int(0)});
  return e.binary(ir::ExprOp::max, held, e.const_int(0));
}

void KernelLowering::declare_claims() {
  int64_t offset = -1;
  for (const plan::MemoryPlan& place : schedule_.memory)
    if (place.value == kernel_.name + ":claims") offset = place.offset;
  if (offset < 0)
    return fail(DiagCode::schedule_illegal, kernel_.name, "points that the blocks claim have no place in shared memory",
                "plan the program for this target");
  const std::string name = kernel_.name + ":claims";
  claims_.full = static_cast<int>(out_.barriers.size());
  out_.barriers.push_back({name + ".full", kSlots, 1, offset});
  claims_.empty = static_cast<int>(out_.barriers.size());
  out_.barriers.push_back({name + ".empty", kSlots, out_.threads / kWarpgroup, offset + 8 * kSlots});
  thread::Memory handed;
  handed.name = name;
  handed.space = thread::Space::shared;
  handed.type = ir::DType::i32;
  handed.elements = kSlots;
  handed.alignment = 4;
  handed.arena_offset = offset + 16 * kSlots;
  handed.ordered = true;
  out_.arena_bytes = std::max(out_.arena_bytes, handed.arena_offset + 4 * kSlots);
  claims_.handed = out_.add_memory(std::move(handed));
}

// The body once for each point, with the way to the next one behind it.
thread::Block KernelLowering::walk_claimed(thread::Block body) {
  ir::ExprPool& e = out_.exprs;
  const ExprId points = simplified(e.binary(ir::ExprOp::min, tiles_, e.const_int(kMost)));
  const auto set_point = [&](ExprId to) {
    return out_.add(thread::Store{claims_.point, e.const_int(0), to, ExprId(), false, ExprId()}, kernel_.name);
  };
  const std::vector<ExprId> first = {e.const_int(0)};
  role_ == Role::producer ? claim_next(body) : take_next(body);
  const ExprId number = e.cast(ir::DType::i64, e.load(claims_.number, ir::DType::i32, first));
  body.push_back(set_point(e.add(number, e.var(out_.launched_var))));
  thread::Loop walk{tile_var_, points, thread::LoopForm::serial, std::move(body),
                    e.lt(e.load(claims_.point, ir::DType::i64, first), points)};
  return {set_point(e.var(out_.block_vars[0])), out_.add(std::move(walk), kernel_.name)};
}

void KernelLowering::claim_next(thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ExprId turn = e.var(tile_var_), zero = e.const_int(0);
  const ExprId slot = simplified(e.floormod(turn, e.const_int(kSlots)));
  const ExprId round = simplified(e.floormod(e.floordiv(turn, e.const_int(kSlots)), e.const_int(2)));
  const auto emit = [&](auto node) { out.push_back(out_.add(std::move(node), kernel_.name)); };
  emit(thread::Claim{claims_.number, zero});
  const ExprId number = e.load(claims_.number, ir::DType::i32, std::vector<ExprId>{zero});
  emit(thread::TransactionWait{claims_.empty, slot, simplified(e.sub(e.const_int(1), round))});
  emit(thread::Store{claims_.handed, slot, number, ExprId(), false, ExprId()});
  emit(thread::TransactionArrive{claims_.full, slot, 0, {}});
}

// The first lane's, so that it is known to be the same for the warp.
void KernelLowering::take_next(thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ExprId turn = e.var(tile_var_), zero = e.const_int(0);
  const ExprId slot = simplified(e.floormod(turn, e.const_int(kSlots)));
  const ExprId round = simplified(e.floormod(e.floordiv(turn, e.const_int(kSlots)), e.const_int(2)));
  const auto emit = [&](auto node) { out.push_back(out_.add(std::move(node), kernel_.name)); };
  emit(thread::TransactionWait{claims_.full, slot, round});
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
}

}  // namespace tilegen::lower
