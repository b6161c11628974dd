// Judging the mutants of a list of programs: nine of ten must fall to a check that names them, none may
// change a result unnoticed, and what survives must be proven to be the same program.
//   TILEGEN_MUTANTS=all   every mutant instead of a sample
//   TILEGEN_MUTANTS=n     one of n
//   TILEGEN_SEED=n        of the sample
//   TILEGEN_TARGETS=a,b   on these targets, of kMutantTargets
//   TILEGEN_PART=k/n      every n-th program from the k-th (0, 1, ...): parts of a long run
//   TILEGEN_SHOW=1        what only values show, and what survives, by name
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "mutant_judge.h"

namespace tilegen::differential {

// Survivors that no mechanical proof covers: what their names contain, and why nothing changed.
struct KnownSurvivor {
  const char *program, *site, *why;
};
constexpr KnownSurvivor kKnownSurvivors[] = {
    {"Local.BuffersOfEveryType", "predicate removed k/i/if#0/store#0",
     "a[0] and a[1] hold s; what is stored, c[0, 2], was a[1] and is s too"},
    {"Local.BuffersOfEveryType", "predicate removed k/v/store#0",
     "the last iteration leaves c[2, 2] in a[6] where the first left c[0, 0]: both are s"},
    {"ThreadWrittenOperand.PlacesOfWriters", "swizzle dropped gemm/fill#1 ",
     "every element is 1, wherever in its row it is put"},
    {"ThreadWrittenOperand.PlacesOfWriters", "swizzle dropped gemm/ko/if#0/i.j ",
     "i % 4 - ko is the same for a whole row, which the swizzle does not leave"},
    {"ArgReduce.TypesAxesShapes", "swizzle dropped k/reduce#0 ",
     "the row is read in another order, and its largest element is the same"},
    {"Threads.TransactionBarriers", "predicate removed k/k/mbarrier_wait#",
     "the other warps wait, too, for a phase that comes in any case"},
    {"Orders.IterationsOfABlock", "predicate removed k/i (statement 4)",
     "the other warps, too, exchange the elements for the numbers that the first one puts there"},
    {"warp_ring.tl", "predicate removed sums/k/mbarrier_wait#",
     "the other warps wait, too, for a phase that comes in any case"},
    {"copy_roles.tl", "predicate removed products/k/mbarrier_wait#",
     "the other warps wait, too, for a phase that comes in any case"},
};
inline const char* known_survivor(const std::string& name) {
  for (const KnownSurvivor& k : kKnownSurvivors)
    if (name.find(k.program) != std::string::npos && name.find(k.site) != std::string::npos) return k.why;
  return nullptr;
}

struct MutantCase {
  std::string name, text;
  std::vector<Launch> launches;
  int64_t rarer = 1;  // times as rarely in a sample of the programs
};

inline MutantSample mutant_sample(int64_t one_of, int64_t programs) {
  MutantSample s;
  s.of = one_of;
  s.programs = programs;
  if (const char* asked = std::getenv("TILEGEN_MUTANTS")) {
    s.of = std::string(asked) == "all" ? 1 : std::max<int64_t>(1, std::atoll(asked));
    s.programs = 1;
  }
  if (const char* seed = std::getenv("TILEGEN_SEED")) s.seed = std::strtoull(seed, nullptr, 10);
  return s;
}

// Which programs this run judges: number % of == part.
inline bool in_part(size_t number) {
  const char* asked = std::getenv("TILEGEN_PART");
  size_t part = 0, of = 1;
  if (asked && (std::sscanf(asked, "%zu/%zu", &part, &of) != 2 || part >= of)) {
    ADD_FAILURE() << "TILEGEN_PART is k/n with k below n, not " << asked;
    return false;
  }
  return number % of == part;
}

constexpr const char* kMutantTargets[] = {"sim:sm_80", "sim:sm_90", "sim:gfx942"};

inline bool is_asked(const std::string& target) {
  const char* asked = std::getenv("TILEGEN_TARGETS");
  return !asked || ("," + std::string(asked) + ",").find("," + target + ",") != std::string::npos;
}

inline MutantTally judge_all(const std::vector<MutantCase>& cases, const MutantSample& sample) {
  MutantTally tally;
  for (size_t number = 0; number < cases.size(); ++number) {
    if (!in_part(number)) continue;
    const MutantCase& c = cases[number];
    const size_t before = tally.unproven.size();
    const auto start = std::chrono::steady_clock::now();
    MutantSample own = sample;
    if (own.programs > 1) own.programs *= c.rarer;
    for (const char* target : kMutantTargets)
      if (is_asked(target)) EXPECT_EQ(judge_program(c.name, c.text, target, c.launches, own, tally), "");
    if (!std::getenv("TILEGEN_SHOW")) continue;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << c.name << ": " << seconds.count() << " s; so far " << tally.total().mutants << " mutants"
              << std::endl;
    if (tally.unproven.size() > before)
      for (const Launch& l : c.launches) std::cout << to_text({&l == &c.launches[0] ? c.text : "", l});
  }
  return tally;
}

inline void expect_named(const MutantTally& tally) {
  std::cout << tally.to_text();
  if (std::getenv("TILEGEN_SHOW"))
    for (const auto* list : {&tally.by_values, &tally.proven})
      for (const std::string& s : *list)
        std::cout << (list == &tally.proven ? "  same: " : "  values: ") << s << "\n";
  for (const std::string& s : tally.unproven) {
    if (const char* why = known_survivor(s))
      std::cout << "  same: " << s << ": " << why << "\n";
    else
      ADD_FAILURE() << "survives without a proof: " << s;
  }
  const MutantTally::Row all = tally.total();
  const double share =
      static_cast<double>(all.named) / static_cast<double>(std::max<int64_t>(1, all.mutants - all.proven));
  std::cout << all.mutants << " mutants, " << all.named << " named, " << all.by_values << " by values only, "
            << all.proven << " the same program: " << 100 * share << " % of the defects are named\n";
  EXPECT_GE(share, 0.9);
}

}  // namespace tilegen::differential
