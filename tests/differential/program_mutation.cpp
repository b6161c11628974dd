#include "program_mutation.h"

#include "check/check_program.h"
#include "ir/text.h"

namespace tilegen::differential {

namespace {

constexpr int kTries = 12;  // for one edit that leaves a program

// Printed, when it parses and passes the checks.
std::string checked(const std::string& text) {
  const Limits limits;
  auto parsed = ir::parse_program(text, "mutated.tl", limits);
  if (!parsed || !check::check_program(*parsed, limits).empty()) return {};
  return ir::print_program(*parsed);
}

}  // namespace

std::string mutated_program(const std::string& text, Random& random, int edits) {
  auto parsed = ir::parse_program(text, "program.tl", Limits());
  if (!parsed) return text;
  std::string best = ir::print_program(*parsed);
  for (int tries = 0; edits > 0 && tries < kTries * edits; ++tries) {
    ProgramText next(best);
    const std::span<const Mutation> list = random.chance(2) ? token_mutations() : statement_mutations();
    if (!random.pick<Mutation>(list)(next, random)) continue;
    const std::string found = checked(next.text());
    if (found.empty() || found == best) continue;
    best = found;
    --edits;
  }
  return best;
}

}  // namespace tilegen::differential
