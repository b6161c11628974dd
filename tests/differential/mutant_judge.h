// Mutants of the kernels of one program, lowered for a simulated GPU: which check names each defect, and for
// what nobody notices the proof that nothing changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../unit/sim/mutants.h"
#include "executors.h"

namespace tilegen::differential {

struct MutantTally {
  struct Row {
    int64_t mutants = 0;
    int64_t named = 0;                      // by a finding or by verify_synchronization
    int64_t by_values = 0;                  // no finding, but other results
    int64_t proven = 0;                     // survives, with a proof that it is the same program
    std::map<std::string, int64_t> checks;  // that named it
    std::map<std::string, int64_t> proofs;
  };
  std::map<sim::test::Mutation, Row> rows;
  std::vector<std::string> by_values;  // what only the results show
  std::vector<std::string> proven;     // survivors with their proofs
  std::vector<std::string> unproven;   // survivors without

  Row total() const;
  std::string to_text() const;
};

// Which of the mutants to judge: a function of the seed, the program's name and the mutant's place.
struct MutantSample {
  uint64_t seed = 1;
  int64_t of = 1;        // one of so many
  int64_t programs = 1;  // of one program of so many
};

// Judges mutants of every form of every kernel that one of the launches takes. The unspoilt program must be
// clean and serve at least one launch. Returns an error text, or empty; a program that the target refuses has
// no mutants.
std::string judge_program(const std::string& name, const std::string& text, const std::string& target,
                          const std::vector<Launch>& launches, const MutantSample& sample,
                          MutantTally& tally);

}  // namespace tilegen::differential
