#include "expand/alternating_lists.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/alternation.h"

namespace tilegen::expand {

namespace {

constexpr int64_t kWarpgroups = 2;
using Part = analysis::Alternation::Part;

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
    take(a.shared, shared_);
    for (const analysis::Alternation::Row& r : a.rows) {
      of_part_[static_cast<size_t>(r.part)].push_back(r.value);
      if (r.part != Part::tail) rows_.push_back(r.value);
      if (!r.carried) fresh_.insert(r.value);
    }
    work_.clear();
    for (size_t i = 0; i < a.work.size(); ++i) {
      if (i == a.head) head_ = work_.size();
      if (i == a.tail) tail_ = work_.size();
      take({a.work[i]}, work_);
    }
    if (a.tail == a.work.size()) tail_ = work_.size();
    find_last_uses();
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
  // A product that is issued, or its part that takes one of the parts that tiles come in.
  struct Product {
    size_t unit = 0;
    int64_t part = Issue::kWhole;
    auto operator<=>(const Product&) const = default;
  };
  struct Flight {
    Product product;
    Iteration at;
  };

  bool is_own(Iteration at) const { return at == own_; }
  bool is_of_products(size_t u) const {
    return std::find(products_.begin(), products_.end(), u) != products_.end();
  }
  const Pipeline& line(int number) const { return x_.pipelines()[static_cast<size_t>(number)]; }
  // That bring tiles of the loop to the unit.
  std::vector<int> lines_of(size_t u) const {
    std::vector<int> lines;
    for (size_t i = 0; i < x_.pipelines().size(); ++i) {
      const Pipeline& p = x_.pipelines()[i];
      if (p.transport == Transport::tensor_copy && p.loop == loop_ && x_.touches(units_[u].stmt, p.values))
        lines.push_back(static_cast<int>(i));
    }
    return lines;
  }
  // Scores need all parts of a tile, one after the other. Of sums that both have a warpgroup has the columns
  // that its own part of the tile gives.
  std::vector<Product> products_of(size_t u) const {
    int64_t parts = 1;
    for (int i : lines_of(u)) parts = std::max(parts, line(i).parts);
    if (parts == 1) return {{u}};
    if (!is_of_products(u)) return {{u, mine_}};
    std::vector<Product> all;
    for (int64_t part = 0; part < parts; ++part) all.push_back({u, part});
    return all;
  }
  // Of an iteration of this warpgroup and of the other's: what uses a pipeline last, and which none uses.
  void find_last_uses() {
    for (bool own : {true, false}) {
      std::map<int, Product> last;
      std::vector<size_t> in_order = own ? products_ : std::vector<size_t>();
      in_order.insert(in_order.end(), shared_.begin(), shared_.end());
      for (size_t u : in_order)
        for (const Product& p : products_of(u))
          for (int i : lines_of(u))
            if (brings(line(i), p.part)) last[i] = p;
      for (const auto& [number, p] : last) last_[own][p].push_back(number);
      for (size_t u = 0; u < units_.size(); ++u)
        for (int i : lines_of(u))
          if (!last.count(i)) passed_by_[own].insert(i);
    }
  }
  const std::vector<int>& last_of(const Product& p, Iteration at) const {
    static const std::vector<int> none;
    const auto found = last_[is_own(at)].find(p);
    return found == last_[is_own(at)].end() ? none : found->second;
  }

  void iterations(Iteration first, int64_t count, Block& out) {
    out_ = &out;
    ordered_ = count > 1;
    own_ = first + mine_;
    if (mine_ < count) own_products(first);
    if (mine_ == 0) {
      begin_work();
      work(first, 0, head_);
      if (head_ > 0) emit(*out_, PutRows{loop_, mine_, of(Part::head), Part::head});
      work(first, head_, tail_);
      put(head_ > 0 ? of(Part::middle) : rows_);
      multiply(first, false);
      tail(first);
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
      if (early) emit(*out_, FetchRows{loop_, 0, of(Part::head), {}, Part::head});
      if (early && ordered_) work(first + 1, 0, head_);
      fetch(early ? of(Part::middle) : rows_, early && ordered_);
      if (!ordered_) pass_by(first);
      multiply(first, early && ordered_);
      if (ordered_) {
        if (!early) begin_work();
        work(first + 1, head_, tail_);
        put(rows_);
        multiply(first + 1, false);
      }
      fetch_tail();
      if (ordered_) tail(first + 1);
    }
    finish(flights_.size());
    if (mine_ == 0 && ordered_) fetch_tail();
  }
  // Beside the products that it does not keep waiting.
  void tail(Iteration at) {
    work(at, tail_, work_.size());
    if (!of(Part::tail).empty()) emit(*out_, PutRows{loop_, mine_, of(Part::tail), Part::tail});
  }
  void fetch_tail() {
    if (!of(Part::tail).empty())
      emit(*out_, FetchRows{loop_, kWarpgroups - 1 - mine_, of(Part::tail), {}, Part::tail});
  }
  const std::vector<ValueId>& of(Part part) const { return of_part_[static_cast<size_t>(part)]; }
  void multiply(Iteration at, bool fetched) {
    Block own;
    Block* const around = std::exchange(out_, fetched ? &own : out_);
    for (size_t u : shared_) shared(u, at);
    out_ = around;
    if (fetched) emit(*out_, WithFetched{fresh_, std::move(own)});
  }

  void issue(const Product& p, Iteration at) {
    const ConsumerUnit& unit = units_[p.unit];
    At own{at, false, {}};
    // Its first part has begun the sums.
    const bool begun = is_of_products(p.unit) && p.part > 0;
    if (unit.cleared_by.valid() && !begun) x_.set_overwrite(true, unit.cleared_by);
    emit(own.body,
         Issue{unit.stmt, x_.overwrites(), p.part, is_own(at) && x_.has_left_in_registers(unit.stmt)});
    x_.set_overwrite(false);
    emit(*out_, std::move(own));
    flights_.push_back({p, at});
  }
  void wait(const Product& p, Iteration at) {
    for (int number : lines_of(p.unit)) {
      const std::pair use(number, at.plus);
      if (!brings(line(number), p.part) || std::find(waited_.begin(), waited_.end(), use) != waited_.end())
        continue;
      waited_.push_back(use);
      emit(*out_, Wait{number, at});
    }
  }
  void release(const Product& p, Iteration at) {
    for (int number : last_of(p, at)) {
      x_.release({number, at}, *out_);
      std::erase(waited_, std::pair(number, at.plus));
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
      const ConsumerUnit& unit = units_[f.product.unit];
      await.finished.push_back({unit.stmt, f.at});
      values.insert(unit.writes.begin(), unit.writes.end());
    }
    for (const Flight& f : flights_)
      for (ValueId v : units_[f.product.unit].writes) values.erase(v);
    await.pending = static_cast<int64_t>(flights_.size());
    for (ValueId v : values)
      if (x_.in_registers(v)) await.values.push_back({v});
    emit(*out_, std::move(await));
    for (const Flight& f : done) release(f.product, f.at);
  }
  template <class Concerns>
  void finish_up_to(Concerns&& concerns) {
    size_t finished = 0;
    for (size_t f = 0; f < flights_.size(); ++f)
      if (concerns(units_[flights_[f].product.unit])) finished = f + 1;
    finish(finished);
  }

  // Of two warpgroups' at once none would be done early.
  void own_products(Iteration first) {
    if (mine_ > 0) {
      see_full(first);
      emit(*out_, ProductsDone{true});
      pass_by(first);
    }
    for (size_t u : products_)
      for (const Product& p : products_of(u)) {
        wait(p, own_);
        issue(p, own_);
      }
  }

  // The oldest: they are issued first.
  size_t own_flights() const {
    return static_cast<size_t>(std::count_if(
        flights_.begin(), flights_.end(), [&](const Flight& f) { return is_of_products(f.product.unit); }));
  }

  void begin_work() {
    if (ordered_ && mine_ == 0) {
      if (own_flights() > 2) finish(own_flights() - 1);
      emit(*out_, ProductsDone{false});
    }
    finish(own_flights());
    // Each warp has awaited its products that read the tile which is written now.
    emit(*out_, Barrier{Scope::warpgroup});
  }
  void work(Iteration at, size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      // Slots that the other's iteration has read go back as early as its products are done. The youngest
      // may run on: it is awaited where its sums are next used.
      if (i + 1 == tail_ && flights_.size() > 1) finish(flights_.size() - 1);
      if (i >= tail_)
        finish_up_to([&](const ConsumerUnit& product) {
          return disturbs(units_[work_[i]], product, [](ValueId) { return true; });
        });
      At own{at, false, {}};
      x_.statement(units_[work_[i]].stmt, own.body);
      emit(*out_, std::move(own));
    }
  }
  void put(const std::vector<ValueId>& rows) {
    see_full(own_);
    emit(*out_, PutRows{loop_, mine_, rows});
    pass_by(own_);
  }

  // Slots that only the other warpgroup reads are given back by both, in the order of iterations. In between
  // the warpgroup's threads meet: a slot that one gives back could be full again before another has seen it.
  void see_full(Iteration at) {
    for (int number : passed_by_[is_own(at)]) emit(*out_, Wait{number, at});
  }
  void pass_by(Iteration at) {
    for (int number : passed_by_[is_own(at)]) x_.release({number, at}, *out_);
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
    for (const Product& p : products_of(u)) {
      wait(p, at);
      issue(p, at);
    }
    if (unit.waits) return finish(flights_.size());
    // The next product is on its way: slots of those before go back.
    size_t finished = 0;
    for (size_t f = 0; f + 1 < flights_.size(); ++f)
      if (!last_of(flights_[f].product, flights_[f].at).empty()) finished = f + 1;
    finish(finished);
  }

  Expander& x_;
  const StmtId loop_;
  const std::vector<ConsumerUnit>& units_;
  const int64_t mine_;
  std::vector<size_t> products_, work_, shared_;  // units
  std::vector<ValueId> rows_;                     // of head and middle
  std::vector<ValueId> of_part_[3];               // by Part
  std::set<ValueId> fresh_;                       // rows that an iteration makes anew
  size_t head_ = 0, tail_ = 0;                    // of `work_`
  // By whether the iteration is this warpgroup's.
  std::map<Product, std::vector<int>> last_[2];
  std::set<int> passed_by_[2];
  Iteration own_;
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
