// One mutated program with launches for it, and what all executors make of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data.h"
#include "executors.h"

namespace tilegen::differential {

struct MutatedCase {
  std::string source;  // the file that it is a mutant of
  std::string text;
  std::vector<Launch> launches;
};

// Sizes and data; dims as their facts allow.
Launch some_launch(const ir::Program& p, Random& random);

// A function of the seed and of the programs of tests/files and of the regressions.
MutatedCase mutated_case(uint64_t seed);

struct Judgement {
  Outcome outcome;  // kind `invalid`: no launch has a defined result
  Launch launch;    // the one that `outcome` is of
};

// Compiles, runs and compares on each of the targets. Defects: internal errors and crashes of any program
// that passes the checks; and where the launch has a defined result, a compilation refused with no stated
// limit, a refused launch, a finding of a simulator, memory that differs from the interpreter's by more than
// docs/numerics.md leaves open.
Judgement judge_mutated(const std::string& text, const std::vector<Launch>& launches,
                        const std::vector<std::string>& targets);

}  // namespace tilegen::differential
