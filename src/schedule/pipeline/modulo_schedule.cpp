#include "schedule/pipeline/modulo_schedule.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

namespace tilegen::schedule {

namespace {

constexpr int64_t kMaxSlots = 2;   // of a place in registers
constexpr size_t kMaxChoices = 8;  // operations that may lag after what feeds them, places with slots
// Cycles to issue a product and to see that one has ended: estimates, not measured.
constexpr double kIssueCycles = 20, kAwaitCycles = 60;
// Another order must be so much better than the one that would be taken. Groups of warps that take turns fill
// each other's gaps, but not all of them: on an H200 an operand decoded beside the product of two groups that
// had been bound by the matrix units, as counted, still gained 12 to 17 %.
constexpr double kWorthwhile = 0.85;

int64_t slots_of(const LoopOrder& o, int place) {
  return place < 0 ? 1 : o.slots[static_cast<size_t>(place)];
}

// Iterations from `from` to the next `to` that has to be after it.
int64_t distance_of(const LoopOrder& o, const LoopEdge& e) {
  return e.distance + (e.flow ? 0 : slots_of(o, e.place) - 1);
}

// What is issued in one iteration of the loop, `to` of another iteration of the program than `from`.
int64_t slack_of(const LoopOrder& o, const LoopEdge& e) {
  return o.lag[e.to] + distance_of(o, e) - o.lag[e.from];
}

// The matrix units add to one sum in the order of issue.
bool queued(const LoopGraph& g, const LoopEdge& e) {
  return g.ops[e.from].product && g.ops[e.to].product && e.queued;
}

class Orders {
 public:
  Orders(const LoopGraph& g, const SlotsFit& fits) : g_(g), fits_(fits), n_(g.ops.size()) {}

  LoopOrder best() {
    LoopOrder best = early_products();
    if (fills_idle_tiles() && best.most_lag() == 0) return best;
    if (auto late = complete(late_products(), best.slots)) {
      delay(*late);
      late->cycles = cycles_of(g_, *late);
      if (waits_no_longer(*late, best) && has_registers(*late) &&
          (late->most_lag() == 1 || (fits_(late->slots) && is_worthwhile(*late, best))))
        best = std::move(*late);
    }
    if (best.most_lag() > 0) return best;
    const LoopOrder base = best;
    const auto judge = [&](LoopOrder o) {
      o.cycles = cycles_of(g_, o);
      if (is_worthwhile(o, base) && is_better(o, best) && waits_no_longer(o, base) && has_registers(o))
        best = std::move(o);
    };
    for_each_choice([&](LoopOrder o) {
      judge(o);
      delay(o);
      judge(std::move(o));
    });
    return best;
  }

 private:
  using Lags = std::vector<int64_t>;

  // As a group of warps alone sees it, where the units are no longer busy than before.
  bool is_worthwhile(const LoopOrder& o, const LoopOrder& base) const {
    return o.cycles <= base.cycles && cycles_alone(g_, o) < kWorthwhile * cycles_alone(g_, base);
  }
  // A tile with one slot is filled again while it lies idle. A product that lags reads its tile beside the
  // ones that do not, and several groups of warps each at another time: less is left. On an H200 attention
  // without lag took 0.71 to 0.97 of the time with it (seven tiles of bench/gpu/configurations.py).
  bool fills_idle_tiles() const {
    return std::any_of(g_.tiles.begin(), g_.tiles.end(),
                       [](const LoopTiles& t) { return t.slots == 1 && !t.users.empty(); });
  }
  // With the producer, whose loads an order may begin later.
  bool waits_no_longer(const LoopOrder& o, const LoopOrder& base) const {
    return cycles_produced(g_, o) <= cycles_produced(g_, base);
  }
  // For what is live at once, or no less than the program's order has.
  bool has_registers(const LoopOrder& o) const {
    if (g_.missing_words <= 0) return true;
    int64_t all = 0;
    for (const LoopValue& v : g_.values) all += v.words;
    const int64_t live = live_words(g_, o);
    return all - live >= g_.missing_words || live <= live_words(g_, program_order(g_));
  }
  bool is_better(const LoopOrder& o, const LoopOrder& best) const {
    const double less = 1 - 1e-6;
    if (o.cycles < best.cycles * less) return true;
    return o.cycles * less <= best.cycles && cycles_alone(g_, o) < cycles_alone(g_, best) * less;
  }

  // Edges within an iteration, of the program's order.
  template <class Visit>
  void edges_into(size_t to, Visit&& visit) const {
    for (const LoopEdge& e : g_.edges)
      if (e.to == to && e.from < to && e.distance == 0) visit(e);
  }

  // The program's order, or that in which products are issued as early as they can be, if that takes less.
  LoopOrder early_products() const {
    LoopOrder program = program_order(g_), early = program;
    if (!put_in_order(early) || !has_registers(early)) return program;
    early.cycles = cycles_of(g_, early);
    return is_better(early, program) && waits_no_longer(early, program) ? early : program;
  }

  // Every product after what it needs, by as many iterations as there are products whose sums threads work
  // on in between; all else as early as it can be.
  Lags late_products() const {
    Lags lag(n_, 0), ready(n_, 0);  // ready: lag of a product that uses the result
    for (size_t b = 0; b < n_; ++b) {
      edges_into(b, [&](const LoopEdge& e) {
        lag[b] = std::max(lag[b], lag[e.from]);
        if (!e.flow) return;
        if (g_.ops[b].product && !g_.ops[e.from].product) lag[b] = std::max(lag[b], ready[e.from]);
      });
      edges_into(b, [&](const LoopEdge& e) {
        if (e.flow) ready[b] = std::max(ready[b], g_.ops[e.from].product ? lag[e.from] + 1 : ready[e.from]);
      });
    }
    return lag;
  }

  // `after[b]`: b lags an iteration after what the other kind of operation feeds it.
  Lags lags_of(const std::vector<bool>& after) const {
    Lags lag(n_, 0);
    for (size_t b = 0; b < n_; ++b)
      edges_into(b, [&](const LoopEdge& e) {
        const bool later = e.flow && after[b] && g_.ops[e.from].product != g_.ops[b].product;
        lag[b] = std::max(lag[b], lag[e.from] + later);
      });
    return lag;
  }

  template <class Visit>
  void for_each_choice(Visit&& visit) const {
    std::vector<size_t> ops;
    for (size_t b = 0; b < n_; ++b) {
      bool crossed = false;
      edges_into(b, [&](const LoopEdge& e) {
        crossed = crossed || (e.flow && g_.ops[e.from].product != g_.ops[b].product);
      });
      if (crossed) ops.push_back(b);
    }
    const size_t places = static_cast<size_t>(g_.places);
    if (ops.empty() || ops.size() + places > kMaxChoices) return;
    for (size_t choice = 0; choice < size_t{1} << (ops.size() + places); ++choice) {
      std::vector<bool> after(n_, false);
      for (size_t i = 0; i < ops.size(); ++i) after[ops[i]] = (choice >> i & 1) != 0;
      std::vector<int64_t> slots(places, 1);
      for (size_t i = 0; i < places; ++i)
        if ((choice >> (ops.size() + i) & 1) != 0) slots[i] = kMaxSlots;
      if (!fits_(slots)) continue;
      if (auto o = complete(lags_of(after), std::move(slots))) visit(std::move(*o));
    }
  }

  // `first` is issued before `then`, of the same iteration of the loop.
  bool precedes(const LoopOrder& o, size_t first, size_t then) const {
    return std::any_of(g_.edges.begin(), g_.edges.end(), [&](const LoopEdge& e) {
      return e.from == first && e.to == then && first != then && slack_of(o, e) == 0;
    });
  }

  // Threads use its result in the same iteration of the loop.
  bool feeds_threads(const LoopOrder& o, size_t op) const {
    return std::ranges::any_of(g_.edges, [&](const LoopEdge& e) {
      return e.from == op && e.flow && !g_.ops[e.to].product && slack_of(o, e) == 0;
    });
  }

  // Products as early as possible, what lags before the rest. Where nothing lags what threads wait for comes
  // first: on an H200 gradients of attention took 8 % less time when products that only the next iteration
  // needs stood together behind the threads' work. False when dependences are broken.
  bool put_in_order(LoopOrder& o) const {
    if (!slots_suffice(g_, o)) return false;
    for (const LoopEdge& e : g_.edges)
      if (slack_of(o, e) < 0 || (e.from == e.to && slack_of(o, e) == 0)) return false;
    std::vector<std::vector<size_t>> before(n_);
    for (const LoopEdge& e : g_.edges)
      if (e.from != e.to && slack_of(o, e) == 0) before[e.to].push_back(e.from);
    std::vector<bool> issued(n_, false);
    o.order.clear();
    while (o.order.size() < n_) {
      size_t best = n_;
      for (size_t i = 0; i < n_; ++i) {
        if (issued[i] ||
            !std::all_of(before[i].begin(), before[i].end(), [&](size_t b) { return issued[b]; }))
          continue;
        const auto rank = [&](size_t u) {
          return std::make_tuple(g_.ops[u].product, o.lag[u], o.most_lag() == 0 && feeds_threads(o, u));
        };
        if (best == n_ || rank(i) > rank(best)) best = i;
      }
      if (best == n_) return false;
      issued[best] = true;
      o.order.push_back(best);
    }
    return true;
  }

  std::optional<LoopOrder> complete(Lags lag, std::vector<int64_t> slots) const {
    LoopOrder o;
    o.lag = std::move(lag);
    o.slots = std::move(slots);
    if (o.most_lag() == 0 || *std::min_element(o.lag.begin(), o.lag.end()) > 0 || !put_in_order(o))
      return std::nullopt;
    return o;
  }

  // Work of the threads that only later products need is done beside the next iteration's first ones, unless
  // those would wait for it.
  void delay(LoopOrder& o) const {
    for (size_t i = n_; i-- > 0;) {
      if (g_.ops[i].product || o.lag[i] > 0) continue;
      int64_t needed = -1;
      for (const LoopEdge& e : g_.edges)
        if (e.from == i && e.to > i && e.distance == 0 && e.flow)
          needed = needed < 0 ? o.lag[e.to] : std::min(needed, o.lag[e.to]);
      if (needed < 1) continue;
      LoopOrder later = o;
      later.lag[i] = 1;
      if (*std::min_element(later.lag.begin(), later.lag.end()) == 0 && put_in_order(later) &&
          !holds_up(later, i))
        o = std::move(later);
    }
  }

  // A product of the newest iteration could not be issued before `from` is done.
  bool holds_up(const LoopOrder& o, size_t from) const {
    std::vector<size_t> todo = {from};
    std::set<size_t> seen;
    while (!todo.empty()) {
      const size_t at = todo.back();
      todo.pop_back();
      if (!seen.insert(at).second) continue;
      if (g_.ops[at].product && o.lag[at] == 0) return true;
      for (size_t i = 0; i < n_; ++i)
        if (precedes(o, at, i)) todo.push_back(i);
    }
    return false;
  }

  const LoopGraph& g_;
  const SlotsFit& fits_;
  const size_t n_;
};

}  // namespace

int64_t LoopOrder::most_lag() const { return lag.empty() ? 0 : *std::max_element(lag.begin(), lag.end()); }

LoopOrder program_order(const LoopGraph& g) {
  LoopOrder o;
  o.lag.assign(g.ops.size(), 0);
  o.order.resize(g.ops.size());
  std::iota(o.order.begin(), o.order.end(), size_t{0});
  o.slots.assign(static_cast<size_t>(g.places), 1);
  o.cycles = cycles_of(g, o);
  return o;
}

bool slots_suffice(const LoopGraph& g, const LoopOrder& o) {
  return std::all_of(g.tiles.begin(), g.tiles.end(), [&](const LoopTiles& t) {
    const auto [first, last] = std::minmax_element(t.users.begin(), t.users.end(),
                                                   [&](size_t a, size_t b) { return o.lag[a] < o.lag[b]; });
    return t.users.empty() || o.lag[*last] - o.lag[*first] < t.slots;
  });
}

std::vector<LoopEdge> broken_edges(const LoopGraph& g, const LoopOrder& o) {
  std::vector<size_t> at(g.ops.size());
  for (size_t i = 0; i < o.order.size(); ++i) at[o.order[i]] = i;
  std::vector<LoopEdge> broken;
  for (const LoopEdge& e : g.edges)
    if (const int64_t slack = slack_of(o, e); slack < 0 || (slack == 0 && at[e.from] >= at[e.to]))
      broken.push_back(e);
  return broken;
}

int64_t live_words(const LoopGraph& g, const LoopOrder& o) {
  const size_t n = o.order.size();
  std::vector<size_t> at(n);
  for (size_t i = 0; i < n; ++i) at[o.order[i]] = i;
  struct Words {
    int64_t through = 0, begin = 0, end = 0;
  };
  std::vector<Words> words(n);
  // Threads that wait for a product have waited for those before it.
  const auto waits = [&](size_t op) {
    return !g.ops[op].product && std::ranges::any_of(g.edges, [&](const LoopEdge& e) {
      return e.to == op && e.flow && g.ops[e.from].product;
    });
  };
  for (const LoopValue& v : g.values) {
    if (v.users.empty()) continue;
    const auto when = [&](size_t u) { return static_cast<size_t>(o.lag[u]) * n + at[u]; };
    const auto [first, last] =
        std::ranges::minmax_element(v.users, [&](size_t a, size_t b) { return when(a) < when(b); });
    const size_t from = when(*first);
    size_t to = when(*last);
    // A product in flight holds its operands.
    if (g.ops[*last].product)
      while (to + 1 < from + n && !waits(o.order[(to + 1) % n])) ++to;
    for (size_t w = from; w <= to; ++w) {
      Words& here = words[w % n];
      // Threads write element by element what they read for the last time.
      const bool in_place = !g.ops[o.order[w % n]].product && from < to;
      (in_place && w == from ? here.begin : in_place && w == to ? here.end : here.through) += v.words;
    }
  }
  int64_t most = 0;
  for (const Words& w : words) most = std::max(most, w.through + std::max(w.begin, w.end));
  return most;
}

double cycles_of(const LoopGraph& g, const LoopOrder& o) {
  return std::max({cycles_alone(g, o), g.busy_matrix, g.busy_threads});
}

namespace {

// When the producer has filled the tiles of each iteration, from when users have given their slots back.
class TileLoads {
 public:
  // With `produced` not: all tiles are there.
  TileLoads(const LoopGraph& g, bool produced) : g_(g), of_(produced ? g.tiles.size() : 0) {
    for (size_t t = 0; t < of_.size(); ++t)
      for (size_t u : g.tiles[t].users) tiles_of_[u].push_back(t);
  }

  // Of what the operation uses in an iteration.
  double ready(size_t op, int64_t iteration) {
    double at = 0;
    const auto tiles = tiles_of_.find(op);
    if (tiles == tiles_of_.end() || iteration < 0) return at;
    fill(iteration);
    for (size_t t : tiles->second) at = std::max(at, of_[t].filled[static_cast<size_t>(iteration)]);
    return at;
  }

  // The operation has done with the tiles of an iteration.
  void used(size_t op, int64_t iteration, double when) {
    const auto tiles = tiles_of_.find(op);
    if (tiles == tiles_of_.end() || iteration < 0) return;
    for (size_t t : tiles->second) {
      std::vector<double>& free = of_[t].free;
      if (free.size() <= static_cast<size_t>(iteration)) free.resize(static_cast<size_t>(iteration) + 1, 0);
      free[static_cast<size_t>(iteration)] = std::max(free[static_cast<size_t>(iteration)], when);
    }
  }

 private:
  struct Times {
    std::vector<double> filled, free;  // by iteration
  };

  void fill(int64_t iteration) {
    for (; next_ <= iteration; ++next_)
      for (size_t t = 0; t < of_.size(); ++t) {
        const int64_t before = next_ - g_.tiles[t].slots;
        if (before >= 0 && static_cast<size_t>(before) < of_[t].free.size())
          engine_ = std::max(engine_, of_[t].free[static_cast<size_t>(before)]);
        engine_ += g_.tiles[t].load_cycles;
        of_[t].filled.push_back(engine_ + g_.load_latency);
      }
  }

  const LoopGraph& g_;
  std::vector<Times> of_;
  std::map<size_t, std::vector<size_t>> tiles_of_;
  int64_t next_ = 0;
  double engine_ = 0;  // has done with all that was asked of it
};

double cycles(const LoopGraph& g, const LoopOrder& o, bool produced) {
  struct Flight {
    size_t op = 0;
    int64_t iteration = 0;
    double done = 0;
  };
  // Until the producer, which is ahead by all slots at first, is so no more; then some iterations.
  int64_t slots = 0;
  for (const LoopTiles& t : g.tiles) slots = std::max(slots, t.slots);
  constexpr int64_t kRounds = 4;
  const int64_t first = o.most_lag() + slots + 2;
  const bool has_slots = std::any_of(o.slots.begin(), o.slots.end(), [](int64_t s) { return s > 1; });
  // Nothing of an order without lags that threads touch stays in flight over the end of an iteration.
  const auto touched = [&](size_t product) {
    return std::any_of(g.edges.begin(), g.edges.end(), [&](const LoopEdge& e) {
      return (e.from == product && !g.ops[e.to].product) || (e.to == product && !g.ops[e.from].product);
    });
  };
  const bool drains = has_slots || (o.most_lag() == 0 && [&] {
                        for (size_t i = 0; i < g.ops.size(); ++i)
                          if (g.ops[i].product && touched(i)) return true;
                        return false;
                      }());
  double now = 0, units_free = 0, begun = 0;
  TileLoads loads(g, produced);
  std::vector<Flight> flights;
  const auto await = [&](size_t count) {  // the oldest ones
    if (count == 0) return;
    now = std::max(now, flights[count - 1].done) + kAwaitCycles;
    flights.erase(flights.begin(), flights.begin() + static_cast<std::ptrdiff_t>(count));
  };
  for (int64_t round = 0; round < first + kRounds; ++round) {
    if (round == first) begun = now;
    for (size_t u : o.order) {
      const int64_t iteration = round - o.lag[u];
      size_t finished = 0;
      for (size_t f = 0; f < flights.size(); ++f)
        for (const LoopEdge& e : g.edges)
          if (e.from == flights[f].op && e.to == u && !queued(g, e) &&
              iteration - flights[f].iteration >= distance_of(o, e))
            finished = f + 1;
      await(finished);
      now = std::max(now, loads.ready(u, iteration));
      if (g.ops[u].product) {
        now += kIssueCycles;
        units_free = std::max(now, units_free) + g.ops[u].cycles;
        flights.push_back({u, iteration, units_free});
        loads.used(u, iteration, units_free);
      } else {
        now += g.ops[u].cycles;
        loads.used(u, iteration, now);
      }
    }
    if (drains) await(flights.size());
  }
  return (now - begun) / kRounds;
}

}  // namespace

double cycles_alone(const LoopGraph& g, const LoopOrder& o) { return cycles(g, o, false); }
double cycles_produced(const LoopGraph& g, const LoopOrder& o) { return cycles(g, o, true); }

LoopOrder modulo_schedule(const LoopGraph& g, const SlotsFit& fits) { return Orders(g, fits).best(); }

}  // namespace tilegen::schedule
