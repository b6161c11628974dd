// Mechanical defects of a good thread program: would the simulator notice each of them?
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/simulator.h"

namespace tilegen::sim::test {

enum class Mutation : uint8_t {
  barrier_removed,
  wait_weakened,  // one more group may be unfinished
  commit_removed,
  slots_reduced,      // the last slot of a memory falls onto the first, for all accesses
  predicate_removed,  // of one store, load or async copy; or one branch is always taken
  swizzle_dropped,    // of one access to shared memory: x ^ y becomes x
};
const char* mutation_name(Mutation m);

// One place where a program can be spoilt in one way.
struct MutationSite {
  Mutation mutation = Mutation::barrier_removed;
  uint32_t at = 0;     // statement, or memory of slots_reduced
  bool loads = false;  // predicate_removed: of the loads in the statement's expressions
  std::string where;   // what is changed
};
// All that may differ from `p`, in program order.
std::vector<MutationSite> mutation_sites(const thread::ThreadProgram& p);
// Nothing where the statement has nothing of that kind.
std::optional<thread::ThreadProgram> mutate(const thread::ThreadProgram& p, const MutationSite& site);
// The unspoilt program with a store far out of bounds wherever a predicate that the site drops is false: when
// it runs without a finding, the predicates held everywhere, and dropping them changed nothing.
std::optional<thread::ThreadProgram> predicate_probe(const thread::ThreadProgram& p,
                                                     const MutationSite& site);

// The unspoilt program with a store far out of bounds wherever the predicate of the site's store is false, or
// the condition of the site's branch around stores alone, and what would be stored is not what is there:
// without a finding, dropping it changes nothing. Nothing for branches that do more.
std::optional<thread::ThreadProgram> store_probe(const thread::ThreadProgram& p, const MutationSite& site);

// The unspoilt program with a store far out of bounds before the site's statement: without a finding the
// statement never runs. Nothing for slots_reduced.
std::optional<thread::ThreadProgram> reach_probe(const thread::ThreadProgram& p, const MutationSite& site);
// The mutant in which whatever the dropped predicate kept from being read or written is `poison` (NaN for
// floats, this number for integers) instead: when the results are the same, nothing uses it. Nothing where
// the statement does more than write.
std::optional<thread::ThreadProgram> poisoned(const thread::ThreadProgram& p, const MutationSite& site,
                                              int poison);

struct Mutant {
  Mutation mutation = Mutation::barrier_removed;
  std::string where;  // what was changed
  thread::ThreadProgram program;
};

// Every mutant of `p`; at most `limit` of each kind, spread evenly.
std::vector<Mutant> mutants_of(const thread::ThreadProgram& p, size_t limit = 64);

struct MutantReport {
  struct Row {
    int mutants = 0, by_findings = 0, by_values = 0, survived = 0;
    std::map<std::string, int> kinds;  // finding kinds that killed
    std::vector<std::string> survivors;
  };
  std::map<Mutation, Row> rows;
  std::string to_text() const;
  int survivors() const;
};

// What running one mutant shows.
struct MutantOutcome {
  std::vector<FindingKind> findings;
  bool values_differ = false;
};
MutantReport judge_mutants(const std::vector<Mutant>& mutants,
                           const std::function<MutantOutcome(const thread::ThreadProgram&)>& run);

}  // namespace tilegen::sim::test
