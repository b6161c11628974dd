// A consumer's loop over tiles that come through channels.
//
// The ops of the body are issued in the order that the schedule gives. Those that lag work on the iteration
// before the newest, so that their products run beside what threads do for the newest; the first iteration is
// then peeled, and the lagging ops of the last one stand behind the loop:
//
//   iteration 0, without what lags
//   for t in 1..n:  wait until the slot is full; a product is issued and goes on; ...
//                   wait until it is finished where a thread first needs its sums, or its registers
//   what lags, of iteration n - 1
//
// Products stay in flight, also over the end of an iteration, until something needs them to be finished: an
// op of the threads that touches their registers, or, once the next product is on its way, the slots they
// read, which then go back to the producer. The products in flight at the end of an iteration are those at
// its begin; where they are not, all are waited for.
//
// Where warpgroups take turns, each iteration's products stand between the wait for the turn and its passing
// on, the peeled iteration's too. What lags of the last iteration is issued out of turn: nothing is in front
// of it that could wait.
#include <algorithm>
#include <iterator>

#include "lower/channel_units.h"
#include "lower/written_tiles.h"

namespace tilegen::lower {

class ChannelLoop {
 public:
  ChannelLoop(KernelLowering& k, const ir::Loop& loop, const std::string& origin, thread::Block& out)
      : k_(k),
        e_(k.out_.exprs),
        loop_(loop),
        origin_(origin),
        bounds_(k.loop_bounds(loop, out, origin)),
        begin_(bounds_.begin),
        extent_(bounds_.extent),
        before_(k.executions_),
        filled_(k.fillings_before(loop, extent_)),
        saved_slots_(k.slots_),
        inside_slots_(k.slots_),
        overwrites_(k.products_overwrite_) {
    ChannelUnits found(k, loop, origin);
    units_ = std::move(found.units);
    once_ = std::move(found.once);
    lagging_ = found.lagging;
    turns_ = found.turns;
    std::vector<WrittenTiles::Issued> order;
    for (const Unit& u : units_) order.push_back({u.stmt, u.lag});
    tiles_.emplace(k, order, origin);
    for (const Channel* c : once_)
      for (int v : c->values)
        if (c->plan->slots > 1) inside_slots_[v] = k.channel_slot(*c, k.uses_before(*c));
    settle();
  }

  void run(thread::Block& out) {
    if (k_.failed()) return;
    for (const Channel* c : once_) wait_full(*c, k_.uses_before(*c), out);
    tiles_->enter(out);
    k_.slots_ = inside_slots_;
    int64_t trips = -1;
    if (e_.is_const_int(extent_, &trips) && trips <= 0) {
      if (overwrites_) k_.statement(k_.cleared_by_, out);
    } else if (lagging_ || overwrites_) {
      peeled(out);
    } else {
      whole(out);
    }
    tiles_->leave(out);
    meet_without_products(out);
    for (const Channel* c : once_) {
      give_back(*c, k_.uses_before(*c), out);
      k_.count_use(*c, out);
    }
    k_.slots_ = saved_slots_;
    k_.count_fillings(loop_, extent_, out);
  }

 private:
  using Unit = ChannelUnit;
  // A product under way, issued `age` iterations of the loop ago.
  struct Flight {
    size_t unit = 0;
    int64_t age = 0;
    bool operator==(const Flight&) const = default;
  };
  using Flights = std::vector<Flight>;  // oldest first

  template <class Node>
  void emit(Node node, thread::Block& to) {
    to.push_back(k_.out_.add(std::move(node), origin_));
  }

  bool in_registers(int value) const { return k_.in_registers(value); }

  struct Iteration {
    ExprId newest;
    int64_t from_lag = 0, to_lag = 1;
    // flights of older iterations may not exist: iteration 0 is among those lowered
    bool first_may_be = false;
    thread::Block* out = nullptr;  // none: only what is in flight at its end
    ExprId gives_back;             // condition of everything given back; invalid: always
    bool turn = false;             // products are issued in the warpgroup's turn
    bool asked = false;            // its waits were asked for ahead
    bool asks = false;             // those of the next one are
  };

  // ---- numbers of uses

  ExprId count(ExprId iteration) { return k_.simplified(e_.add(filled_, iteration)); }
  // The iteration that a unit works on when the newest one is `t`.
  ExprId iteration_of(const Unit& u, ExprId t, int64_t age = 0) {
    return u.lag + age == 0 ? t : e_.sub(t, e_.const_int(u.lag + age));
  }
  void wait_full(const Channel& c, ExprId number, thread::Block& to, bool tested = false) {
    thread::TransactionWait wait{c.full, k_.channel_slot(c, number), k_.channel_parity(c, number), ExprId()};
    if (tested) {
      const ExprId answer = e_.load(answers_, ir::DType::i32, std::vector<ExprId>{answer_of(c)});
      wait.unless = e_.binary(ir::ExprOp::ne, answer, e_.const_int(0, ir::DType::i32));
    }
    emit(std::move(wait), to);
  }

  ExprId answer_of(const Channel& c) const { return e_.const_int(&c - k_.channels_.data()); }
  // What the iteration behind `it` begins with waiting for is asked ahead: the answer comes beside the last
  // work of the threads.
  // Only that: the first product covers later waits, which keep the work behind it from being moved in front
  //   of it.
  void ask_ahead(const Iteration& it) {
    const ExprId next = count(e_.add(it.newest, e_.const_int(1)));
    for (const Channel* c : units_.front().first)
      emit(thread::TransactionTest{c->full, k_.channel_slot(*c, next), k_.channel_parity(*c, next), answers_,
                                   answer_of(*c)},
           *it.out);
  }
  // One thread of each warpgroup gives the slot of use `number` back; to every block that fills it, where
  // blocks share tiles.
  void give_back(const Channel& c, ExprId number, thread::Block& to, ExprId condition = ExprId()) {
    thread::Block arrive;
    thread::TransactionArrive freed{c.empty, k_.channel_slot(c, number), 0, {}};
    const int64_t blocks = c.shared ? k_.cluster_blocks() : 1;
    if (blocks > 1)
      freed.block = k_.simplified(e_.floormod(e_.var(k_.out_.thread_var), e_.const_int(kWarpgroup)));
    emit(std::move(freed), arrive);
    to.push_back(k_.only_first_of_warpgroup(std::move(arrive), origin_, condition, blocks));
  }

  // Tiles that the unit's threads have read. `met`: behind that they have met.
  void give_back_read(const Unit& u, ExprId number, bool met, thread::Block& to) {
    if (u.last.empty()) return;
    if (!met) k_.warpgroup_barrier(to, origin_);
    for (const Channel* c : u.last) give_back(*c, number, to);
  }

  // A product keeps the warps of a warpgroup together. Where a loop has none the thread that gives a slot
  // back could be a round of the slots ahead of warps that have not seen it full, and would never.
  void meet_without_products(thread::Block& out) {
    const ExprId none = k_.simplified(e_.le(extent_, e_.const_int(0)));
    if (once_.empty() || !k_.tile_var_.valid() || arith::prove(k_.ctx_, any())) return;
    thread::Block meet;
    k_.warpgroup_barrier(meet, origin_);
    emit(thread::Branch{none, std::move(meet), {}}, out);
  }

  // ---- one iteration of the loop

  // Whether a unit of the threads must not run beside the product: they share sums, or the unit changes its
  // operand.
  bool disturbs(const Unit& u, const Unit& product) const {
    auto meet = [](const std::set<int>& a, const std::set<int>& b) {
      return std::any_of(a.begin(), a.end(), [&](int v) { return b.count(v) > 0; });
    };
    if (u.product && u.writes == product.writes) return meet(u.writes, operands(product));
    return meet(u.writes, product.reads) || meet(u.reads, product.writes) || meet(u.writes, product.writes);
  }
  static std::set<int> operands(const Unit& product) {
    std::set<int> only;
    std::set_difference(product.reads.begin(), product.reads.end(), product.writes.begin(),
                        product.writes.end(), std::inserter(only, only.end()));
    return only;
  }

  bool changes_operand(const Unit& u, const Flights& flights) const {
    return !u.product && std::any_of(flights.begin(), flights.end(), [&](const Flight& f) {
             const std::set<int> read = operands(units_[f.unit]);
             return std::any_of(u.writes.begin(), u.writes.end(), [&](int v) { return read.count(v) > 0; });
           });
  }


  // The `finished` oldest products are waited for; their slots go back.
  void finish(const Iteration& it, Flights& flights, size_t finished, const std::set<int>& also,
              bool behind_work = false) {
    const Flights done(flights.begin(), flights.begin() + static_cast<ptrdiff_t>(finished));
    flights.erase(flights.begin(), flights.begin() + static_cast<ptrdiff_t>(finished));
    if (!it.out) return;
    std::set<int> values = also;
    for (const Flight& f : done) values.insert(units_[f.unit].writes.begin(), units_[f.unit].writes.end());
    for (const Flight& f : flights)
      for (int v : units_[f.unit].writes) values.erase(v);
    thread::WarpgroupWait wait{static_cast<int64_t>(flights.size()), {}};
    for (int v : values)
      if (in_registers(v)) wait.registers.push_back(k_.values_[static_cast<size_t>(v)]);
    wait.behind_work = behind_work || !also.empty();
    emit(std::move(wait), *it.out);
    for (const Flight& f : done) {
      const Unit& u = units_[f.unit];
      for (const Channel* c : u.last) {
        ExprId condition = it.gives_back;
        if (it.first_may_be && f.age > 0) {
          const ExprId newest = it.newest;
          if (!arith::prove(k_.ctx_, e_.lt(e_.const_int(0), newest)))
            condition = e_.unary(ir::ExprOp::logical_not, e_.le(newest, e_.const_int(0)));
        }
        give_back(*c, count(iteration_of(u, it.newest, f.age)), *it.out, condition);
      }
    }
  }

  // Products of the iteration before, which read the other slot of what the unit has written.
  void finish_other_turn(const Iteration& it, const Unit& u, Flights& flights) {
    size_t finished = 0;
    for (size_t f = 0; f < flights.size(); ++f)
      for (int v : u.turns)
        if (units_[flights[f].unit].reads.count(v) > 0) finished = f + 1;
    if (finished > 0) finish(it, flights, finished, {}, true);
  }

  // A turn begins in front of a product, when its operands are there; it ends when the last is on its way.
  struct Turn {
    bool begins = false, ends = false;
  };

  void issue(const Iteration& it, size_t index, Flights& flights, Turn turn) {
    const Unit& u = units_[index];
    size_t finished = 0;
    for (size_t f = 0; f < flights.size(); ++f)
      if (disturbs(u, units_[flights[f].unit])) finished = f + 1;
    // What the threads compute from goes through the wait: nothing that overwrites an operand may move in
    // front of it.
    if (finished > 0) finish(it, flights, finished, changes_operand(u, flights) ? u.reads : std::set<int>());
    if (it.out) {
      const ExprId iteration = iteration_of(u, it.newest);
      k_.vars_[loop_.vars[0]] = k_.simplified(e_.add(begin_, iteration));
      k_.executions_ = count(iteration);
      for (const Channel& c : k_.channels_)
        if (c.plan->loop == origin_)
          for (int v : c.values) k_.slots_[v] = k_.channel_slot(c, k_.executions_);
      for (const schedule::WrittenOperand& w : k_.written_)
        if (k_.in_turn(w.value))
          k_.slots_[w.value] = k_.simplified(e_.floormod(k_.executions_, e_.const_int(2)));
      for (const Channel* c : u.first) wait_full(*c, k_.executions_, *it.out, it.asked && index == 0);
      if (turn.begins) k_.wait_for_turn(*it.out, origin_);
      const ExprId executions = k_.executions_;
      tiles_->before(index, *it.out);
      k_.product_in_flight_ = u.product;
      k_.statement(u.stmt, *it.out);
      k_.product_in_flight_ = false;
      finish_other_turn(it, u, flights);
      const bool met = tiles_->behind(index, *it.out);
      if (!u.product) give_back_read(u, executions, met, *it.out);
      k_.executions_ = executions;
      if (turn.ends) k_.pass_turn(*it.out, origin_);
    } else {
      finish_other_turn(it, u, flights);
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
  void iteration(const Iteration& it, Flights& flights) {
    for (Flight& f : flights) ++f.age;
    std::vector<size_t> issued, products;
    for (size_t u = 0; u < units_.size(); ++u)
      if (units_[u].lag >= it.from_lag && units_[u].lag <= it.to_lag) issued.push_back(u);
    for (size_t u : issued)
      if (it.turn && units_[u].product) products.push_back(u);
    for (size_t u : issued) {
      if (k_.failed()) return;
      if (it.asks && it.out && u == issued.back()) ask_ahead(it);
      issue(it, u, flights,
            {!products.empty() && u == products.front(), !products.empty() && u == products.back()});
    }
    k_.executions_ = before_;
    k_.slots_ = inside_slots_;
  }

  // Threads work on the sums, or on an operand in registers, within the loop: ptxas would not keep them in
  // place over its end.
  bool touched_by_threads(const Flights& flights) const {
    const auto of_threads = [&](int v, bool written) {
      return in_registers(v) && std::any_of(units_.begin(), units_.end(), [&](const Unit& u) {
               return !u.product && (u.writes.count(v) > 0 || (written && u.reads.count(v) > 0));
             });
    };
    return std::any_of(flights.begin(), flights.end(), [&](const Flight& f) {
      const Unit& product = units_[f.unit];
      return std::any_of(product.reads.begin(), product.reads.end(),
                         [&](int v) { return of_threads(v, false); }) ||
             std::any_of(product.writes.begin(), product.writes.end(),
                         [&](int v) { return of_threads(v, true); });
    });
  }

  // What is in flight between two iterations of the loop: what an iteration ends with that begins with it.
  void settle() {
    if (lagging_ || overwrites_) {
      iteration({ExprId(), 0, 0}, steady_);
    } else {
      iteration({}, steady_);
    }
    Flights again = steady_;
    iteration({}, again);
    drains_ = steady_ != again || (!lagging_ && touched_by_threads(steady_));
    if (drains_) steady_.clear();
    // Behind a product there is nothing to gain: the matrix units have work.
    asks_ =
        lagging_ && !drains_ && units_.front().product && units_.front().lag == 0 && !units_.back().product;
    if (asks_)
      answers_ = k_.add_registers("answers", ir::DType::i32, static_cast<int64_t>(k_.channels_.size()));
  }

  // ---- the loop

  template <class Body>
  void in_range(VarId var, ExprId extent, Body&& body) {
    auto mark = k_.ctx_.mark();
    k_.bind_counter(var, extent);
    k_.ctx_.assume(e_.lt(e_.var(var), extent));
    body();
    k_.ctx_.rollback(mark);
  }

  // Iterations `first` .. extent.
  void loop(int64_t first, bool first_may_be, thread::Block& out) {
    const ExprId trips = first == 0 ? extent_ : k_.simplified(e_.sub(extent_, e_.const_int(first)));
    const VarId var = k_.out_.add_var(k_.p_.var(loop_.vars[0]).name, ir::VarKind::loop);
    thread::Loop lowered{var, trips, thread::LoopForm::serial, {}};
    in_range(var, trips, [&] {
      const ExprId newest = first == 0 ? e_.var(var) : e_.add(e_.var(var), first);
      Flights flights = steady_;
      lowered_iteration({newest, 0, 1, first_may_be, &lowered.body, ExprId(), turns_, asks_, asks_}, flights);
    });
    emit(std::move(lowered), out);
  }
  void lowered_iteration(const Iteration& it, Flights& flights) {
    iteration(it, flights);
    if (drains_ && !flights.empty()) finish(it, flights, flights.size(), {});
  }

  // Waits for everything that the iteration `last` has left in flight.
  void drain(ExprId last, Flights flights, thread::Block& out, ExprId condition = ExprId()) {
    if (!flights.empty()) finish({last, 0, 1, false, &out, condition}, flights, flights.size(), {});
  }

  ExprId any() { return k_.simplified(e_.lt(e_.const_int(0), extent_)); }
  ExprId last() { return e_.sub(extent_, e_.const_int(1)); }

  void whole(thread::Block& out) {
    loop(0, true, out);
    const ExprId some = any();
    drain(last(), steady_, out, arith::prove(k_.ctx_, some) ? ExprId() : some);
  }

  // The first iteration stands in front of the loop. Accumulators that are zero before it are overwritten by
  // its product, and cleared only where there is none.
  void peeled(thread::Block& out) {
    const ExprId some = any();
    thread::Block body, none;
    auto mark = k_.ctx_.mark();
    k_.ctx_.assume(some);
    Flights flights;
    lowered_iteration({e_.const_int(0), 0, 0, false, &body, ExprId(), turns_, false, asks_}, flights);
    k_.products_overwrite_ = false;
    loop(1, false, body);
    flights = steady_;
    if (lagging_) iteration({extent_, 1, 1, false, &body}, flights);
    drain(lagging_ ? extent_ : last(), flights, body);
    k_.ctx_.rollback(mark);
    if (arith::prove(k_.ctx_, some)) {
      out.insert(out.end(), body.begin(), body.end());
      return;
    }
    if (overwrites_) k_.statement(k_.cleared_by_, none);
    emit(thread::Branch{some, std::move(body), std::move(none)}, out);
  }

  KernelLowering& k_;
  ir::ExprPool& e_;
  const ir::Loop& loop_;
  const std::string& origin_;
  const LoopBounds bounds_;
  const ExprId begin_, extent_;
  const ExprId before_;  // how often the loop has run
  const ExprId filled_;  // and its channels were filled
  const std::map<int, ExprId> saved_slots_;
  std::map<int, ExprId> inside_slots_;  // with those of channels that are filled in front of the loop
  std::vector<Unit> units_;
  std::vector<const Channel*> once_;  // filled in front of the loop, used in it
  std::optional<WrittenTiles> tiles_;
  bool lagging_ = false;
  bool asks_ = false;      // the waits of an iteration are asked for in the one before
  MemoryId answers_;       // ... with these answers, by channel
  bool turns_ = false;     // computing warpgroups take turns to issue an iteration's products
  const bool overwrites_;  // the sums are zero in front of the loop
  Flights steady_;         // in flight between two iterations
  bool drains_ = false;    // nothing can be: each iteration waits for what it issued
};

void KernelLowering::channel_loop(const ir::Loop& loop, thread::Block& out, const std::string& origin) {
  ChannelLoop(*this, loop, origin, out).run(out);
}

}  // namespace tilegen::lower
