// Interprets a program and says whether its result is defined: no two iterations of a parallel loop and no
// two blocks of a kernel touch one element unless both only read it, no operation reads what it writes
// elsewhere, and nothing is read that nothing wrote, workspaces included. Programs that pass the checks may
// still do any of these, by indices that the checks cannot decide.
//
// Where docs/numerics.md leaves a value open (the order of a sum, a contraction, the error of a function, the
// sign of a zero) the run may take another one than the interpreter does. What such runs differ in, executors
// may.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ir/program.h"

namespace tilegen::differential {

enum class Rounding : uint8_t {
  reference,  // as the interpreter
  up,         // each inexact value away from it, as far as the contract allows, all to one side
  down,
  random
};

struct SanitizedOptions {
  Rounding rounding = Rounding::reference;
  uint64_t seed = 1;              // of Rounding::random
  int64_t max_steps = 2'000'000;  // elements read or written, iterations, and 16 products each
};

struct SanitizedResult {
  enum class Kind : uint8_t { defined, undefined, too_long } kind = Kind::defined;
  std::string why;
};

// `slots` as for interp::interpret. Memory holds the results only of a defined run.
SanitizedResult run_sanitized(const ir::Program& program, std::span<const uint64_t> slots,
                              const SanitizedOptions& options);

}  // namespace tilegen::differential
