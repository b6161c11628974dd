// A ring that two warps fill and two others empty, ordered by transaction barriers alone: nothing is planted,
// and what is left out is missed by planting and by both verifiers.
#include "sync/transaction_order.h"

#include "plant_program.h"
#include "thread/transaction_verify.h"

namespace tilegen::sync {
namespace {

constexpr int64_t kSide = 64;  // threads
constexpr Planting kByWarps{false, true};

struct Ring : Maker {
  enum class Part : uint8_t { wait_empty, fill, arrive_full, wait_full, take, arrive_empty };
  StmtId parts[6];
  StmtId rounds;

  // `slots` of the tile, and barriers of each array; some part may be left out.
  explicit Ring(int64_t slots = 3, int64_t barriers = 3, std::optional<Part> without = {})
      : Maker(2 * kSide) {
    const MemoryId ring = shared("ring", slots * kSide);
    p.barriers = {{"full", barriers, kSide, p.arena_bytes},
                  {"empty", barriers, kSide, p.arena_bytes + 8 * barriers}};
    p.arena_bytes += 16 * barriers;
    auto& e = p.exprs;
    const ExprId fills = e.lt(t, c(kSide)), takes = e.le(c(kSide), t);
    rounds = loop(e.var(n), [&](ExprId k) {
      const ExprId slot = e.mul(e.floormod(k, c(slots)), c(kSide)), at = e.floormod(t, c(kSide)),
                   barrier = e.floormod(k, c(barriers)),
                   parity = e.floormod(e.floordiv(k, c(barriers)), c(2));
      const auto of = [&](ExprId condition, StmtId s) {
        return p.add(thread::Branch{condition, {s}, {}}, "ring");
      };
      const ExprId other = e.sub(c(kSide - 1), at);
      const ExprId read = e.load(ring, ir::DType::f32, std::vector<ExprId>{e.add(slot, other), takes});
      const StmtId all[] = {
          of(fills, p.add(thread::TransactionWait{1, barrier, e.sub(c(1), parity), {}}, "wait empty")),
          p.add(thread::Store{ring, e.add(slot, at), load(reg, c(0)), fills}, "fill"),
          of(fills, p.add(thread::TransactionArrive{0, barrier, 0, {}}, "arrive full")),
          of(takes, p.add(thread::TransactionWait{0, barrier, parity, {}}, "wait full")),
          p.add(thread::Store{reg, c(0), read, takes}, "take"),
          of(takes, p.add(thread::TransactionArrive{1, barrier, 0, {}}, "arrive empty"))};
      Block body;
      for (size_t i = 0; i < std::size(all); ++i)
        if (!without || i != static_cast<size_t>(*without)) body.push_back(all[i]);
      return body;
    });
    p.body = {rounds};
  }
  std::string refusal() {
    const Checked planted = plant_barriers(p, kByWarps);
    return planted ? "" : planted.error().to_text();
  }
};

TEST(TransactionOrder, OrdersARingOfAnySlots) {
  for (int64_t slots = 1; slots <= 5; ++slots) {
    Ring r(slots, slots);
    EXPECT_EQ(r.plant(false, kByWarps), 0) << slots;
    EXPECT_EQ(thread::verify_transactions(r.p), std::vector<std::string>());
  }
}

TEST(TransactionOrder, WhatIsLeftOutIsMissed) {
  using Part = Ring::Part;
  for (const Part part : {Part::wait_empty, Part::arrive_full, Part::wait_full, Part::arrive_empty}) {
    Ring r(3, 3, part);
    EXPECT_FALSE(thread::verify_synchronization(r.p).empty()) << static_cast<int>(part);
    EXPECT_NE(r.refusal().find("no arrival of these at a transaction barrier"), std::string::npos)
        << static_cast<int>(part);
  }
  for (const Part part : {Part::arrive_full, Part::arrive_empty})
    EXPECT_FALSE(thread::verify_transactions(Ring(3, 3, part).p).empty());
}

TEST(TransactionOrder, OtherSlotsThanTheBarriers) {
  Ring fewer(2, 3), more(4, 3);
  EXPECT_FALSE(thread::verify_synchronization(fewer.p).empty());
  EXPECT_NE(fewer.refusal(), "");
  // Slot k % 4 is filled again behind a wait for the round before the last.
  EXPECT_EQ(thread::verify_synchronization(more.p), std::vector<std::string>());
  EXPECT_EQ(more.refusal(), "");
}

// Of a loop of constant trips each slot may be used once, by the counter as it is.
TEST(TransactionOrder, SlotsThatTheCounterNames) {
  for (const bool ordered : {true, false}) {
    Ring r(4, 4);
    auto& e = r.p.exprs;
    auto& loop = std::get<thread::Loop>(r.p.stmts[r.rounds.value].node);
    loop.extent = r.c(4);
    const ExprId counter = e.var(loop.var), last = e.sub(r.c(3), counter);
    for (StmtId s : loop.body)
      if (const auto* branch = std::get_if<thread::Branch>(&r.p.stmts[s.value].node)) {
        auto& node = r.p.stmts[branch->then_body[0].value].node;
        if (auto* wait = std::get_if<thread::TransactionWait>(&node)) wait->index = ordered ? counter : last;
        if (auto* arrival = std::get_if<thread::TransactionArrive>(&node)) arrival->index = counter;
      }
    EXPECT_EQ(r.refusal().empty(), ordered);
  }
}

// An arrival that a condition leaves out in some rounds orders nothing.
TEST(TransactionOrder, ArrivalsOfSomeRounds) {
  Ring r;
  auto& e = r.p.exprs;
  auto& body = std::get<thread::Loop>(r.p.stmts[r.rounds.value].node).body;
  const ExprId some = e.lt(e.var(r.n), r.c(5));
  const StmtId arrival = body[2];
  const StmtId conditional = r.p.add(thread::Branch{some, {arrival}, {}}, "some");
  std::get<thread::Loop>(r.p.stmts[r.rounds.value].node).body[2] = conditional;
  EXPECT_NE(r.refusal(), "");
}

TEST(TransactionOrder, IterationsBetweenAnArrivalAndItsWait) {
  const Ring r(3, 3);
  const TransactionOrder order(r.p);
  const auto& body = std::get<thread::Loop>(r.p.stmts[r.rounds.value].node).body;
  const auto point = [&](size_t i) {
    return *order.find(std::get<thread::Branch>(r.p.stmts[body[i].value].node).then_body[0]);
  };
  const auto wait_empty = point(0), arrive_full = point(2), wait_full = point(3), arrive_empty = point(5);
  EXPECT_EQ(order.iterations_back(arrive_full, wait_full, 5), 0);
  EXPECT_EQ(order.iterations_back(arrive_empty, wait_empty, 5), 3);
  EXPECT_EQ(order.iterations_back(arrive_empty, wait_empty, 2), std::nullopt);
  EXPECT_EQ(order.iterations_back(arrive_empty, wait_full, 5), std::nullopt);
  EXPECT_TRUE(order.is_one_party({0, 2}));
  EXPECT_TRUE(order.is_one_party({3, 1}));
  EXPECT_FALSE(order.is_one_party({1, 2}));
}

// One tile goes to and fro between two sides by barriers of the machine: who fills meets at `empty`, at which
// the others have arrived, and arrives at `full`, where these meet.
struct Turns : Maker {
  enum class Part : uint8_t { arrive_empty, sync_empty, fill, arrive_full, sync_full, take };

  explicit Turns(std::optional<Part> without = {}) : Maker(2 * kSide) {
    const MemoryId tile = shared("tile", kSide);
    auto& e = p.exprs;
    const ExprId fills = e.lt(t, c(kSide)), takes = e.le(c(kSide), t);
    const auto at = [&](ExprId condition, int64_t element, bool arrive_only) {
      const int number = p.named_barrier({thread::BarrierUse::program, 0, element});
      const StmtId s = p.add(thread::Barrier{number, 2 * kSide, arrive_only}, "barrier");
      return p.add(thread::Branch{condition, {s}, {}}, "turns");
    };
    const StmtId rounds = loop(e.var(n), [&](ExprId) {
      const ExprId own = e.floormod(t, c(kSide)), other = e.sub(c(kSide - 1), own);
      const ExprId read = e.load(tile, ir::DType::f32, std::vector<ExprId>{other, takes});
      const StmtId all[] = {at(takes, 0, true),
                            at(fills, 0, false),
                            p.add(thread::Store{tile, own, load(reg, c(0)), fills}, "fill"),
                            at(fills, 1, true),
                            at(takes, 1, false),
                            p.add(thread::Store{reg, c(0), read, takes}, "take")};
      Block body;
      for (size_t i = 0; i < std::size(all); ++i)
        if (!without || i != static_cast<size_t>(*without)) body.push_back(all[i]);
      return body;
    });
    p.body = {rounds};
  }
};

TEST(TransactionOrder, BarriersThatAProgramNames) {
  Turns turns;
  EXPECT_EQ(turns.plant(false, kByWarps), 4);  // its own
  EXPECT_EQ(thread::verify_synchronization(turns.p), std::vector<std::string>());
}

// What a barrier orders no more a barrier of the block does.
TEST(TransactionOrder, NamedBarriersThatAreMissing) {
  using Part = Turns::Part;
  for (const Part part : {Part::arrive_empty, Part::sync_empty, Part::arrive_full, Part::sync_full}) {
    Turns turns(part);
    EXPECT_FALSE(thread::verify_synchronization(turns.p).empty()) << static_cast<int>(part);
  }
  for (const Part part : {Part::sync_empty, Part::sync_full}) {
    Turns turns(part);
    ASSERT_TRUE(plant_barriers(turns.p, kByWarps)) << static_cast<int>(part);
    EXPECT_EQ(thread::verify_synchronization(turns.p), std::vector<std::string>()) << static_cast<int>(part);
  }
}

}  // namespace
}  // namespace tilegen::sync
