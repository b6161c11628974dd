// Scheduled programs against the interpreter, bit for bit: every program of tests/files and of the planning
// tests, expanded for sm_80, sm_90a, gfx942 and a host, with what is issued in effect at once, at the last
// moment and at random ones.
//
//   TILEGEN_SEED=n    that launch of every program, or that random one; TILEGEN_COUNT=n: so many from there
//   TILEGEN_FILTER=s  programs whose path has s; TILEGEN_LONG=1: tiles as large as they are written
#include <gtest/gtest.h>

#include "../unit/expand/scheduled_mutants.h"
#include "interp/run_scheduled.h"
#include "random_pipeline.h"
#include "random_program.h"
#include "small_programs.h"

namespace tilegen::differential {
namespace {

using interp::Order;

constexpr Order::Kind kKinds[] = {Order::Kind::early, Order::Kind::late, Order::Kind::random};
constexpr const char* kNames[] = {"early", "late", "random"};

struct Kernels {
  std::shared_ptr<const ir::Program> program;  // as it is planned
  std::shared_ptr<const plan::Schedule> schedule;
  std::vector<expand::ScheduledKernel> owned;
  std::vector<const expand::ScheduledKernel*> list;

  // Where copies or products go on orders differ; the first and the last one take other versions.
  size_t orders() const {
    size_t count = 1;
    for (const expand::ScheduledKernel& k : owned) {
      if (!k.pipelines.empty() || k.roles.size() > 1) return 3;
      for (const expand::Role& r : k.roles)
        if (expand::has_versions(r.body)) count = 2;
    }
    return count;
  }
};

std::optional<Kernels> kernels_of(const PlannedProgram& s, const std::string& target) {
  Kernels k;
  k.program = std::make_shared<const ir::Program>(schedule::planned_form(*s.planned, target));
  auto plan = schedule::plan_for(*k.program, target);
  if (!plan) return std::nullopt;
  k.schedule = std::make_shared<const plan::Schedule>(std::move(*plan));
  for (size_t i = 0; i < s.planned->kernels.size(); ++i) {
    auto e = expand::expand_kernel(*k.program, static_cast<int>(i), k.schedule->kernels[i],
                                   schedule::target_named(target));
    EXPECT_TRUE(e) << s.path << ": " << e.error().to_text();
    if (!e) return std::nullopt;
    k.owned.push_back(std::move(*e));
  }
  for (const expand::ScheduledKernel& e : k.owned) k.list.push_back(&e);
  return k;
}

// In another order of things.
std::string difference(const Expectation& want, const ir::Program& p, const std::string& target,
                       const std::vector<const expand::ScheduledKernel*>& kernels, Order order) {
  const ir::Program form = schedule::planned_form(p, target);
  return want.difference(
      [&](const auto& slots) { return interp::interpret_scheduled(form, kernels, slots, order); });
}

// Nobody asked for more, or for one launch.
bool by_turns() { return !long_run() && !std::getenv("TILEGEN_SEED") && !std::getenv("TILEGEN_COUNT"); }

// A program with its expansions for all targets that have a plan of it.
class Compared {
 public:
  explicit Compared(PlannedProgram s) : s_(std::move(s)) {
    std::vector<const char*> targets = {"sm_80", "sm_90a", "gfx942", "x86-64-v3"};
    // The last two by turns.
    const size_t turn = s_.path.size() + static_cast<size_t>(s_.path.back());
    if (by_turns()) targets.erase(targets.begin() + (turn % 2 == 0 ? 2 : 3));
    for (const char* target : targets)
      if (auto k = kernels_of(s_, target)) targets_.push_back({target, std::move(*k)});
  }

  // False: the interpreter does not run the launch.
  bool launch(const ir::Program& run, const Launch& launch, const std::string& again) {
    Expectation want;
    if (!want.make(run, launch)) return false;
    for (const auto& [target, k] : targets_)
      for (size_t o = 0; o < k.orders(); ++o) {
        // Of three orders the last moment always, the others by turns.
        if (k.orders() == 3 && o == (launch.seed % 2 == 0 ? 0 : 2) && by_turns()) continue;
        ++count;
        EXPECT_EQ(difference(want, run, target, k.list, {kKinds[o], launch.seed}), "")
            << s_.path << " for " << target << ", " << kNames[o] << again;
      }
    return true;
  }

  uint64_t count = 0;

 private:
  PlannedProgram s_;
  std::vector<std::pair<const char*, Kernels>> targets_;
};

TEST(Scheduled, ComputesWhatTheProgramDoes) {
  const uint64_t first = number_of("TILEGEN_SEED", 0);
  const uint64_t count = number_of("TILEGEN_COUNT", std::getenv("TILEGEN_SEED") ? 1 : 7);
  uint64_t compared = 0;
  const std::vector<std::string> paths = all_programs();
  for (const std::string& path : paths) {
    const PlannedProgram s = subject_of(path);
    if (!s.planned) continue;
    Compared each(s);
    for (uint64_t seed = first; seed < first + count; ++seed) {
      const std::string again = "\nagain: TILEGEN_FILTER=" + path + " TILEGEN_SEED=" + std::to_string(seed);
      if (!each.launch(*s.run, launch_of(*s.run, seed), again))
        each.launch(*s.planned, launch_of(*s.planned, seed), again);
    }
    compared += each.count;
  }
  EXPECT_GE(compared, paths.size() * count * 2);
}

// Programs that once found something, for the launches they state.
TEST(Scheduled, ComputesWhatRegressionsDo) {
  uint64_t compared = 0;
  for (const auto& path : programs_in(test_data("regressions"))) {
    const std::string text = text_of(path);
    PlannedProgram s{path.string(), parsed(text), nullptr};
    if (!s.planned) continue;
    Compared each(s);
    for (const Launch& launch : stated_launches(text)) each.launch(*s.planned, launch, to_text({"", launch}));
    compared += each.count;
  }
  EXPECT_GT(compared, 500u);
}

// And random ones.
void compare_random(uint64_t most, const std::function<Case(uint64_t seed)>& make) {
  const uint64_t first = number_of("TILEGEN_SEED", 1);
  const uint64_t count = number_of("TILEGEN_COUNT", std::getenv("TILEGEN_SEED") ? 1 : most);
  uint64_t compared = 0;
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    const Case c = make(seed);
    const auto p = parsed(c.text);
    if (!p) continue;
    Compared each({"seed " + std::to_string(seed), p, p});
    each.launch(*p, c.launch, "\n" + to_text(c));
    compared += each.count;
  }
  EXPECT_GE(compared, count * 2) << "too few programs are planned for this to be a test";
}

TEST(Scheduled, ComputesWhatRandomProgramsDo) {
  compare_random(24, [](uint64_t seed) { return random_case(seed, {.budget = 60000, .for_gpu = true}); });
}

TEST(Scheduled, ComputesWhatRandomPipelinesDo) { compare_random(8, random_pipeline); }

// What a mutant of the first kernel is told by.
class Judge {
 public:
  Judge(PlannedProgram s, std::string target, expand::Expanded& e,
        std::vector<const expand::ScheduledKernel*> behind)
      : s_(std::move(s)), target_(std::move(target)), e_(e), behind_(std::move(behind)) {
    for (uint64_t seed = 0; seed < 7; ++seed) {
      expected_.emplace_back();
      if (!expected_.back().make(*s_.run, launch_of(*s_.run, seed))) expected_.pop_back();
    }
  }

  bool told() const {
    std::vector<const expand::ScheduledKernel*> kernels = {&e_.kernel};
    kernels.insert(kernels.end(), behind_.begin(), behind_.end());
    // those that tell most first
    for (const Order::Kind kind : {Order::Kind::late, Order::Kind::random, Order::Kind::early})
      for (uint64_t seed = 0; seed < (kind == Order::Kind::random ? 4 : 1); ++seed)
        for (size_t i = expected_.size(); i-- > 0;)
          if (!difference(expected_[i], *s_.run, target_, kernels, {kind, seed}).empty()) return true;
    return false;
  }

 private:
  PlannedProgram s_;
  const std::string target_;
  expand::Expanded& e_;
  std::vector<const expand::ScheduledKernel*> behind_;
  std::vector<Expectation> expected_;
};

class ScheduledMutants : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ScheduledMutants, AreTold) {
  PlannedProgram s = subject_of(schedule::source_path(GetParam().first));
  auto k = kernels_of(s, GetParam().second);
  ASSERT_TRUE(k);
  expand::Expanded e{k->program, k->schedule, std::move(k->owned[0])};
  k->list.erase(k->list.begin());
  const Judge judge(s, GetParam().second, e, k->list);
  ASSERT_FALSE(judge.told());
  const auto told = [&] { return judge.told(); };
  const expand::Counts left_out = mutate(e, expand::leave_out, told);
  EXPECT_GE(left_out.mutants, 3);
  EXPECT_EQ(left_out.told, left_out.mutants) << "left out";
  const expand::Counts doubled = mutate(
      e,
      [](expand::Block& b, size_t i) {
        return !std::holds_alternative<expand::Wait>(b[i].node) && expand::double_it(b, i);  // no harm
      },
      told);
  EXPECT_EQ(doubled.told, doubled.mutants) << "doubled";
  const expand::Counts later = mutate(e, expand::wait_later, told);
  EXPECT_EQ(later.told, later.mutants) << "a wait after what it is for";
  const expand::Counts pending = mutate(e, expand::one_more_pending, told);
  EXPECT_EQ(pending.told, pending.mutants) << "one more pending";
  const expand::Counts earlier = mutate(e, expand::release_earlier, told);
  // Some do no harm: the producer waits for another slot first, or fills none any more.
  EXPECT_GE(earlier.told, std::min(earlier.mutants, 1)) << "released before the wait";
  for (const expand::Counts& other :
       {mutate(e, expand::another_iteration(e, 1), told), mutate(e, expand::another_iteration(e, -1), told)})
    EXPECT_EQ(other.told, other.mutants) << "another iteration";
}

INSTANTIATE_TEST_SUITE_P(
    All, ScheduledMutants,
    ::testing::Values(std::pair("tests/unit/schedule/flagship/gemm_flagship.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_full.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_causal.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_split.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_packed.tl", "sm_90a"),
                      std::pair("tests/files/plan/hopper/gemm_written_operands.tl", "sm_90a"),
                      std::pair("tests/files/plan/gemm_bias_relu.tl", "sm_80"),
                      std::pair("tests/files/plan/flash_attention.tl", "sm_80")));

// The role's outermost statement of a kind, left out.
template <class Node>
void leave_out_first(expand::Role& role) {
  for (expand::Block* b : expand::blocks_of(role.body))
    for (size_t i = 0; i < b->size(); ++i)
      if (std::holds_alternative<Node>((*b)[i].node)) return void(expand::leave_out(*b, i));
}

std::string error_without(const std::function<void(expand::ScheduledKernel&)>& change) {
  const PlannedProgram s = subject_of(schedule::source_path(std::string(kFlagship) + "/gemm_flagship.tl"));
  auto k = kernels_of(s, "sm_90a");
  Expectation want;
  if (!k || !want.make(*s.run, launch_of(*s.run, 5))) return "not run";
  change(k->owned[0]);
  return difference(want, *s.run, "sm_90a", k->list, {Order::Kind::late});
}

TEST(Scheduled, NamesOperationPipelineAndUse) {
  using expand::ScheduledKernel;
  const std::string copy = "gemm/ko/copy#0: ", product = "gemm/ko/gemm#0: ";
  const auto expect = [](const std::string& got, const std::string& words) {
    EXPECT_NE(got.find(words), std::string::npos) << got << "\nand not: " << words;
  };
  expect(error_without([](ScheduledKernel& k) { leave_out_first<expand::Wait>(k.roles[0]); }),
         product + "use 0 of pipeline 'gemm/ko' is read before its copies are waited for");
  expect(error_without([](ScheduledKernel& k) { leave_out_first<expand::Commit>(k.roles[1]); }),
         copy + "use 0 of pipeline 'gemm/ko' is waited for by role consumer for ever");
  expect(error_without([](ScheduledKernel& k) { leave_out_first<expand::Acquire>(k.roles[1]); }),
         copy + "use 0 of pipeline 'gemm/ko' is filled, and its slot is not acquired for it");
  expect(error_without([](ScheduledKernel& k) { leave_out_first<expand::Release>(k.roles[0]); }),
         copy + "use 12 of pipeline 'gemm/ko' is waited for by role consumer for ever");
  expect(error_without([](ScheduledKernel& k) { leave_out_first<expand::Await>(k.roles[0]); }),
         "is filled while use 8 of pipeline 'gemm/ko' in its slot is still read");
}

}  // namespace
}  // namespace tilegen::differential
