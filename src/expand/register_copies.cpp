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
//
// Where a product is all that uses the tiles, and all are in slots equally far ahead (register prefetch), its
// first operands are loaded behind the barrier at the end of the iteration before, and deposits and loads
// stand between its instructions, without conditions that would divide these: the last D iterations have
// bodies of their own,
//
//   load first operands of iteration 0
//   for i in 0..n - D:  product of iteration i: between its instructions deposit i + D - 1, load i + D;
//                       before its last ones load first operands of i + 1
//   product of n - D, between its instructions deposit n - 1; of n - D + 1; ..
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
  RegisterCopyLoop(Expander& x, const ir::Loop& loop, std::vector<Ahead> ahead, bool prefetch)
      : x_(x), loop_(loop), ahead_(std::move(ahead)) {
    for (const Ahead& a : ahead_) farthest_ = std::max(farthest_, a.distance);
    if (prefetch)
      for (StmtId id : loop.body)
        if (!runs_ahead(id)) product_ = id;
    for (const Ahead& a : ahead_)
      for (const analysis::OpAccess& access : x.op(a.stmt)->accesses)
        if (access.write) tiles_.insert(access.value);
  }

  const std::set<ValueId>& tiles() const { return tiles_; }

  Block run() {
    Block out;
    for (int64_t i = -farthest_; i < 0; ++i) move_on({Iteration::From::first, i}, out);
    if (product_.valid()) {
      load_operands({Iteration::From::first, 0}, true, out);
      around_product(out);
      return out;
    }
    Steady steady;
    body(steady.body);
    emit(out, std::move(steady));
    return out;
  }

 private:
  bool runs_ahead(StmtId id) const {
    return std::any_of(ahead_.begin(), ahead_.end(), [&](const Ahead& a) { return a.stmt == id; });
  }

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
      if (runs_ahead(id)) continue;
      if (x_.uses_tiles(id, tiles_)) move();
      At own;
      x_.statement(id, own.body);
      emit(out, std::move(own));
    }
    move();
  }

  // ---- register prefetch

  void load_operands(Iteration i, bool where_exists, Block& out) {
    At first{i, where_exists, {}};
    emit(first.body, LoadOperands{product_});
    emit(out, std::move(first));
  }

  // The product of iteration `i`, after which the loop has `left` more of them, at least.
  void multiply(Iteration i, int64_t left, Block& out) {
    Multiply m{product_, {}, {}};
    At deposits{i + (farthest_ - 1), false, {}}, loads{i + farthest_, false, {}};
    for (const Ahead& a : ahead_) {
      emit(deposits.body, Deposit{a.stmt});
      emit(loads.body, Issue{a.stmt});
    }
    if (left >= farthest_ - 1) emit(m.beside, std::move(deposits));
    if (left >= farthest_) emit(m.beside, std::move(loads));
    if (left > 0) load_operands(i + 1, false, m.before_last);
    At own{i, false, {}};
    emit(own.body, std::move(m));
    emit(out, std::move(own));
  }

  // Where the loop has as many iterations as run ahead, and where it has fewer.
  void around_product(Block& out) {
    Block fewer;
    for (int64_t n = 1; n < farthest_; ++n) {
      WhereIterations all{n, {}, std::move(fewer)};
      for (int64_t i = 0; i < n; ++i) multiply({Iteration::From::first, i}, n - 1 - i, all.then_body);
      fewer.clear();
      emit(fewer, std::move(all));
    }
    WhereIterations all{farthest_, {}, std::move(fewer)};
    Steady steady{farthest_, 1, {}};
    multiply({Iteration::From::newest, -farthest_}, farthest_, steady.body);
    emit(all.then_body, std::move(steady));
    for (int64_t left = farthest_; left-- > 0;)
      multiply({Iteration::From::end, -1 - left}, left, all.then_body);
    emit(out, std::move(all));
  }

  Expander& x_;
  const ir::Loop& loop_;
  const std::vector<Ahead> ahead_;
  std::set<ValueId> tiles_;
  int64_t farthest_ = 0;
  StmtId product_;  // with register prefetch
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
  RegisterCopyLoop expanded(x, loop, std::move(ahead), plan->register_prefetch.value_or(false));
  for (ValueId v : expanded.tiles()) x.add_ring(v, id, Transport::register_copy);
  Block out;
  emit(out, Pipelined{id, expanded.run()});
  return out;
}

}  // namespace tilegen::expand
