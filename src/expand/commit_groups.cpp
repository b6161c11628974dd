// Loops whose copies run ahead of what uses them.
//
// With D the largest distance that a copy runs ahead (stages - 1), the loop of n iterations becomes
//
//   for j in 0..D:  if j < n: copies of iteration j into slot j;  commit
//   for i in 0..n:  what uses no copied tile yet
//                   wait until at most d - 1 groups are unfinished       (d: the smallest distance)
//                   if i + D < n: copies of iteration i + D into slot (i + D) % slots;  commit
//                   the rest, on slot i % slots
//
// Where a product is all that uses the tiles, wait and barrier stand before its last instructions
// instead, and the first loads of the next iteration after them (register prefetch).
//
// A group is committed in every iteration, so that the wait counts right when fewer than D iterations are
// left. That all threads have read a slot before it is filled again is seen to by the barrier planted after
// the wait, which is also what makes everybody's copies visible to everybody.
#include <algorithm>

#include "expand/expander.h"

namespace tilegen::expand {

namespace {

struct Ahead {
  StmtId stmt;
  int64_t distance = 0;
  std::vector<ValueId> values;  // tiles written
};

// What the schedule lets run ahead: copies that stand directly in the loop's body and have slots to write to.
std::vector<Ahead> copies_ahead(const Expander& x, const ir::Loop& loop, const plan::LoopPlan* plan) {
  std::vector<Ahead> list;
  if (!plan || plan->num_stages < 2) return list;
  for (StmtId id : loop.body) {
    const KernelOp* op = x.op(id);
    if (!op) continue;
    for (const auto& [path, stage] : plan->stages) {
      Ahead a{id, plan->num_stages - 1 - stage, {}};
      if (path != op->path || a.distance < 1) continue;
      bool slots = true;
      for (const analysis::OpAccess& access : op->accesses) {
        if (!access.write) continue;
        slots = slots && access.value.valid() && x.value(access.value).slots > a.distance;
        a.values.push_back(access.value);
      }
      if (slots) list.push_back(std::move(a));
    }
  }
  return list;
}

class CommitGroupLoop {
 public:
  CommitGroupLoop(Expander& x, const ir::Loop& loop, const plan::LoopPlan& plan, std::vector<Ahead> ahead)
      : x_(x), loop_(loop), plan_(plan), ahead_(std::move(ahead)) {
    for (const Ahead& a : ahead_) {
      distances_.insert(a.distance);
      tiles_.insert(a.values.begin(), a.values.end());
    }
  }

  Block run() {
    Block out;
    await_stores(out);
    const int64_t farthest = *distances_.rbegin();
    for (int64_t j = 0; j < farthest; ++j) {
      for (int64_t d : distances_)
        if (const int64_t i = j - (farthest - d); i >= 0) issue(d, {Iteration::From::first, i}, out);
      emit(out, CommitGroup{});
    }
    const StmtId product = prefetched_product();
    if (product.valid()) {
      wait(out);
      load_operands(product, {Iteration::From::first, 0}, out);
    }
    Steady steady;
    product.valid() ? around_product(product, steady.body) : in_program_order(steady.body);
    emit(out, std::move(steady));
    return out;
  }

 private:
  bool runs_ahead(StmtId id) const {
    return std::any_of(ahead_.begin(), ahead_.end(), [&](const Ahead& a) { return a.stmt == id; });
  }

  // Stores of iterations before, and of the loop when it ran before: the engine has read what is filled now.
  void await_stores(Block& out) const {
    if (!x_.stores_from(tiles_)) return;
    emit(out, AwaitStores{});
    emit(out, Barrier{});
  }

  // The copies of iteration `i` of all that run `distance` ahead.
  void issue(int64_t distance, Iteration i, Block& out) {
    At copies{i, true, {}};
    for (const Ahead& a : ahead_)
      if (a.distance == distance) emit(copies.body, Issue{a.stmt});
    emit(out, std::move(copies));
  }
  void issue_all(Block& out) {
    await_stores(out);
    for (int64_t d : distances_) issue(d, {Iteration::From::newest, d}, out);
    emit(out, CommitGroup{});
  }
  void wait(Block& out) { emit(out, WaitGroup{*distances_.begin() - 1}); }

  void in_program_order(Block& body) {
    bool issued = false;
    const auto issue_next = [&] {
      if (issued) return;
      issued = true;
      wait(body);
      issue_all(body);
    };
    for (StmtId id : loop_.body) {
      if (x_.failed()) return;
      if (runs_ahead(id)) continue;
      if (x_.uses_tiles(id, tiles_)) issue_next();
      At own;
      x_.statement(id, own.body);
      emit(body, std::move(own));
    }
    issue_next();
  }

  // The product whose registers are loaded ahead; none where the schedule says so of no product.
  StmtId prefetched_product() const {
    if (!plan_.register_prefetch.value_or(false)) return StmtId();
    const auto product =
        std::find_if(loop_.body.begin(), loop_.body.end(), [&](StmtId id) { return !runs_ahead(id); });
    return product == loop_.body.end() ? StmtId() : *product;
  }

  // The first k step of iteration i + 1 is loaded before the last instructions of iteration i, so that
  // they hide the wait, the barrier and the loads.
  void around_product(StmtId product, Block& body) {
    issue_all(body);
    At own;
    Multiply multiply{product, {}, {}};
    wait(multiply.before_last);
    load_operands(product, {Iteration::From::newest, 1}, multiply.before_last);
    emit(own.body, std::move(multiply));
    emit(body, std::move(own));
  }
  void load_operands(StmtId product, Iteration i, Block& out) {
    At first{i, true, {}};
    emit(first.body, LoadOperands{product});
    emit(out, std::move(first));
  }

  Expander& x_;
  const ir::Loop& loop_;
  const plan::LoopPlan& plan_;
  const std::vector<Ahead> ahead_;
  std::set<int64_t> distances_;
  std::set<ValueId> tiles_;
};

}  // namespace

std::optional<Block> commit_group_loop(Expander& x, const ir::Loop& loop, StmtId id) {
  const plan::LoopPlan* plan = plan::find_loop(x.schedule(), x.path(id));
  std::vector<Ahead> ahead = copies_ahead(x, loop, plan);
  if (ahead.empty()) return std::nullopt;
  for (const Ahead& a : ahead)
    for (ValueId v : a.values) x.add_ring(v, id, Transport::async_copy);
  Block out;
  emit(out, Pipelined{id, CommitGroupLoop(x, loop, *plan, std::move(ahead)).run()});
  return out;
}

bool Expander::stores_from(const std::set<ValueId>& tiles) const {
  return std::any_of(bulk_stores_.begin(), bulk_stores_.end(), [&](const KernelOp* store) {
    const ValueId tile = store->accesses.front().value;
    return !in_registers(tile) && tiles.count(tile) > 0;
  });
}

void Expander::release(Release slot, Block& out) const {
  if (stores_from(out_.pipelines[static_cast<size_t>(slot.pipeline)].values)) emit(out, AwaitStores{});
  emit(out, std::move(slot));
}

// The engine reads a tile that asynchronous copies of threads fill, not those that a loop runs ahead and
// awaits: barriers, which wait for copies that threads read, see nothing of it.
bool Expander::stores_copied_tile(const KernelOp& store) const {
  if (!stores_in_bulk(store)) return false;
  const ValueId tile = store.accesses.front().value;
  if (in_registers(tile)) return false;
  const auto awaited = [&](StmtId copy) {
    return std::any_of(out_.pipelines.begin(), out_.pipelines.end(), [&](const Pipeline& line) {
      return line.transport == Transport::async_copy && line.values.count(tile) &&
             line.loop == tree_.loop_of(copy);
    });
  };
  return std::any_of(ops().ops.begin(), ops().ops.end(), [&](const KernelOp& o) {
    const plan::OpPlan* plan = plan_of(o);
    return plan && plan->engine == plan::Engine::async_copy && !awaited(o.stmt) &&
           std::any_of(o.accesses.begin(), o.accesses.end(),
                       [&](const analysis::OpAccess& a) { return a.write && a.value == tile; });
  });
}

}  // namespace tilegen::expand
