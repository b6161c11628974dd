#include "expand/alternating_lists.h"

#include <algorithm>
#include <utility>

#include "analysis/alternation.h"

namespace tilegen::expand {

namespace {

constexpr int64_t kWarpgroups = 2;

class AlternatingList {
 public:
  AlternatingList(Expander& x, StmtId loop, const std::vector<ConsumerUnit>& units, int64_t warpgroup)
      : x_(x), loop_(loop), units_(units), mine_(warpgroup) {
    const analysis::Alternation a = analysis::find_alternation(x.program(), x.ops(), loop);
    if (!a.refusal.empty())
      x.fail(x.path(loop), "warpgroups cannot alternate: " + a.refusal,
             "leave `alternating` out of the schedule to have it decided");
    const auto take = [&](const std::vector<OpId>& ops, std::vector<size_t>& list) {
      for (size_t u = 0; u < units.size(); ++u)
        if (std::any_of(ops.begin(), ops.end(),
                        [&](OpId op) { return x.ops().ops[op].stmt == units[u].stmt; }))
          list.push_back(u);
    };
    take(a.products, products_);
    take(a.work, work_);
    take(a.shared, shared_);
    for (const analysis::Alternation::Row& r : a.rows) {
      rows_.push_back(r.value);
      (r.early ? early_ : late_).push_back(r.value);
      if (!r.carried) fresh_.insert(r.value);
    }
    head_ = static_cast<size_t>(std::count_if(work_.begin(), work_.end(), [&](size_t u) {
      const auto end = a.work.begin() + static_cast<ptrdiff_t>(a.head);
      return std::any_of(a.work.begin(), end, [&](OpId op) { return x.ops().ops[op].stmt == units[u].stmt; });
    }));
  }

  Block run() {
    Block out;
    if (x_.failed()) return out;
    Steady steady{0, kWarpgroups, {}};
    iterations({}, kWarpgroups, steady.body);
    emit(out, std::move(steady));
    Remainder rest{0, std::vector<Block>(kWarpgroups)};
    iterations({Iteration::From::end, -1}, 1, rest.cases[1]);
    emit(out, std::move(rest));
    return out;
  }

 private:
  struct Flight {
    size_t unit = 0;
    Iteration at;
  };

  void iterations(Iteration first, int64_t count, Block& out) {
    out_ = &out;
    ordered_ = count > 1;
    if (mine_ < count) own_products(first);
    if (mine_ == 0) {
      begin_work();
      work(first, 0, head_);
      if (head_ > 0) emit(*out_, PutRows{loop_, mine_, early_, true});
      work(first, head_, work_.size());
      put(head_ > 0 ? late_ : rows_);
      multiply(first, false);
      if (ordered_) {
        see_full(first + 1);
        fetch(rows_, false);
        pass_by(first + 1);
        multiply(first + 1, false);
      }
    } else {
      // The head of its work stands before the other's iteration is done: registers of rows hold its own.
      const bool early = head_ > 0;
      if (early && ordered_) begin_work();
      if (!ordered_) see_full(first);
      if (early) emit(*out_, FetchRows{loop_, 0, early_, {}, true});
      if (early && ordered_) work(first + 1, 0, head_);
      fetch(early ? late_ : rows_, early && ordered_);
      if (!ordered_) pass_by(first);
      multiply(first, early && ordered_);
      if (ordered_) {
        if (!early) begin_work();
        work(first + 1, head_, work_.size());
        put(rows_);
        multiply(first + 1, false);
      }
    }
    finish(flights_.size());
  }
  void multiply(Iteration at, bool fetched) {
    Block own;
    Block* const around = std::exchange(out_, fetched ? &own : out_);
    for (size_t u : shared_) shared(u, at);
    out_ = around;
    if (fetched) emit(*out_, WithFetched{fresh_, std::move(own)});
  }

  void issue(size_t u, Iteration at) {
    At own{at, false, {}};
    if (units_[u].cleared_by.valid()) x_.set_overwrite(true, units_[u].cleared_by);
    emit(own.body, Issue{units_[u].stmt, x_.overwrites()});
    x_.set_overwrite(false);
    emit(*out_, std::move(own));
    flights_.push_back({u, at});
  }
  void wait(size_t u, Iteration at) {
    for (size_t line = 0; line < x_.pipelines().size(); ++line) {
      const Pipeline& pipeline = x_.pipelines()[line];
      const auto number = static_cast<int>(line);
      if (pipeline.transport != Transport::tensor_copy || pipeline.loop != loop_ ||
          !x_.touches(units_[u].stmt, pipeline.values))
        continue;
      const auto waited = std::find(waited_.begin(), waited_.end(), std::pair(number, at.plus));
      if (waited != waited_.end()) continue;
      waited_.emplace_back(number, at.plus);
      emit(*out_, Wait{number, at});
    }
  }
  void release(size_t u, Iteration at) {
    for (int line : units_[u].last) {
      x_.release({line, at}, *out_);
      std::erase(waited_, std::pair(line, at.plus));
    }
  }

  // The `finished` oldest products are awaited; their slots go back.
  void finish(size_t finished) {
    if (finished == 0) return;
    Await await;
    std::set<ValueId> values;
    const std::vector<Flight> done(flights_.begin(), flights_.begin() + static_cast<ptrdiff_t>(finished));
    flights_.erase(flights_.begin(), flights_.begin() + static_cast<ptrdiff_t>(finished));
    for (const Flight& f : done) {
      await.finished.push_back({units_[f.unit].stmt, f.at});
      values.insert(units_[f.unit].writes.begin(), units_[f.unit].writes.end());
    }
    for (const Flight& f : flights_)
      for (ValueId v : units_[f.unit].writes) values.erase(v);
    await.pending = static_cast<int64_t>(flights_.size());
    for (ValueId v : values)
      if (x_.in_registers(v)) await.values.push_back({v});
    emit(*out_, std::move(await));
    for (const Flight& f : done) release(f.unit, f.at);
  }
  template <class Concerns>
  void finish_up_to(Concerns&& concerns) {
    size_t finished = 0;
    for (size_t f = 0; f < flights_.size(); ++f)
      if (concerns(units_[flights_[f].unit])) finished = f + 1;
    finish(finished);
  }

  // Of two warpgroups' at once none would be done early.
  void own_products(Iteration first) {
    if (mine_ > 0) {
      see_full(first);
      emit(*out_, ProductsDone{true});
      pass_by(first);
    }
    for (size_t u : products_) {
      wait(u, first + mine_);
      issue(u, first + mine_);
    }
  }

  // The oldest: they are issued first.
  size_t own_flights() const {
    return static_cast<size_t>(std::count_if(flights_.begin(), flights_.end(), [&](const Flight& f) {
      return std::find(products_.begin(), products_.end(), f.unit) != products_.end();
    }));
  }

  void begin_work() {
    if (ordered_ && mine_ == 0) {
      if (products_.size() > 2) finish(own_flights() - 1);
      emit(*out_, ProductsDone{false});
    }
    finish(own_flights());
    // Each warp has awaited its products that read the tile which is written now.
    emit(*out_, Barrier{Scope::warpgroup});
  }
  void work(Iteration at, size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      // Slots that the other's iteration has read go back as early as its products are done.
      if (i + 1 == work_.size()) finish(flights_.size());
      At own{at, false, {}};
      x_.statement(units_[work_[i]].stmt, own.body);
      emit(*out_, std::move(own));
    }
  }
  void put(const std::vector<ValueId>& rows) {
    finish(flights_.size());
    emit(*out_, PutRows{loop_, mine_, rows});
  }

  // Slots that only the other reads are given back by both, in the order of iterations. In between the
  // warpgroup's threads meet: a slot that one gives back could be full again before another has seen it so.
  void see_full(Iteration at) {
    for (size_t u : products_)
      for (int line : units_[u].last) emit(*out_, Wait{line, at});
  }
  void pass_by(Iteration at) {
    for (size_t u : products_)
      for (int line : units_[u].last) x_.release({line, at}, *out_);
  }
  void fetch(const std::vector<ValueId>& rows, bool beside) {
    FetchRows fetched{loop_, kWarpgroups - 1 - mine_, rows, {}};
    if (beside) fetched.beside = fresh_;
    emit(*out_, std::move(fetched));
  }

  void shared(size_t u, Iteration at) {
    const ConsumerUnit& unit = units_[u];
    finish_up_to(
        [&](const ConsumerUnit& product) { return disturbs(unit, product, [](ValueId) { return true; }); });
    if (!unit.product) {
      At own{at, false, {}};
      x_.statement(unit.stmt, own.body);
      return emit(*out_, std::move(own));
    }
    wait(u, at);
    issue(u, at);
    if (unit.waits) return finish(flights_.size());
    // The next product is on its way: slots of those before go back.
    size_t finished = 0;
    for (size_t f = 0; f + 1 < flights_.size(); ++f)
      if (!units_[flights_[f].unit].last.empty()) finished = f + 1;
    finish(finished);
  }

  Expander& x_;
  const StmtId loop_;
  const std::vector<ConsumerUnit>& units_;
  const int64_t mine_;
  std::vector<size_t> products_, work_, shared_;  // units
  std::vector<ValueId> rows_, early_, late_;
  std::set<ValueId> fresh_;                      // rows that an iteration makes anew
  size_t head_ = 0;                              // of `work_`
  std::vector<Flight> flights_;                  // oldest first
  std::vector<std::pair<int, int64_t>> waited_;  // pipelines and iterations, which are not given back
  Block* out_ = nullptr;
  bool ordered_ = false;  // the other has products beside these
};

}  // namespace

std::vector<Block> alternating_lists(Expander& x, StmtId loop, const std::vector<ConsumerUnit>& units) {
  std::vector<Block> lists;
  for (int64_t w = 0; w < kWarpgroups; ++w) lists.push_back(AlternatingList(x, loop, units, w).run());
  return lists;
}

}  // namespace tilegen::expand
