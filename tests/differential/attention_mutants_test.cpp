// Mechanical defects of specialised attention: the check that names each, at compile time one of the verifiers, else the
// simulator in loops of 0, 1, 2, 3 and 7 blocks of keys. None may change a result and be named by nobody.
//   TILEGEN_MUTANTS=all   every defect instead of a sample, =n: one of n
//   TILEGEN_SEED=n        of the sample
//   TILEGEN_SHOW=1        who named what
#include <chrono>
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
  std::optional<plan::Schedule> given;
  std::vector<Launch> launches;
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
  // 1, 2, 3 and 7 blocks of keys.
  const std::vector<Launch> every = {attention_launch(140, 130), attention_launch(100, 1, 5), attention_launch(140, 128, 2),
                                     attention_launch(140, 7 * 64 - 5)};
  // Tiles of 0, 1, 3 and 4 blocks, of 2, 4 and 5, of one each, of 2 each.
  const std::vector<Launch> falling = {attention_launch(400, 200), attention_launch(300, 300), attention_launch(100, 60, 5),
                                       attention_launch(128, 128, 4)};
  return {{"in turns, tiles dealt out", full, walk("static", true), every},
          {"in turns, tiles claimed, causal", causal, walk("claimed", true), falling},
          {"a block a tile, causal", causal, walk("none", false, 3), falling},
          {"tiles claimed, in a window", window, walk("claimed", false, 3), falling}};
}

class Judge {
 public:
  explicit Judge(const Subject& s) : s_(s), kernel_(s.a, s.given) {
    EXPECT_EQ(said_by_verifiers(kernel_.best()), std::vector<std::string>());
    for (const Launch& l : s.launches) {
      expected_.push_back(run(kernel_.best(), l, {}));
      EXPECT_EQ(expected_.back().findings, std::set<std::string>());
    }
  }
  std::vector<SpecialisedDefect> defects() const { return specialised_defects(kernel_.best()); }

  struct Verdict {
    std::string by;       // who named it; empty: nobody
    bool differs = false; // ... and results are others
  };
  Verdict judge(const SpecialisedDefect& d, bool by_simulator) const {
    ThreadProgram p = kernel_.best();
    d.spoil(p);
    if (!by_simulator)
      if (const auto said = said_by_verifiers(p); !said.empty()) return {said[0]};
    Verdict v;
    sim::test::for_each_schedule([&](const sim::SimOptions& options) {
      for (size_t i = 0; v.by.empty() && i < s_.launches.size(); ++i) {
        const auto got = run(p, s_.launches[i], options);
        if (!got.findings.empty()) v.by = *got.findings.begin();
        v.differs = v.differs || got.bytes != expected_[i].bytes;
      }
    });
    return v;
  }

 AttentionKernel::Run run(const ThreadProgram& p, const Launch& l, sim::SimOptions options) const {
    options.count = false;
    options.first_finding_ends = true;
    options.resident_blocks = p.launched_var.valid() ? 1 : 0;
    return kernel_.run(p, l, options);
  }

  const Subject& s_;
  AttentionKernel kernel_;
  std::vector<AttentionKernel::Run> expected_;
};

TEST(AttentionMutants, AreNamed) {
  const MutantSample sample = mutant_sample(1, 1);
  std::map<std::string, std::map<std::string, int>> by_kind;
  for (const Subject& s : subjects()) {
    if (const char* only = std::getenv("ONLY"); only && std::string(s.name) != only) continue;
    const auto start = std::chrono::steady_clock::now();
    const Judge judge(s);
    uint64_t number = 0;
    for (const SpecialisedDefect& d : judge.defects()) {
      Random random(sample.seed, s.name + d.kind + std::to_string(number++));
      if (random.below(sample.of) != 0) continue;
      const std::string what = std::string(s.name) + ": " + d.kind + ": " + d.where;
      const auto v = judge.judge(d, std::getenv("BY_SIM") != nullptr);
      ++by_kind[d.kind][v.by.empty() ? (v.differs ? "WRONG" : "survives") : v.by];
      if (const char* dbg = std::getenv("DBG"); dbg && what.find(dbg) != what.npos) { ThreadProgram q = judge.kernel_.best(); d.spoil(q); std::cout << what << "\n" << thread::print_thread_program(q); }
      if (v.by.empty()) std::cout << (v.differs ? "UNNOTICED " : "survives ") << what << std::endl;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << s.name << " " << number << " defects " << seconds.count() << " s" << std::endl;
  }
  for (const auto& [kind, by] : by_kind) {
    std::cout << kind << ":";
    for (const auto& [name, n] : by) std::cout << " " << name << " " << n;
    std::cout << "\n";
  }
}

}  // namespace
}  // namespace tilegen::differential
