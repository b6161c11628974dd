// Loops whose iterations blocks share: every program that may have one, in parts of every number, through
// clusters and workspaces, on the simulator and as a scheduled program; and defects of the meeting, each
// named.
#include <gtest/gtest.h>

#include <iostream>

#include "../unit/expand/scheduled_support.h"
#include "expand/split_form.h"
#include "gemm_program.h"
#include "given_schedule.h"
#include "interp/run_scheduled.h"
#include "lowered_defects.h"
#include "random_pipeline.h"
#include "small_programs.h"

namespace tilegen::differential {
namespace {

// In how many ways and of how many programs sums met so, with parts of every number.
void expect_right(std::vector<Scheduled>& programs, const std::string& through, int least_run,
                  int least_refused) {
  int ran = 0, refused = 0, asked = 0;
  for (Scheduled& program : programs) {
    if (!program) continue;
    const plan::Schedule* planned = program.schedule("sim:sm_90a");
    if (!planned) continue;
    for (const plan::KernelSchedule& kernel : planned->kernels)
      for (const plan::LoopPlan& loop : kernel.loops)
        for (int64_t parts : {2, 4, 8, 16}) {
          // Two numbers of parts for each loop, by turns.
          if (!long_run() && (asked++ / 4 + (parts == 2 || parts == 8)) % 2 == 0) continue;
          plan::Schedule given;
          given.kernels.push_back({.kernel = kernel.kernel});
          given.kernels[0].split = plan::SplitPlan{loop.loop, parts, "", through};
          SCOPED_TRACE(program.name() + ": " + plan::schedule_to_json(given));
          auto artifact = program.compile("sim:sm_90a", given, false);
          if (!artifact) {
            ++refused;
            EXPECT_TRUE(is_refusal(artifact.error())) << artifact.error().to_text();
            continue;
          }
          EXPECT_EQ((*artifact)->schedule.find(kernel.kernel)->split->parts, parts);
          EXPECT_EQ((*artifact)->schedule.find(kernel.kernel)->split->through, through);
          const auto seed = static_cast<uint64_t>(++ran);
          EXPECT_EQ(program.run(**artifact, seed), "") << "seed " << seed;
        }
  }
  std::cout << through << ": " << ran << " ran, " << refused << " refused\n";
  EXPECT_GE(ran, least_run);
  EXPECT_GT(refused, least_refused);
}

TEST(SharedLoops, ComputeWhatTheProgramDoes) { expect_right(scheduled_programs(), "cluster", 12, 12); }
TEST(SharedLoops, ComputeWhatTheProgramDoesInShares) {
  expect_right(scheduled_programs(), "cluster_shares", 12, 12);
}

TEST(SharedLoops, ComputeWhatRandomProgramsDoInShares) {
  std::vector<Scheduled> programs;
  for (uint64_t seed = 1; seed <= (long_run() ? 400 : 40); ++seed)
    programs.emplace_back("seed " + std::to_string(seed), random_pipeline(seed).text);
  expect_right(programs, "cluster_shares", 4, 12);
}

// Memory of a launch is marked before it: no counter is at rest.
TEST(SharedLoops, MeetInAWorkspaceOnEveryTarget) {
  for (const std::string target : {"sim:sm_80", "sim:sm_90a", "sim:gfx942"}) {
    int ran = 0, asked = 0;
    for (Scheduled& program : scheduled_programs()) {
      const plan::Schedule* planned = program.schedule(target);
      if (!planned) continue;
      for (const plan::KernelSchedule& kernel : planned->kernels)
        for (const plan::LoopPlan& loop : kernel.loops)
          for (int64_t parts : {2, 3, 9}) {
            // One number of parts for each loop, by turns.
            const int turn = asked++;
            if (!long_run() && turn % 3 != turn / 3 % 3) continue;
            plan::Schedule given;
            given.kernels.push_back({.kernel = kernel.kernel});
            given.kernels[0].split = plan::SplitPlan{loop.loop, parts, "", "workspace"};
            SCOPED_TRACE(target + ", " + program.name() + ": " + plan::schedule_to_json(given));
            auto artifact = program.compile(target, given, false);
            if (!artifact) {
              EXPECT_TRUE(is_refusal(artifact.error())) << artifact.error().to_text();
              continue;
            }
            EXPECT_EQ((*artifact)->schedule.find(kernel.kernel)->split->through, "workspace");
            EXPECT_GT((*artifact)->launch_program().params.size(), (*artifact)->program->params.size());
            const auto seed = static_cast<uint64_t>(++ran);
            EXPECT_EQ(program.run(**artifact, seed), "") << "seed " << seed;
          }
    }
    std::cout << target << ": " << ran << " ran\n";
    EXPECT_GE(ran, 6) << target;
  }
}

// As scheduled programs: their sums are formed in another order.
void expect_right_as_scheduled(expand::SplitThrough through, int least) {
  int compared = 0;
  const target::Target target = schedule::target_named("sm_90a");
  for (const std::string& path : all_programs()) {
    const PlannedProgram s = subject_of(path);
    if (!s.planned) continue;
    const ir::Program form = schedule::planned_form(*s.planned, "sm_90a");
    for (size_t kernel = 0; kernel < form.kernels.size(); ++kernel)
      for (ir::StmtId loop : form.kernels[kernel].body)
        for (int64_t parts : {2, 4}) {
          const auto k = static_cast<int>(kernel);
          if (!form.as<ir::Loop>(loop) ||
              !expand::split_refusal(form, k, target, loop, parts, through).empty())
            continue;
          const ir::Program split = expand::split_form(form, k, loop, parts, through);
          auto plan = schedule::plan_for(split, "sm_90a");
          if (!plan) continue;
          std::vector<expand::ScheduledKernel> owned;
          for (size_t i = 0; i < split.kernels.size(); ++i) {
            auto e = expand::expand_kernel(split, static_cast<int>(i), plan->kernels[i], target);
            ASSERT_TRUE(e) << path << ": " << e.error().to_text();
            EXPECT_EQ(expand::verify_scheduled(split, *e), std::vector<std::string>()) << path;
            owned.push_back(std::move(*e));
          }
          std::vector<const expand::ScheduledKernel*> kernels;
          for (const expand::ScheduledKernel& e : owned) kernels.push_back(&e);
          for (uint64_t seed = 0; seed < (long_run() ? 4 : 2); ++seed) {
            Expectation want;
            if (!want.make(*s.run, launch_of(*s.run, seed))) continue;
            const ir::Program run =
                expand::split_form(schedule::planned_form(*s.run, "sm_90a"), k, loop, parts, through);
            for (const auto order :
                 {interp::Order::Kind::early, interp::Order::Kind::late, interp::Order::Kind::random}) {
              const std::vector<GuardedMemory> got = want.memory.fresh(true);
              const Checked done =
                  interp::interpret_scheduled(run, kernels, want.memory.slots(got), {order, seed});
              ASSERT_TRUE(done) << path << ": " << done.error().to_text();
              EXPECT_EQ(want.memory.compare(want.results, got, {1e-3, 4}), "")
                  << path << ", " << parts << " parts, seed " << seed;
              ++compared;
            }
          }
        }
  }
  EXPECT_GE(compared, least);
}

TEST(SharedLoops, AreRightAsScheduled) { expect_right_as_scheduled(expand::SplitThrough::cluster, 100); }
TEST(SharedLoops, AreRightAsScheduledInShares) {
  expect_right_as_scheduled(expand::SplitThrough::cluster_shares, 60);
}

// Of each role's meetings of the cluster that number; the last: -1.
int remove_meeting(ThreadProgram& p, int number) {
  int removed = 0;
  for (thread::StmtId id : thread::Block(p.body)) {
    auto* roles = std::get_if<thread::Roles>(&p.stmts[id.value].node);
    if (!roles) continue;
    for (thread::Role& role : roles->roles) {
      std::vector<std::pair<thread::Block*, size_t>> places;
      each<thread::ClusterBarrier>(p, role.body,
                                   [&](thread::Block& block, size_t i, thread::ClusterBarrier&) {
                                     places.push_back({&block, i});
                                   });
      if (places.empty()) continue;
      const auto [block, i] = number < 0 ? places.back() : places[static_cast<size_t>(number)];
      block->erase(block->begin() + static_cast<std::ptrdiff_t>(i));
      ++removed;
    }
  }
  return removed;
}

// The barrier of the computing threads in front of the blocks' first meeting.
int remove_barrier_in_front(ThreadProgram& p) {
  std::pair<thread::Block*, size_t> last{};
  bool met = false;
  each<thread::ClusterBarrier>(p, p.body, [&](thread::Block& block, size_t i, thread::ClusterBarrier&) {
    if (met || i == 0) return;
    for (size_t at = 0; at < i; ++at)
      if (std::holds_alternative<thread::Barrier>(p.stmts[block[at].value].node)) last = {&block, at};
    met = last.first != nullptr;
  });
  if (!met) return 0;
  last.first->erase(last.first->begin() + static_cast<std::ptrdiff_t>(last.second));
  return 1;
}

TEST(SharedLoops, DefectsOfTheMeetingAreNamed) {
  plan::Schedule given;
  given.kernels.push_back({.kernel = "gemm"});
  given.kernels[0].split = plan::SplitPlan{"gemm/ko", 4, ""};
  GemmProgram product;
  product.tb = true;
  product.m = 128, product.k = 64;
  product.threads = 256, product.stages = 3;
  const Lowered lowered(gemm_text(product), 64, 6 * 64 - 8, given);
  const ThreadProgram p = lowered.program();
  ASSERT_EQ(p.cluster, 4);
  ASSERT_EQ(verifiers(p), std::vector<std::string>());
  sim::test::for_each_schedule([&](const sim::SimOptions& options) {
    ASSERT_EQ(lowered.simulate(p, options), std::set<std::string>()) << sim::test::order_name(options);
  });
  using thread::ClusterLoad;
  const Defect defects[] = {
      {"sums are read before the blocks have met",
       [](ThreadProgram& q) { return remove_meeting(q, 0); },
       "gemm:c.parts",
       {"uninitialised_read", "data_race"}},
      {"sums are left where products of other warps may still read tiles",
       remove_barrier_in_front,
       "a product may still read it",
       {"operand_in_flight", "data_race"}},
      {"blocks end before their sums are read",
       [](ThreadProgram& q) { return remove_meeting(q, -1); },
       "may be over when threads of another arrive at its barrier or read its memory",
       {"cluster_left"}},
      {"the sums of a block beyond the last",
       [](ThreadProgram& q) {
         return change<ClusterLoad>(q, [&](ClusterLoad& l) {
           l.block = q.exprs.add(l.block, q.exprs.const_int(1));
           return true;
         });
       },
       "there is no block 4 of the cluster",
       {"out_of_bounds"}},
  };
  for (const Defect& d : defects) expect_named(lowered, d);
  // Of two parts the first block keeps its own in registers.
  given.kernels[0].split->parts = 2;
  expect_named(Lowered(gemm_text(product), 64, 6 * 64 - 8, given),
               {"the first block's own place",
                [](ThreadProgram& q) {
                  return change<ClusterLoad>(
                      q, [&](ClusterLoad& l) { return l.block = q.exprs.const_int(0), true; });
                },
                "gemm:c.parts",
                {"uninitialised_read", "foreign_read"}});  // a tile of the loop lay there
}

TEST(SharedLoops, DefectsOfSharesAreNamed) {
  using thread::ClusterLoad;
  GemmProgram product;
  product.tb = true;
  product.m = 128, product.k = 64;
  product.threads = 256, product.stages = 3;
  for (int64_t parts : {2, 4}) {
    plan::Schedule given;
    given.kernels.push_back({.kernel = "gemm"});
    given.kernels[0].split = plan::SplitPlan{"gemm/ko", parts, "", "cluster_shares"};
    const Lowered lowered(gemm_text(product), 64, 6 * 64 - 8, given);
    const ThreadProgram p = lowered.program();
    ASSERT_EQ(p.cluster, parts);
    ASSERT_EQ(verifiers(p), std::vector<std::string>());
    sim::test::for_each_schedule([&](const sim::SimOptions& options) {
      ASSERT_EQ(lowered.simulate(p, options), std::set<std::string>()) << sim::test::order_name(options);
    });
    expect_named(lowered, {"shares are read before the blocks have met",
                           [](ThreadProgram& q) { return remove_meeting(q, 0); },
                           "gemm:c.parts",
                           {"uninitialised_read", "data_race", "foreign_read"}});
    expect_named(lowered, {"sums are left where products of other warps may still read tiles",
                           remove_barrier_in_front,
                           "a product may still read it",
                           {"operand_in_flight", "data_race"}});
    expect_named(lowered, {"blocks end before their sums are read",
                           [](ThreadProgram& q) { return remove_meeting(q, -1); },
                           "may be over when threads of another arrive at its barrier or read its memory",
                           {"cluster_left"}});
    if (parts != 2) continue;
    // What the block keeps lies in registers alone.
    expect_named(lowered, {"the share of the other block",
                           [](ThreadProgram& q) {
                             return change<ClusterLoad>(q, [&](ClusterLoad& l) {
                               l.block = q.exprs.sub(q.exprs.const_int(1), l.block);
                               return true;
                             });
                           },
                           "gemm:c.parts",
                           {"uninitialised_read", "foreign_read"}});
  }
}

}  // namespace
}  // namespace tilegen::differential
