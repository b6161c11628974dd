// Mechanical defects of a good thread program: would the simulator notice each of them?
#pragma once

#include <functional>
#include <map>
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

struct Mutant {
  Mutation mutation = Mutation::barrier_removed;
  std::string where;  // what was changed
  thread::ThreadProgram program;
};

// Every mutant of `p`; programs that do not differ from it are left out. At most `limit` of each kind, spread
// evenly.
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
