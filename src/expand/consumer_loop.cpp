// A consumer's loop over tiles that come through pipelines.
//
// The ops of the body are issued in the order that the schedule gives. Those that lag work on an iteration
// before the newest, so that products run beside what threads do for another iteration. With L the most that
// one lags, as many iterations are peeled, and what lags of the last ones stands after the loop:
//
//   iterations 0 .. L - 1, each with what lags as far as there are iterations for it
//   for t in L..n:  wait until the slot is full; a product is issued and goes on; ...
//                   await it where a thread first needs its sums, or its registers
//   what lags, of the last L iterations
//
// A loop of fewer iterations than are peeled runs them in program order.
//
// Values that iterations have in other registers, in turn, make the loop's body as many iterations long as
// there are slots: which registers are meant is then told by the place in the body. Iterations that are left
// over stand after the loop, with what lags, once for each number of them.
//
// Products stay in flight, also over the end of an iteration, until something needs them to be finished: an
// op of the threads that touches their registers, or, once the next product is on its way, the slots they
// read, which then go back to the producer. The products in flight at the end of an iteration are those at
// its begin; where they are not, all are awaited.
//
// Where warpgroups take turns, each iteration's products stand between the wait for the turn and its passing
// on, the peeled iteration's too. What lags of the last iteration is issued out of turn: nothing is in front
// of it that could wait.
#include <algorithm>
#include <numeric>

#include "expand/alternating_lists.h"
#include "expand/consumer_units.h"
#include "expand/written_tiles.h"

namespace tilegen::expand {

namespace {

constexpr Iteration kFirst{Iteration::From::first, 0}, kNewest{}, kEnd{Iteration::From::end, 0};

class ConsumerLoop {
 public:
  ConsumerLoop(Expander& x, const ir::Loop& loop, StmtId id, const std::vector<int>& around,
               bool in_order = false)
      : x_(x),
        loop_(loop),
        id_(id),
        around_(around),
        found_(x, loop, id, in_order),
        units_(found_.units),
        tiles_(x, units_),
        overwrites_(x.overwrites()),
        cleared_by_(x.elided_fill()),
        most_lag_(found_.most_lag),
        peeled_(most_lag_ + (overwrites_ ? 1 : 0)) {
    for (const Pipeline& line : x.pipelines())
      if (line.loop == id && line.transport == Transport::registers) step_ = std::lcm(step_, line.slots);
    settle();
  }

  Block run() {
    Block out;
    if (x_.failed()) return out;
    for (int line : around_) emit(out, Wait{line, {}});
    tiles_.enter(out);
    x_.set_overwrite(false);
    if (found_.alternating) {
      alternating(out);
    } else if (peeled_ > 0) {
      peeled(out);
    } else {
      steady(0, true, out);
    }
    tiles_.leave(out);
    meet_without_products(out);
    for (int line : around_) release_around(line, out);
    return out;
  }

 private:
  void alternating(Block& out) {
    if (overwrites_) emit(out, Run{cleared_by_});
    PerWarpgroup lists{alternating_lists(x_, id_, units_), {}};
    ConsumerLoop(x_, loop_, id_, around_, true).steady(0, true, lists.body);
    emit(out, where_some(std::move(lists)));
    // The rows' places, and tiles for products, are used again.
    if (x_.persistent() || !x_.tree().around(id_).empty()) emit(out, Barrier{Scope::role});
  }

  using Unit = ConsumerUnit;
  // A product under way, issued `age` iterations of the loop ago.
  struct Flight {
    size_t unit = 0;
    int64_t age = 0;
    bool operator==(const Flight&) const = default;
  };
  using Flights = std::vector<Flight>;  // oldest first

  struct Pass {
    Iteration newest;
    int64_t from_lag = 0, to_lag = INT64_MAX;
    // flights of older iterations may not exist: iteration 0 is among those expanded
    bool first_may_be = false;
    Block* out = nullptr;      // none: only what is in flight at its end
    bool none_may_be = false;  // the loop may have no iteration
    bool ordered = false;      // products are issued in the warpgroup's turn
    bool peeked = false;       // its waits were asked for ahead
    bool peeks = false;        // those of the next one are
  };

  // What the next iteration begins with waiting for is asked ahead: the answer comes beside the last work
  // of the threads. Only that: the first product covers later waits, which keep the work after it from being
  // moved before it.
  void peek(const Pass& it) {
    for (int line : units_.front().first) emit(*it.out, Peek{line, it.newest + 1});
  }

  // Tiles that the unit's threads have read, and products in flight may be reading. `met`: after that they
  // have met.
  void release_read(const Pass& it, const Unit& u, Flights& flights, Iteration at, bool met) {
    if (u.last.empty()) return;
    size_t finished = 0;
    for (size_t f = 0; f < flights.size(); ++f)
      for (int line : u.last)
        if (x_.touches(units_[flights[f].unit].stmt, x_.pipelines()[static_cast<size_t>(line)].values))
          finished = f + 1;
    if (finished > 0) finish(it, flights, finished, {});
    if (!it.out) return;
    Block& out = *it.out;
    if (!met) {
      if (std::any_of(u.last.begin(), u.last.end(), [&](int line) { return reads_slot(u, line); }))
        emit(out, Fence{});
      emit(out, Barrier{Scope::warpgroup});
    }
    for (int line : u.last) x_.release({line, at}, out);
  }

  // By threads: a fence puts it before the copy engine, another proxy, fills the slot again.
  bool reads_slot(const Unit& u, int line) const {
    return x_.reads_by_threads(u.stmt, x_.pipelines()[static_cast<size_t>(line)].values);
  }
  // A product is the last to read a slot that the unit's threads have read: it keeps the warps together.
  void fence_reads(const Unit& u, Block& out) const {
    for (const Unit& other : units_)
      for (int line : other.last)
        if (other.product && reads_slot(u, line)) return emit(out, Fence{});
  }
  // Of a pipeline around the loop.
  void release_around(int line, Block& out) const {
    if (std::any_of(units_.begin(), units_.end(), [&](const Unit& u) { return reads_slot(u, line); })) {
      emit(out, Fence{});
      emit(out, Barrier{Scope::warpgroup});
    }
    x_.release({line, {}}, out);
  }

  // A product keeps the warps of a warpgroup together. Where a loop has none the thread that gives a slot
  // back could be a round of the slots ahead of warps that have not seen it full, and would never.
  void meet_without_products(Block& out) {
    if (around_.empty() || !x_.persistent()) return;
    WhereIterations none;
    emit(none.else_body, Barrier{Scope::warpgroup});
    emit(out, std::move(none));
  }

  // Both mean the same slot of a value.
  auto same_slot(const Unit& u, const Flight& f) const {
    return [this, apart = lag_of(f) - u.lag](ValueId v) { return apart % x_.register_slots(v) == 0; };
  }
  bool changes_operand(const Unit& u, const Flights& flights) const {
    return !u.product && std::any_of(flights.begin(), flights.end(), [&](const Flight& f) {
      const std::set<ValueId> read = operands(units_[f.unit]);
      const auto same = same_slot(u, f);
      return std::any_of(u.writes.begin(), u.writes.end(),
                         [&](ValueId v) { return read.count(v) > 0 && same(v); });
    });
  }

  // The `finished` oldest products are awaited; their slots go back.
  void finish(const Pass& it, Flights& flights, size_t finished, const std::set<ValueId>& also,
              bool after_work = false, int64_t also_lag = 0) {
    const auto end = flights.begin() + static_cast<ptrdiff_t>(finished);
    const Flights done(flights.begin(), end);
    flights.erase(flights.begin(), end);
    if (!it.out) return;
    // By value and how many iterations before the newest, where it has slots.
    std::set<std::pair<ValueId, int64_t>> values;
    const auto place = [&](ValueId v, int64_t lag) {
      const int64_t slots = x_.register_slots(v);
      return std::pair(v, slots > 1 ? (lag % slots + slots) % slots : 0);
    };
    for (ValueId v : also) values.insert(place(v, also_lag));
    for (const Flight& f : done)
      for (ValueId v : units_[f.unit].writes) values.insert(place(v, lag_of(f)));
    for (const Flight& f : flights)
      for (ValueId v : units_[f.unit].writes) values.erase(place(v, lag_of(f)));
    Await await;
    for (const Flight& f : done) await.finished.push_back({units_[f.unit].stmt, it.newest + -lag_of(f)});
    await.pending = static_cast<int64_t>(flights.size());
    for (const auto& [v, lag] : values) {
      if (!x_.in_registers(v)) continue;
      await.values.push_back({v});
      if (x_.register_slots(v) > 1) await.values.back().at = it.newest + -lag;
    }
    await.after_work = after_work || !also.empty();
    emit(*it.out, std::move(await));
    for (const Flight& f : done) {
      const Unit& u = units_[f.unit];
      const bool may_miss = it.none_may_be || (it.first_may_be && f.age > 0);
      for (int line : u.last) x_.release({line, it.newest + -lag_of(f), may_miss}, *it.out);
    }
  }
  // Iterations before the newest.
  int64_t lag_of(const Flight& f) const { return units_[f.unit].lag + f.age; }

  // Products of the iteration before, which read the other slot of what the unit has written.
  void finish_other_slot(const Pass& it, const Unit& u, Flights& flights) {
    size_t finished = 0;
    for (size_t f = 0; f < flights.size(); ++f)
      if (meet(u.slotted, units_[flights[f].unit].reads)) finished = f + 1;
    if (finished > 0) finish(it, flights, finished, {}, true);
  }

  // A turn begins before a product, when its operands are there; it ends when the last is on its way.
  struct Turn {
    bool begins = false, ends = false;
  };

  void issue(const Pass& it, size_t index, Flights& flights, Turn turn) {
    const Unit& u = units_[index];
    size_t finished = 0;
    for (size_t f = 0; f < flights.size(); ++f)
      if (disturbs(u, units_[flights[f].unit], same_slot(u, flights[f]))) finished = f + 1;
    // What the threads compute from goes through the wait: nothing that overwrites an operand may move in
    // front of it.
    // Products inside of the unit are told apart from those in flight by nothing.
    if (u.holds_products) finished = flights.size();
    if (finished > 0)
      finish(it, flights, finished, changes_operand(u, flights) ? u.reads : std::set<ValueId>(), false,
             u.lag);
    if (it.out) {
      Block& out = *it.out;
      const Iteration at = it.newest + -u.lag;
      for (int line : u.first) emit(out, Wait{line, at, it.peeked && index == 0});
      if (turn.begins) emit(out, Order{Order::Step::wait});
      tiles_.before(index, out);
      At own{at, false, {}};
      if (overwrites_ && at == kFirst) x_.set_overwrite(true, cleared_by_);
      if (u.cleared_by.valid()) x_.set_overwrite(true, u.cleared_by);
      if (u.product)
        emit(own.body, Issue{u.stmt, x_.overwrites()});
      else
        x_.statement(u.stmt, own.body);
      x_.set_overwrite(false);
      emit(out, std::move(own));
      finish_other_slot(it, u, flights);
      const bool met = tiles_.after(index, out);
      if (!u.product) {
        if (!met) fence_reads(u, out);
        release_read(it, u, flights, at, met);
      }
      if (turn.ends) emit(out, Order{Order::Step::pass});
    } else {
      finish_other_slot(it, u, flights);
      if (!u.product) release_read(it, u, flights, it.newest, true);
    }
    if (!u.product) return;
    const auto held = std::find_if(flights.rbegin(), flights.rend(),
                                   [&](const Flight& f) { return !units_[f.unit].last.empty(); });
    const size_t release = static_cast<size_t>(flights.rend() - held);
    flights.push_back({index, 0});
    if (u.waits) return finish(it, flights, flights.size(), {});
    if (release > 0) finish(it, flights, release, {});
  }

  // `flights` at its begin are those of the iteration before, and become those at its end.
  void iteration(const Pass& it, Flights& flights) {
    for (Flight& f : flights) ++f.age;
    std::vector<size_t> issued, products;
    for (size_t u = 0; u < units_.size(); ++u)
      if (units_[u].lag >= it.from_lag && units_[u].lag <= it.to_lag) issued.push_back(u);
    for (size_t u : issued)
      if (it.ordered && units_[u].product) products.push_back(u);
    for (size_t u : issued) {
      if (x_.failed()) return;
      if (it.peeks && it.out && u == issued.back()) peek(it);
      issue(it, u, flights,
            {!products.empty() && u == products.front(), !products.empty() && u == products.back()});
    }
  }

  // What is in flight between two iterations of the loop: what an iteration ends with that begins with it.
  void settle() {
    for (int64_t j = 0; j < peeled_; ++j) iteration({kNewest, 0, std::min(j, most_lag_)}, steady_);
    if (peeled_ == 0) iteration({}, steady_);
    Flights again = steady_;
    iteration({}, again);
    const plan::LoopPlan* plan = plan::find_loop(x_.schedule(), x_.path(id_));
    drains_ = steady_ != again || step_ > 1 || !plan || plan->drained.value_or(true);
    if (drains_) steady_.clear();
    peeks_ = !drains_ && plan->peek.value_or(false);
  }

  void pass(const Pass& it, Flights& flights) {
    iteration(it, flights);
    if (drains_ && !flights.empty()) finish(it, flights, flights.size(), {});
  }
  void whole_pass(Iteration newest, bool first_may_be, Block& out, Flights& flights) {
    pass({newest, 0, INT64_MAX, first_may_be, &out, false, found_.ordered, peeks_, peeks_}, flights);
  }

  // Iterations `first` .. and what lags of the last ones. `none_may_be`: there may be none at all.
  void steady(int64_t first, bool none_may_be, Block& out) {
    Steady steady{first, step_, {}};
    Flights flights = steady_;
    for (int64_t i = 0; i < step_; ++i) whole_pass(kNewest + i, none_may_be && i == 0, steady.body, flights);
    emit(out, std::move(steady));
    if (step_ == 1) return last_passes(none_may_be, out);
    Remainder rest{first, {}};
    for (int64_t left = 0; left < step_; ++left) {
      Block& own = rest.cases.emplace_back();
      flights = steady_;
      for (int64_t i = 0; i < left; ++i) whole_pass(kEnd + (i - left), false, own, flights);
      last_passes(none_may_be, own);
    }
    first > 0 ? emit(out, std::move(rest)) : emit(out, where_some(std::move(rest)));
  }

  // Awaits everything in flight, too.
  void last_passes(bool none_may_be, Block& out) {
    Flights flights = steady_;
    for (int64_t d = 1; d <= most_lag_; ++d) pass({kEnd + (d - 1), d, INT64_MAX, false, &out}, flights);
    if (!flights.empty())
      finish({kEnd + (most_lag_ - 1), 0, INT64_MAX, false, &out, none_may_be}, flights, flights.size(), {});
  }

  // The first iterations stand before the loop. Accumulators that are zero before it are overwritten by
  // the first product, and cleared only where there is none.
  void peeled(Block& out) {
    WhereIterations some{peeled_, {}, {}};
    Flights flights;
    for (int64_t j = 0; j < peeled_; ++j)
      pass({kFirst + j, 0, std::min(j, most_lag_), false, &some.then_body, false, found_.ordered,
            j > 0 && peeks_, peeks_},
           flights);
    steady(peeled_, false, some.then_body);
    if (peeled_ > 1) {
      ConsumerLoop(x_, loop_, id_, around_, true).few(0, peeled_ - 1, some.else_body);
    } else if (overwrites_) {
      emit(some.else_body, Run{cleared_by_});
    }
    emit(out, std::move(some));
  }

  // A loop of `most` iterations or fewer, from iteration `j` on, each by itself.
  void few(int64_t j, int64_t most, Block& out) {
    if (j == most) return;
    WhereIterations any{j + 1, {}, {}};
    Flights flights;
    const Pass it{kFirst + j, 0, INT64_MAX, false, &any.then_body};
    iteration(it, flights);
    if (!flights.empty()) finish(it, flights, flights.size(), {});
    few(j + 1, most, any.then_body);
    if (j == 0 && overwrites_) emit(any.else_body, Run{cleared_by_});
    emit(out, std::move(any));
  }

  Expander& x_;
  const ir::Loop& loop_;
  const StmtId id_;
  const std::vector<int>& around_;  // pipelines
  const ConsumerUnits found_;
  const std::vector<Unit>& units_;
  const WrittenTiles tiles_;
  const bool overwrites_;  // the sums are zero before the loop
  const StmtId cleared_by_;
  const int64_t most_lag_, peeled_;  // iterations
  int64_t step_ = 1;                 // iterations of a body: registers in turn
  bool peeks_ = false;               // the waits of an iteration are asked for in the one before
  Flights steady_;                   // in flight between two iterations
  bool drains_ = false;              // nothing can be: each iteration awaits what it issued
};

}  // namespace

Block consumer_loop(Expander& x, const ir::Loop& loop, StmtId id, const std::vector<int>& around) {
  const plan::LoopPlan* plan = plan::find_loop(x.schedule(), x.path(id));
  const bool by_turns = plan && plan->alternating.value_or(false);
  // What is written outside of the loop has the slot of an iteration around it.
  for (const analysis::ThreadWrittenOperand& w : x.written())
    if (x.has_slots(w.value) && written_inside(x.program(), x.ops(), w, loop))
      x.add_ring(w.value, id, Transport::threads, by_turns);
  for (ValueId v : x.ops().values.ids())
    if (x.register_slots(v) > 1 && x.used_in(id, v)) x.add_ring(v, id, Transport::registers);
  Block out;
  emit(out, Pipelined{id, ConsumerLoop(x, loop, id, around).run()});
  return out;
}

}  // namespace tilegen::expand
