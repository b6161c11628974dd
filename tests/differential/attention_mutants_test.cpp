// Mechanical defects of specialised attention: the check that names each, at compile time one of the
// verifiers, else the simulator in loops of 0 to 7 blocks of keys. What survives is listed with the reason
// why it is the same program.
//   TILEGEN_MUTANTS=n     one of n defects instead of one of four; all, or TILEGEN_LONG=1: all
//   TILEGEN_SEED=n        of the sample
//   TILEGEN_SHOW=1        what the simulator alone makes of them, and who survives
#include <iostream>
#include <map>

#include "attention_kernel.h"
#include "mutants.h"
#include "specialised_sites.h"
#include "thread/sync_verify.h"
#include "thread/transaction_verify.h"

namespace tilegen::differential {
namespace {

using thread::ThreadProgram;

// ---- what nobody names

struct Survivor {
  const char *kind, *where, *why;
};
using Survivors = std::vector<Survivor>;

constexpr const char* kBehindValues =
    "the producer fills K's place again only after V of the block before, whose wait is for all products of "
    "this iteration";
constexpr const char* kListedForWork =
    "its scores are finished already: they are listed so that the work on them stays beside the products";
constexpr const char* kNothingUnderWay = "after the loop all products have been waited for";
constexpr const char* kOtherSlot =
    "the producer waits slot by slot: this wait or the ones before it are for as late a release";
constexpr const char* kNobodyWaits =
    "the block has one tile: nothing is filled after it, and nothing was before";

const Survivors kOfAll = {
    {"release before the wait", "attention/kb, arrival at attention/kb:Ks.empty #2", kBehindValues},
    {"release before the use", "attention/kb, arrival at attention/kb:Ks.empty #2", kBehindValues},
    {"wait for products without its registers", "attention/kb, attention:scores #3", kListedForWork},
    {"wait for products weakened", "attention/copy#1", kNothingUnderWay},
    {"wait for products after the use", "attention/copy#1", kNothingUnderWay},
    {"wait for products without its registers", "attention/copy#1, attention:out", kNothingUnderWay}};
const Survivors kOfTwoSlots = {
    {"wait for another slot", "attention/kb/copy#0, wait for attention/kb:Ks.empty", kOtherSlot},
    {"wait for another slot", "attention/kb/copy#3, wait for attention/kb:Vs.empty", kOtherSlot}};
const Survivors kOfManyTiles = {
    {"arrival for another slot", "attention/kb, arrival at attention:Qs.empty", kOtherSlot},
    {"wait for another slot", "attention/copy#0, wait for attention:Qs.empty", kOtherSlot}};
const Survivors kOfOneTile = {
    {"an arrival more counted", "attention:Qs.empty", kNobodyWaits},
    {"an arrival fewer counted", "attention:Qs.empty", kNobodyWaits},
    {"arrival removed", "attention/kb, arrival at attention:Qs.empty", kNobodyWaits},
    {"release before the wait", "attention/kb, arrival at attention:Qs.empty", kNobodyWaits},
    {"release before the use", "attention/kb, arrival at attention:Qs.empty", kNobodyWaits},
    {"wait for a phase removed", "attention/copy#0, wait for attention:Qs.empty", kNobodyWaits},
    {"wait for a phase after the use", "attention/copy#0, wait for attention:Qs.empty", kNobodyWaits},
    {"arrival removed", "attention/kb, arrival at attention/kb:Vs.empty #2", kNobodyWaits},
    {"arrival for another slot", "attention/kb, arrival at attention/kb:Vs.empty #2", kNobodyWaits},
    {"release before the wait", "attention/kb, arrival at attention/kb:Vs.empty #2", kNobodyWaits},
    {"release before the use", "attention/kb, arrival at attention/kb:Vs.empty #2", kNobodyWaits},
    {"arrival for another slot", "attention/kb, arrival at attention/kb:Ks.empty #2", kOtherSlot},
    {"arrival for another slot", "attention/kb, arrival at attention/kb:Vs.empty", kOtherSlot},
    {"wait for the store removed", "attention/copy#1", kNobodyWaits},
    {"wait for the store weakened", "attention/copy#1", kNobodyWaits},
    {"named barrier removed", "attention/copy#1, barrier 1", kNobodyWaits},
    {"named barrier removed", "attention/copy#1, barrier 2", kNobodyWaits}};

// Only the results say so: no layout is planned for the tile that results are staged in.
const Survivors kByValues = {{"store from another stage", "attention/copy#1", ""},
                             {"store from another stage", "attention/copy#1 #2", ""}};

Survivors all_of(std::initializer_list<Survivors> lists) {
  Survivors all;
  for (const Survivors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// ---- the programs

// Of a walk that finds a hazard the first line says what it is.
std::vector<std::string> said_by_verifiers(const ThreadProgram& p) {
  using Verifier = std::pair<const char*, std::vector<std::string> (*)(const ThreadProgram&)>;
  for (const auto& [name, verify] : {Verifier("verify_thread_program", thread::verify_thread_program),
                                     Verifier("verify_transactions", thread::verify_transactions),
                                     Verifier("verify_synchronization", thread::verify_synchronization)})
    if (const auto lines = verify(p); !lines.empty()) return {name, lines[0]};
  return {};
}

struct Subject {
  const char* name;
  Attention a;
  plan::Schedule given;
  std::vector<Launch> launches;
  Survivors survivors, by_values = {};
};

plan::Schedule walk(const char* order, bool ping_pong, int64_t stages = 2) {
  plan::Schedule given = persistence(order);
  plan::LoopPlan loop;
  loop.loop = "attention/kb";
  loop.num_stages = stages;
  loop.ping_pong = ping_pong;
  given.kernels[0].loops = {loop};
  return given;
}

// Tiles of two warpgroups; one block walks several of them where blocks walk.
std::vector<Subject> subjects() {
  Attention full;
  full.rows = 128;
  full.threads = 256;
  Attention causal = full, window = full;
  causal.right = window.right = 0;
  window.left = 100;
  window.dim = 96;
  window.keys = 80;
  // 7 blocks of keys, 1, and 2 and 3.
  const std::vector<Launch> every = {attention_launch(140, 7 * 64 - 5), attention_launch(100, 1, 5),
                                     attention_launch(140, 128), attention_launch(100, 130)};
  // Tiles of 0, 1, 3 and 4 blocks; of one each; many of none after those of one.
  const Launch falling = attention_launch(400, 200), ones = attention_launch(100, 60, 5),
               none = attention_launch(400, 60, 3);
  return {{"in turns, tiles dealt out, causal",
           causal,
           walk("static", true),
           {falling, ones, none},
           all_of({kOfAll, kOfTwoSlots, kOfManyTiles})},
          {"in turns, tiles claimed, causal",
           causal,
           walk("dynamic", true),
           {falling, ones, none},
           all_of({kOfAll, kOfTwoSlots, kOfManyTiles})},
          {"a block a tile", full, walk("none", false), every, all_of({kOfAll, kOfTwoSlots, kOfOneTile})},
          {"tiles claimed, in a window",
           window,
           walk("dynamic", false, 3),
           {falling, ones, none, attention_launch(300, 300)},
           all_of({kOfAll, kOfManyTiles}),
           kByValues}};
}

class Judge {
 public:
  explicit Judge(const Subject& s) : s_(s), kernel_(s.a, s.given) {
    EXPECT_EQ(said_by_verifiers(kernel_.best()), std::vector<std::string>());
    for (const Launch& l : s.launches) {
      expected_.push_back(run(kernel_.best(), l, {}));
      EXPECT_EQ(expected_.back().findings, std::set<std::string>());
      EXPECT_EQ(run(kernel_.best(), l, {}, true).findings, std::set<std::string>());
    }
  }
  std::vector<SpecialisedDefect> defects() const { return specialised_defects(kernel_.best()); }

  struct Verdict {
    std::string by;        // who named it; empty: nobody
    bool differs = false;  // ... and results are others
  };
  Verdict judge(const SpecialisedDefect& d, bool simulator_alone) const {
    ThreadProgram p = kernel_.best();
    d.spoil(p);
    if (!simulator_alone)
      if (const auto said = said_by_verifiers(p); !said.empty()) return {said[0]};
    Verdict v;
    if (const auto got = run(p, s_.launches[0], {}, true); !got.findings.empty())
      return {*got.findings.begin()};
    sim::test::for_each_schedule([&](const sim::SimOptions& options) {
      for (size_t i = 0; v.by.empty() && i < s_.launches.size(); ++i) {
        const auto got = run(p, s_.launches[i], options);
        if (!got.findings.empty()) v.by = *got.findings.begin();
        v.differs = v.differs || got.bytes != expected_[i].bytes;
      }
    });
    return v;
  }

  // Who names it under some other order: warps that fall far behind their neighbours, or go on one by one.
  std::string in_other_orders(const SpecialisedDefect& d) const {
    ThreadProgram p = kernel_.best();
    d.spoil(p);
    for (uint64_t seed = 1; seed <= 12; ++seed)
      for (const int64_t switch_every : {1, 4, 60, 1000})
        for (const Launch& l : s_.launches) {
          sim::SimOptions options;
          options.order = sim::WarpOrder::random;
          options.seed = seed;
          options.switch_every = switch_every;
          options.async_latest = false;
          if (const auto got = run(p, l, options); !got.findings.empty()) return *got.findings.begin();
        }
    return {};
  }

 private:
  AttentionKernel::Run run(const ThreadProgram& p, const Launch& l, sim::SimOptions options,
                           bool judge_elements = false) const {
    options.count = false;
    options.first_finding_ends = true;
    options.resident_blocks = p.launched_var.valid() ? 1 : 0;
    return kernel_.run(p, l, options, judge_elements);
  }

  const Subject& s_;
  AttentionKernel kernel_;
  std::vector<AttentionKernel::Run> expected_;
};

using Names = std::set<std::string>;
Names names(const Survivors& list) {
  Names all;
  for (const Survivor& s : list) all.insert(std::string(s.kind) + ": " + s.where);
  return all;
}

TEST(AttentionMutants, AreNamed) {
  const MutantSample sample = mutant_sample(long_run() ? 1 : 4, 1);
  std::set<std::string> kinds;  // one defect of each is in every sample
  const bool show = std::getenv("TILEGEN_SHOW") != nullptr;
  std::map<std::string, std::map<std::string, int>> by_kind, by_simulator;
  int defects = 0, named = 0;
  for (const Subject& s : subjects()) {
    SCOPED_TRACE(s.name);
    const Judge judge(s);
    Names survive, by_values;
    uint64_t number = 0;
    for (const SpecialisedDefect& d : judge.defects()) {
      Random random(sample.seed, s.name + d.kind + std::to_string(number++));
      if (random.below(sample.of) != 0 && !kinds.insert(d.kind).second) continue;
      kinds.insert(d.kind);
      ++defects;
      auto v = judge.judge(d, false);
      if (v.by.empty() && !v.differs && !names(s.survivors).contains(d.kind + ": " + d.where))
        v.by = judge.in_other_orders(d);
      named += !v.by.empty();
      const std::string who = !v.by.empty() ? v.by : v.differs ? "values only" : "the same program";
      ++by_kind[d.kind][who];
      if (v.by.empty()) (v.differs ? by_values : survive).insert(d.kind + ": " + d.where);
      if (show && v.by.empty())
        std::cout << s.name << ": " << d.kind << ": " << d.where << ": " << who << std::endl;
      if (!show) continue;
      const auto alone = judge.judge(d, true);
      ++by_simulator[d.kind][!alone.by.empty() ? alone.by : alone.differs ? "values only" : "nobody"];
    }
    if (sample.of == 1) {
      EXPECT_EQ(survive, names(s.survivors));
      EXPECT_EQ(by_values, names(s.by_values));
    }
    for (const std::string& what : survive)
      EXPECT_TRUE(names(s.survivors).contains(what)) << what << " survives without a proof";
    for (const std::string& what : by_values)
      EXPECT_TRUE(names(s.by_values).contains(what)) << what << " only changes results";
  }
  const auto print = [](const char* title, const std::map<std::string, std::map<std::string, int>>& rows) {
    if (!rows.empty()) std::cout << title << "\n";
    for (const auto& [kind, by] : rows) {
      std::cout << "  " << kind << ":";
      for (const auto& [name, n] : by) std::cout << " " << name << " " << n;
      std::cout << "\n";
    }
  };
  print("defects", by_kind);
  print("by the simulator alone", by_simulator);
  std::cout << defects << " defects, " << named << " named\n";
}

}  // namespace
}  // namespace tilegen::differential
