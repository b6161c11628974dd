// Loops whose tiles come through registers: loads run ahead of what uses the tile, by as many iterations as
// it has slots, and go to the tile when the iterations before have left its slot.
//
// A copy that runs d iterations ahead has its tile in one of at least d slots. The loop of n iterations
// becomes, with D the largest d,
//
//   for j in 0..D:  what follows at i = j - D, where the loop has that iteration
//   for i in 0..n:  what uses no copied tile yet
//                   if i + d - 1 < n: deposit iteration i + d - 1 in slot (i + d - 1) % slots
//                   if i + d < n:     load iteration i + d to the registers that this left
//                   the rest, on slot i % slots
//
// so the registers of one tile serve, and a load has the whole of an iteration to arrive. With two slots one
// barrier, in front of the deposits, keeps them apart from what others read of the slot before, and shows
// everybody what was deposited an iteration ago. With one there is a second one behind them. A fragment
// has one, and nobody else reads it.
#include <algorithm>
#include <set>

#include "expand/expander.h"

namespace tilegen::expand {

namespace {

struct Ahead {
  StmtId stmt;
  int64_t distance = 0;
};

class RegisterCopyLoop {
 public:
  RegisterCopyLoop(Expander& x, const ir::Loop& loop, std::vector<Ahead> ahead)
      : x_(x), loop_(loop), ahead_(std::move(ahead)) {
    for (const Ahead& a : ahead_)
      for (const analysis::OpAccess& access : x.op(a.stmt)->accesses)
        if (access.write) tiles_.insert(access.value);
  }

  const std::set<ValueId>& tiles() const { return tiles_; }

  Block run() {
    Block out;
    int64_t farthest = 0;
    for (const Ahead& a : ahead_) farthest = std::max(farthest, a.distance);
    for (int64_t i = -farthest; i < 0; ++i) move_on({Iteration::From::first, i}, out);
    Steady steady;
    body(steady.body);
    emit(out, std::move(steady));
    return out;
  }

 private:
  // Deposits, then loads, of all copies at iteration `i`; under one condition where they go together.
  void move_on(Iteration i, Block& out) {
    std::set<int64_t> distances;
    for (const Ahead& a : ahead_) distances.insert(a.distance);
    for (int64_t loads = 0; loads < 2; ++loads)
      for (int64_t d : distances) {
        const Iteration of = i + (d - 1 + loads);
        if (of.from == Iteration::From::first && of.plus < 0) continue;
        // The iteration under way exists.
        At at{of, of.from == Iteration::From::first || of.plus > 0, {}};
        for (const Ahead& a : ahead_) {
          if (a.distance != d) continue;
          if (loads)
            emit(at.body, Issue{a.stmt});
          else
            emit(at.body, Deposit{a.stmt});
        }
        emit(out, std::move(at));
      }
  }

  void body(Block& out) {
    bool moved = false;
    const auto move = [&] {
      if (!std::exchange(moved, true)) move_on({Iteration::From::newest, 0}, out);
    };
    for (StmtId id : loop_.body) {
      if (x_.failed()) return;
      if (std::any_of(ahead_.begin(), ahead_.end(), [&](const Ahead& a) { return a.stmt == id; })) continue;
      if (x_.uses_tiles(id, tiles_)) move();
      At own;
      x_.statement(id, own.body);
      emit(out, std::move(own));
    }
    move();
  }

  Expander& x_;
  const ir::Loop& loop_;
  const std::vector<Ahead> ahead_;
  std::set<ValueId> tiles_;
};

// Copies that stand directly in the loop's body, and have slots to write to.
std::vector<Ahead> copies_ahead(const Expander& x, const ir::Loop& loop, const plan::LoopPlan& plan) {
  std::vector<Ahead> list;
  for (StmtId id : loop.body) {
    const KernelOp* op = x.op(id);
    const plan::OpPlan* how = op ? x.plan_of(*op) : nullptr;
    if (!how || how->engine != plan::Engine::register_copy) continue;
    for (const auto& [path, stage] : plan.stages)
      if (const int64_t distance = plan.num_stages - 1 - stage; path == op->path && distance > 0)
        list.push_back({id, distance});
  }
  return list;
}

}  // namespace

std::optional<Block> register_copy_loop(Expander& x, const ir::Loop& loop, StmtId id) {
  const plan::LoopPlan* plan = plan::find_loop(x.schedule(), x.path(id));
  std::vector<Ahead> ahead = plan ? copies_ahead(x, loop, *plan) : std::vector<Ahead>();
  if (ahead.empty()) return std::nullopt;
  RegisterCopyLoop expanded(x, loop, std::move(ahead));
  for (ValueId v : expanded.tiles()) x.add_ring(v, id, Transport::register_copy);
  Block out;
  emit(out, Pipelined{id, expanded.run()});
  return out;
}

}  // namespace tilegen::expand
