// Orders of loops by hand and by chance: what runs beside what, and that every dependence holds.
#include "schedule/pipeline/modulo_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tilegen::schedule {
namespace {

constexpr auto kAnyFit = [](const std::vector<int64_t>&) { return true; };
constexpr auto kNoneFit = [](const std::vector<int64_t>&) { return false; };

LoopOp product(double cycles) { return {true, cycles}; }
LoopOp threads(double cycles) { return {false, cycles}; }

// `to` reads what `from` wrote in the iteration; the next one writes the place again.
void feed(LoopGraph& g, size_t from, size_t to, int place = -1) {
  g.edges.push_back({from, to, 0, true, false, place});
  g.edges.push_back({to, from, 1, false, false, place});
  g.edges.push_back({from, from, 1, false, false, place});
}
void carried(LoopGraph& g, size_t op, bool queued) { g.edges.push_back({op, op, 1, true, queued, -1}); }

LoopGraph graph(std::vector<LoopOp> ops, int64_t places = 0) {
  LoopGraph g;
  g.ops = std::move(ops);
  g.places = places;
  for (const LoopOp& op : g.ops) (op.product ? g.busy_matrix : g.busy_threads) += op.cycles;
  return g;
}

TEST(ModuloSchedule, AnAttentionsSecondProductLags) {
  LoopGraph g = graph({product(500), threads(600), product(500)});
  feed(g, 0, 1);
  feed(g, 1, 2);
  carried(g, 2, true);
  const LoopOrder o = modulo_schedule(g, kNoneFit);
  EXPECT_EQ(o.lag, (std::vector<int64_t>{0, 0, 1}));
  EXPECT_EQ(o.order, (std::vector<size_t>{2, 0, 1}));
  EXPECT_LT(o.cycles, program_order(g).cycles);
}

TEST(ModuloSchedule, OfThreeProductsTwoRunBesideTheThreads) {
  LoopGraph g = graph({product(500), threads(500), product(500), threads(500), product(500)});
  feed(g, 0, 1);
  feed(g, 1, 2);
  feed(g, 2, 3);
  feed(g, 3, 4);
  carried(g, 4, true);
  LoopOrder late = program_order(g);
  late.lag = {0, 0, 1, 1, 2};
  late.order = {4, 1, 2, 0, 3};
  EXPECT_EQ(broken_edges(g, late).size(), 2u);  // work of the newest before its product, over what one reads
  late.order = {4, 2, 0, 3, 1};
  EXPECT_TRUE(broken_edges(g, late).empty());
  EXPECT_EQ(modulo_schedule(g, kNoneFit), program_order(g));
  const LoopOrder o = modulo_schedule(g, kAnyFit);
  EXPECT_TRUE(broken_edges(g, o).empty());
  EXPECT_LE(o.cycles, cycles_of(g, late));
  EXPECT_LT(o.cycles, 0.8 * program_order(g).cycles);
}

// Gradients of attention, of whose tiles there is one slot: nothing may lag.
//   s = k q    w = exp(s)    dv += w g    dp = v g    ds = w dp    dk += ds q
LoopGraph gradients() {
  LoopGraph g = graph({product(500), threads(300), product(500), product(500), threads(300), product(500)});
  feed(g, 0, 1);
  feed(g, 1, 2);
  feed(g, 1, 4);
  feed(g, 3, 4);
  feed(g, 4, 5);
  carried(g, 2, true);
  carried(g, 5, true);
  g.tiles.push_back({{0, 2, 3, 5}, 1, 0});
  return g;
}

TEST(ModuloSchedule, ProductsOfOneIterationAreIssuedAsTheirOperandsCome) {
  const LoopGraph g = gradients();
  const LoopOrder o = modulo_schedule(g, kNoneFit);
  EXPECT_EQ(o.lag, std::vector<int64_t>(6, 0));
  EXPECT_EQ(o.order, (std::vector<size_t>{0, 3, 1, 2, 4, 5}));
  EXPECT_TRUE(broken_edges(g, o).empty());
  EXPECT_LT(o.cycles, program_order(g).cycles);
}

TEST(ModuloSchedule, ValuesLiveFromTheFirstUseToTheLastAndOperandsUntilThreadsHaveWaited) {
  LoopGraph g = gradients();
  g.values = {{{0, 1}, 64}, {{1, 2}, 32}, {{3, 4}, 64}, {{4, 5}, 32}};
  // Beside dp are s, or what the exponentials leave of it, which the product holds until the threads wait.
  LoopOrder o = program_order(g);
  EXPECT_EQ(live_words(g, o), 96);
  // The last two hold theirs beside the next iteration's first.
  o.order = {0, 3, 1, 4, 2, 5};
  EXPECT_EQ(live_words(g, o), 192);
}

// part = a * b; sums += scale * part
TEST(ModuloSchedule, ScalingOfAProductRunsBesideTheNextOneWhereThereAreRegisters) {
  LoopGraph g = graph({product(500), threads(400)}, 1);
  feed(g, 0, 1, 0);
  carried(g, 1, false);
  const LoopOrder o = modulo_schedule(g, kAnyFit);
  EXPECT_EQ(o.lag, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(o.slots, (std::vector<int64_t>{2}));
  EXPECT_LT(o.cycles, 0.75 * program_order(g).cycles);
  EXPECT_EQ(modulo_schedule(g, kNoneFit), program_order(g));
}

// a = decode(words); sums += a * b
TEST(ModuloSchedule, AnOperandIsMadeBesideTheProductOfTheOneBefore) {
  LoopGraph g = graph({threads(400), product(500)}, 1);
  feed(g, 0, 1, 0);
  carried(g, 1, true);
  const LoopOrder o = modulo_schedule(g, kAnyFit);
  EXPECT_EQ(o.lag, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(o.order, (std::vector<size_t>{1, 0}));
  EXPECT_EQ(o.slots, (std::vector<int64_t>{2}));
  EXPECT_EQ(modulo_schedule(g, kNoneFit), program_order(g));
}

// The first and the last product read one tile of the producer.
TEST(ModuloSchedule, NoMoreIterationsAreUnderWayThanTilesHaveSlots) {
  LoopGraph g = graph({product(500), threads(500), product(500), threads(500), product(500)});
  for (size_t i = 0; i + 1 < 5; ++i) feed(g, i, i + 1);
  LoopOrder o = program_order(g);
  o.lag = {0, 0, 1, 1, 2};
  o.order = {4, 2, 0, 3, 1};
  g.tiles = {{{0, 4}, 3}};
  EXPECT_TRUE(slots_suffice(g, o));
  g.tiles = {{{0, 4}, 2}};
  EXPECT_FALSE(slots_suffice(g, o));
  EXPECT_TRUE(slots_suffice(g, modulo_schedule(g, kAnyFit)));
  g.tiles = {{{0, 4}, 1}};
  EXPECT_TRUE(slots_suffice(g, modulo_schedule(g, kAnyFit)));
}

// The last product reads the first one's tile: where it lags, its slot goes back an iteration later, and the
// next tile comes when nothing is left to do.
TEST(ModuloSchedule, AnOrderWaitsForTilesNoLongerThanTheProgram) {
  LoopGraph g = graph({product(1700), threads(900), threads(100), product(1000)});
  feed(g, 0, 1);
  feed(g, 1, 2);
  feed(g, 2, 3);
  carried(g, 3, true);
  g.load_latency = 800;
  LoopOrder late = program_order(g);
  late.lag = {0, 0, 1, 1};
  late.order = {0, 2, 3, 1};
  const double without = cycles_alone(g, late), in_order = cycles_alone(g, program_order(g));
  EXPECT_LT(without, 0.8 * in_order);
  g.tiles = {{{0, 3}, 2, 1200}};
  EXPECT_EQ(cycles_alone(g, late), without);
  EXPECT_GT(cycles_produced(g, late), in_order);
  EXPECT_NEAR(cycles_produced(g, program_order(g)), in_order, 1) << "a whole iteration for it";
  EXPECT_EQ(modulo_schedule(g, kNoneFit).lag, program_order(g).lag);
  g.tiles = {{{0, 3}, 3, 1200}};
  EXPECT_NEAR(cycles_produced(g, late), without, 1);
  EXPECT_EQ(modulo_schedule(g, kNoneFit).lag[3], 1);
  g.tiles = {{{0}, 2, 600}, {{3}, 2, 600}};
  EXPECT_EQ(modulo_schedule(g, kNoneFit).lag[3], 1) << "each product has its own";
}

// A loop takes as long as its tiles take to come.
TEST(ModuloSchedule, TheCopyEngineBoundsALoop) {
  LoopGraph g = graph({product(500)});
  carried(g, 0, true);
  g.load_latency = 800;
  g.tiles = {{{0}, 8, 900}};
  EXPECT_NEAR(cycles_produced(g, program_order(g)), 900, 1);
  g.tiles = {{{0}, 1, 900}};
  EXPECT_NEAR(cycles_produced(g, program_order(g)), 900 + 800 + 500 + 20, 1);
}

TEST(ModuloSchedule, NothingIsMovedForLittle) {
  LoopGraph g = graph({product(500), threads(10)}, 1);
  feed(g, 0, 1, 0);
  EXPECT_EQ(modulo_schedule(g, kAnyFit), program_order(g));
}

// Time of an operation of an iteration: the round of the loop, and the place in it.
std::pair<int64_t, size_t> time_of(const LoopOrder& o, size_t op, int64_t iteration) {
  const auto at = std::find(o.order.begin(), o.order.end(), op) - o.order.begin();
  return {iteration + o.lag[op], static_cast<size_t>(at)};
}

// Random programs: an operation writes a place of its own that later ones read, or earlier ones of the next
// iteration; all instances of all dependences are compared by their times.
TEST(ModuloSchedule, EveryDependenceHoldsInRandomLoops) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int moved = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const size_t n = 2 + static_cast<size_t>(below(6));
    std::vector<LoopOp> ops;
    for (size_t i = 0; i < n; ++i) ops.push_back({below(2) == 0, 50.0 + below(500)});
    LoopGraph g = graph(std::move(ops), 2);
    std::vector<bool> lives_on(2, false);
    for (size_t from = 0; from < n; ++from)
      for (size_t to = 0; to < n; ++to) {
        if (below(3) != 0) continue;
        const int place = below(4) == 0 ? static_cast<int>(below(2)) : -1;
        if (from < to) {
          feed(g, from, to, place);
        } else {  // read by a later iteration: no slots
          g.edges.push_back({from, to, 1, true, false, -1});
          if (from != to) g.edges.push_back({to, from, 0, false, false, -1});
        }
      }
    const LoopOrder o = modulo_schedule(g, [&](const auto& slots) { return slots[0] == 1 || below(2) == 0; });
    ASSERT_TRUE(broken_edges(g, o).empty()) << trial;
    moved += o.most_lag() > 0;
    for (const LoopEdge& e : g.edges)
      for (int64_t i = 0; i < 4; ++i) {
        const int64_t slots = e.place < 0 || e.flow ? 1 : o.slots[static_cast<size_t>(e.place)];
        ASSERT_LT(time_of(o, e.from, i), time_of(o, e.to, i + e.distance + slots - 1))
            << trial << ": " << e.from << " -> " << e.to;
      }
  }
  EXPECT_GT(moved, 40);
}

}  // namespace
}  // namespace tilegen::schedule
