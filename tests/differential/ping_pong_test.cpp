// Warpgroups that take turns with the matrix units: the results are those without turns, for every number of
// iterations, tiles and warpgroups, under every order of warps; and what is missing of a turn is named.
#include <algorithm>
#include <regex>
#include <set>

#include "attention_kernel.h"
#include "thread/sync_verify.h"
#include "thread/transaction_verify.h"

namespace tilegen::differential {
namespace {

using thread::Barrier;
using thread::ThreadProgram;

plan::Schedule turns(bool on, const Attention& a = {}) {
  plan::Schedule s;
  s.kernels.resize(1);
  s.kernels[0].kernel = "attention";
  plan::LoopPlan loop;
  loop.loop = a.guarded ? "attention/if#0/kb" : "attention/kb";
  loop.num_stages = 2;
  loop.ping_pong = on;
  s.kernels[0].loops = {loop};
  return s;
}

// `alone`: a block walks one point of the grid.
AttentionKernel kernel_of(const Attention& a, bool on, bool alone = false) {
  plan::Schedule given = turns(on, a);
  if (alone) given.kernels[0].persistence = plan::PersistencePlan{};
  return AttentionKernel(a, given);
}
sim::SimOptions uncounted(sim::SimOptions options = {}) {
  options.count = false;
  return options;
}

Attention tile_of(int64_t warpgroups) {
  Attention a;
  a.rows = 64 * warpgroups;
  a.threads = static_cast<int>(128 * warpgroups);
  return a;
}

int64_t arrivals(const ThreadProgram& p) {
  return std::count_if(p.stmts.begin(), p.stmts.end(), [](const thread::Stmt& s) {
    const auto* b = std::get_if<Barrier>(&s.node);
    return b != nullptr && b->arrive_only;
  });
}

void expect_the_same(const Attention& a, const std::vector<Launch>& launches, bool alone) {
  const AttentionKernel with = kernel_of(a, true, alone), without = kernel_of(a, false, alone);
  ASSERT_GT(arrivals(with.best()), 0);
  ASSERT_EQ(arrivals(without.best()), 0);
  ASSERT_EQ(with.best().launched_var.valid(), !alone);
  EXPECT_EQ(thread::verify_synchronization(with.best()), std::vector<std::string>());
  for (const Launch& l : launches) {
    const auto expected = without.run(without.best(), l, uncounted());
    ASSERT_EQ(expected.findings, std::set<std::string>());
    sim::test::for_each_schedule([&](const sim::SimOptions& options) {
      const auto got = with.run(with.best(), l, uncounted(options));
      EXPECT_EQ(got.findings, std::set<std::string>()) << sim::test::order_name(options) << to_text({"", l});
      EXPECT_TRUE(got.bytes == expected.bytes) << sim::test::order_name(options) << to_text({"", l});
    });
    if (testing::Test::HasFailure()) return;
  }
}
void expect_the_same(const Attention& a, const std::vector<Launch>& launches) {
  for (bool alone : {false, true}) expect_the_same(a, launches, alone);
}

TEST(PingPong, OneToSevenIterationsInTilesOfPersistentBlocks) {
  expect_the_same(tile_of(2), {attention_launch(200, 1, 3), attention_launch(300, 128, 2),
                               attention_launch(64, 192), attention_launch(100, 7 * 64 - 5)});
}

// The longest first, down to none.
TEST(PingPong, IterationsThatDifferByBlockDownToNone) {
  Attention a = tile_of(2);
  a.right = 0;
  expect_the_same(a, {attention_launch(400, 100), attention_launch(300, 300)});
}

TEST(PingPong, ThreeWarpgroupsInARing) {
  Attention a = tile_of(3);
  expect_the_same(a, {attention_launch(400, 130, 2), attention_launch(190, 1), attention_launch(10, 7 * 64)});
  a.right = 0;
  a.mask_in_branch = true;
  expect_the_same(a, {attention_launch(600, 250)});
}

TEST(PingPong, PackedSequencesOfAnyLengths) {
  Attention a = tile_of(2);
  a.packed = a.guarded = true;
  Launch l;
  l.dims = {{"batch", 4}, {"heads", 2}, {"queries", 130}, {"all_queries", 210}, {"all_keys", 310}};
  l.whole = {{"query_ends", {0, 64, 64, 70, 200}}, {"key_ends", {0, 64, 100, 100, 300}}};
  l.data = Data::reals;
  l.magnitude = 2;
  expect_the_same(a, {l});
}

// ---- what is missing

bool is_turn(const ThreadProgram& p, const Barrier& b) {
  return b.id > 0 && p.named_barriers[static_cast<size_t>(b.id - 1)].use == thread::BarrierUse::order;
}

// The barriers of turns, in program order.
std::vector<Barrier*> turn_barriers(ThreadProgram& p, bool arrive_only) {
  std::vector<Barrier*> list;
  for (thread::Stmt& s : p.stmts)
    if (auto* b = std::get_if<Barrier>(&s.node); b && is_turn(p, *b) && b->arrive_only == arrive_only)
      list.push_back(b);
  return list;
}

void remove(ThreadProgram& p, thread::Block& block, const Barrier* which) {
  std::erase_if(block,
                [&](thread::StmtId id) { return std::get_if<Barrier>(&p.stmts[id.value].node) == which; });
  for (thread::StmtId id : block)
    for (thread::Block* inside : thread::blocks_inside(p.stmts[id.value].node)) remove(p, *inside, which);
}

TEST(PingPong, EveryArrivalAndEveryWaitThatIsMissingIsNamed) {
  const AttentionKernel kernel = kernel_of(tile_of(2), true);
  const std::set<std::string> named = {"deadlock", "barrier_abandoned", "barrier_unclaimed"};
  for (bool arrival : {true, false}) {
    ThreadProgram whole = kernel.best();
    const size_t count = turn_barriers(whole, arrival).size();
    // of the peeled iteration and of the loop's for two warpgroups, and the first or last turn
    EXPECT_EQ(count, 5u);
    for (size_t i = 0; i < count; ++i) {
      SCOPED_TRACE((arrival ? "arrival " : "wait ") + std::to_string(i));
      ThreadProgram p = whole;
      remove(p, p.body, turn_barriers(p, arrival)[i]);
      const std::vector<std::string> said = thread::verify_transactions(p);
      EXPECT_TRUE(std::any_of(said.begin(), said.end(), [&](const std::string& s) {
        return s.find("a deadlock: ") != s.npos || s.find("whom nobody waits for") != s.npos ||
               s.find("before its last arrival is taken") != s.npos;
      })) << testing::PrintToString(said);
      sim::test::for_each_schedule([&](const sim::SimOptions& options) {
        const auto findings = kernel.run(p, attention_launch(200, 190, 2), uncounted(options)).findings;
        EXPECT_TRUE(
            std::any_of(named.begin(), named.end(), [&](const std::string& n) { return findings.count(n); }))
            << sim::test::order_name(options) << testing::PrintToString(findings);
      });
    }
  }
}

TEST(PingPong, TurnsPassedToTheWrongWarpgroupAreNamed) {
  const AttentionKernel kernel = kernel_of(tile_of(3), true);
  ThreadProgram p = kernel.best();
  for (Barrier* b : turn_barriers(p, true)) {
    const int64_t whose = p.named_barriers[static_cast<size_t>(b->id - 1)].first;
    b->id = p.named_barrier({thread::BarrierUse::order, (whose + 1) % 3});
  }
  EXPECT_FALSE(thread::verify_transactions(p).empty());
  EXPECT_FALSE(kernel.run(p, attention_launch(200, 190), uncounted()).findings.empty());
}

TEST(PingPong, BarriersThatCountOthersAreNamed) {
  const AttentionKernel kernel = kernel_of(tile_of(3), true);
  ThreadProgram p = kernel.best();
  turn_barriers(p, true)[1]->threads = 128;
  const std::vector<std::string> said = thread::verify_transactions(p);
  EXPECT_TRUE(std::any_of(said.begin(), said.end(), [](const std::string& s) {
    return s.find(" threads here, and for ") != s.npos;
  })) << testing::PrintToString(said);
  EXPECT_FALSE(kernel.run(p, attention_launch(200, 190), uncounted()).findings.empty());
}

// ---- the code

TEST(PingPong, IsInTheCodeWhereItIsAskedFor) {
  for (bool on : {true, false}) {
    auto parsed = ir::parse_program(attention_text(tile_of(2)), "attention.tl", Limits{});
    ASSERT_TRUE(parsed);
    driver::CompileOptions options;
    options.schedule = turns(on);
    auto artifact = driver::compile(std::make_shared<const ir::Program>(std::move(*parsed)),
                                    *target::find_target("sm_90a"), options);
    ASSERT_TRUE(artifact) << artifact.error().to_text();
    // A barrier for each warpgroup's turn, of the two that meet there.
    const std::string code = (*artifact)->code;
    std::set<std::string> arrive, wait;
    const std::regex turn("bar\\.(sync|arrive) ([1-9][0-9]*), 256;");
    for (std::sregex_iterator at(code.begin(), code.end(), turn), end; at != end; ++at)
      ((*at)[1] == "arrive" ? arrive : wait).insert((*at)[2]);
    EXPECT_EQ(arrive.size(), on ? 2u : 0u);
    EXPECT_TRUE(std::includes(wait.begin(), wait.end(), arrive.begin(), arrive.end()));
  }
}

}  // namespace
}  // namespace tilegen::differential
