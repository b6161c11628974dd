// Phases of transaction barriers as parties of threads come by: what holds in any order of these.
#include "check/barrier_phases.h"

#include <gtest/gtest.h>

namespace tilegen::check {
namespace {

constexpr BarrierPhases::Parties kFills{0, 1}, kTakes{1, 2}, kBoth{0, 2};
const BarrierPhases::Shape kRing{{32, 64}, {32, 64}};  // full, empty; who fills, who takes
constexpr size_t kFull = 0, kEmpty = 1;

struct Side {
  BarrierPhases state{kRing};
  size_t party = 99;
  std::optional<PhaseFault> arrive(size_t barrier, BarrierPhases::Parties who, int64_t each = 1) {
    return state.arrive(kRing, barrier, who, each, &party);
  }
  std::optional<PhaseFault> wait(size_t barrier, int64_t parity, BarrierPhases::Parties who) {
    return state.wait(barrier, parity, who, &party);
  }
  // One use of the slot; the parity is that of its number.
  std::optional<PhaseFault> round(int64_t number) {
    auto fault = wait(kEmpty, (number + 1) % 2, kFills);
    if (!fault) fault = arrive(kFull, kFills);
    if (!fault) fault = wait(kFull, number % 2, kTakes);
    if (!fault) fault = arrive(kEmpty, kTakes);
    return fault;
  }
};

TEST(BarrierPhases, ARingGoesOnAndRepeatsItself) {
  Side r;
  for (int64_t k = 0; k < 2; ++k) ASSERT_EQ(r.round(k), std::nullopt) << k;
  const BarrierPhases second = r.state;
  for (int64_t k = 2; k < 4; ++k) ASSERT_EQ(r.round(k), std::nullopt) << k;
  EXPECT_EQ(r.state, second);
}

TEST(BarrierPhases, WaitsFindTheirPhaseComplete) {
  Side r;
  EXPECT_EQ(r.wait(kFull, 0, kTakes), PhaseFault::never_complete);
  EXPECT_EQ(r.party, 1u);
  EXPECT_EQ(r.wait(kFull, 1, kTakes), std::nullopt);  // in front of the first phase
  ASSERT_EQ(Side().arrive(kFull, kFills), std::nullopt);
  Side other;
  ASSERT_EQ(other.arrive(kFull, kFills), std::nullopt);
  EXPECT_EQ(other.wait(kFull, 1, kTakes), PhaseFault::never_complete);
  EXPECT_EQ(other.wait(kFull, 0, kTakes), std::nullopt);
}

TEST(BarrierPhases, CountTheirArrivals) {
  Side r;
  EXPECT_EQ(r.arrive(kFull, kTakes), PhaseFault::too_many_arrivals);
  EXPECT_EQ(Side().arrive(kEmpty, kBoth), PhaseFault::too_many_arrivals);
  Side half;
  ASSERT_EQ(half.arrive(kEmpty, kFills), std::nullopt);
  EXPECT_EQ(half.state.arrived(kEmpty), 32);
  EXPECT_EQ(half.wait(kEmpty, 1, kTakes), PhaseFault::phase_begun);
}

// One lane of each warp: 64 threads make two arrivals.
TEST(BarrierPhases, CountWarpsWhereOneLaneArrives) {
  const BarrierPhases::Shape ring{{1, 2}, {32, 64}};
  BarrierPhases state(ring);
  size_t party = 0;
  ASSERT_EQ(state.arrive(ring, kFull, kFills, 32, &party), std::nullopt);
  ASSERT_EQ(state.wait(kFull, 0, kTakes, &party), std::nullopt);
  ASSERT_EQ(state.arrive(ring, kEmpty, kTakes, 32, &party), std::nullopt);
  EXPECT_EQ(state.arrived(kEmpty), 0);  // the phase is complete
  ASSERT_EQ(state.wait(kEmpty, 0, kFills, &party), std::nullopt);
  EXPECT_EQ(state.arrive(ring, kFull, kFills, 1, &party), PhaseFault::too_many_arrivals);
}

// Who brings the second slot has not heard that the first is taken: the phase may overtake those who wait.
TEST(BarrierPhases, NobodyIsOvertaken) {
  Side r;
  ASSERT_EQ(r.arrive(kFull, kFills), std::nullopt);
  ASSERT_EQ(r.wait(kFull, 0, kBoth), std::nullopt);
  EXPECT_EQ(r.arrive(kFull, kFills), PhaseFault::wait_overtaken);
  EXPECT_EQ(r.party, 1u);
}

// It may arrive twice in one phase.
TEST(BarrierPhases, WhoArrivesHasLeftThePhaseBefore) {
  Side r;
  ASSERT_EQ(r.arrive(kFull, kFills), std::nullopt);
  EXPECT_EQ(r.arrive(kFull, kFills), PhaseFault::phase_unknown);
}

// Two phases later the parity that is waited for is complete already.
TEST(BarrierPhases, WaitsForEachPhaseInTurn) {
  Side r;
  ASSERT_EQ(r.arrive(kFull, kFills), std::nullopt);
  ASSERT_EQ(r.wait(kFull, 0, kFills), std::nullopt);
  ASSERT_EQ(r.arrive(kFull, kFills), std::nullopt);
  EXPECT_EQ(r.wait(kFull, 1, kTakes), PhaseFault::wait_too_early);
  EXPECT_EQ(r.party, 1u);
}

// What a party knows goes with its arrivals.
TEST(BarrierPhases, KnowledgeIsPassedOn) {
  Side r;
  ASSERT_EQ(r.arrive(kFull, kFills), std::nullopt);
  ASSERT_EQ(r.wait(kFull, 0, kTakes), std::nullopt);
  ASSERT_EQ(r.arrive(kEmpty, kTakes), std::nullopt);
  EXPECT_EQ(r.arrive(kFull, kFills), PhaseFault::phase_unknown);
  ASSERT_EQ(r.wait(kEmpty, 0, kFills), std::nullopt);  // that the first phase is complete, and taken
  EXPECT_EQ(r.arrive(kFull, kFills), std::nullopt);
}

// Barriers of the machine, of 96 participants each: who meets arrives, and completes the phase.
struct Named {
  BarrierPhases::Shape shape{{96, 96}, {32, 64}, {true, true}};
  BarrierPhases state{shape};
  size_t party = 99;
  std::optional<PhaseFault> arrive(size_t barrier, BarrierPhases::Parties who) {
    return state.arrive(shape, barrier, who, 1, &party);
  }
  std::optional<PhaseFault> sync(size_t barrier, BarrierPhases::Parties who) {
    return state.sync(shape, barrier, who, &party);
  }
};

TEST(BarrierPhases, WhoMeetsCompletesThePhase) {
  Named b;
  ASSERT_EQ(b.arrive(0, kFills), std::nullopt);
  EXPECT_EQ(b.state.arrived(0), 32);
  EXPECT_EQ(b.sync(0, kTakes), std::nullopt);
  EXPECT_EQ(b.state.arrived(0), 0);
  EXPECT_EQ(b.sync(1, kBoth), std::nullopt);
  Named alone;
  EXPECT_EQ(alone.sync(0, kTakes), PhaseFault::meets_too_few);
  EXPECT_EQ(alone.party, 1u);
}

// Who only arrives does not know that the phase is complete, until those who met tell it.
TEST(BarrierPhases, WhoArrivesIsTold) {
  Named b;
  ASSERT_EQ(b.arrive(0, kFills), std::nullopt);
  ASSERT_EQ(b.sync(0, kTakes), std::nullopt);
  EXPECT_EQ(Named(b).arrive(0, kFills), PhaseFault::phase_unknown);
  ASSERT_EQ(b.arrive(1, kTakes), std::nullopt);
  ASSERT_EQ(b.sync(1, kFills), std::nullopt);
  const BarrierPhases once = b.state;
  ASSERT_EQ(b.arrive(0, kFills), std::nullopt);
  ASSERT_EQ(b.sync(0, kTakes), std::nullopt);
  EXPECT_EQ(Named(b).arrive(0, kFills), PhaseFault::phase_unknown);
  ASSERT_EQ(b.arrive(1, kTakes), std::nullopt);
  ASSERT_EQ(b.sync(1, kFills), std::nullopt);
  EXPECT_NE(b.state, once);  // of another parity
}

TEST(BarrierPhases, MoreThanTheParticipants) {
  Named b;
  ASSERT_EQ(b.arrive(0, kTakes), std::nullopt);
  EXPECT_EQ(b.arrive(0, kTakes), PhaseFault::too_many_arrivals);
}

}  // namespace
}  // namespace tilegen::check
