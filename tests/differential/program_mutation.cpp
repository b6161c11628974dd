#include "program_mutation.h"

#include <sstream>

#include "check/check_program.h"
#include "ir/text.h"

namespace tilegen::differential {

namespace {

constexpr int kTries = 12;  // for one edit that leaves a program

// As it is, or printed, when it parses and passes the checks.
std::string checked(const std::string& text, bool as_written) {
  const Limits limits;
  auto parsed = ir::parse_program(text, "mutated.tl", limits);
  if (!parsed || !check::check_program(*parsed, limits).empty()) return {};
  return as_written ? text : ir::print_program(*parsed);
}

// Lines without comments.
std::string bare(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    line.resize(line.find(';') == std::string::npos ? line.size() : line.find(';'));
    line.resize(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) out += line + "\n";
  }
  return out;
}

}  // namespace

std::string mutated_program(const std::string& text, Random& random, int edits) {
  auto parsed = ir::parse_program(text, "program.tl", Limits());
  if (!parsed) return text;
  // What a printed text has no words for (views, blocks of threads, jumps) stands in the text as it is
  // written.
  std::string best = random.chance(2) ? bare(text) : "";
  const bool as_written = !checked(best, true).empty();
  if (!as_written) best = ir::print_program(*parsed);
  for (int tries = 0; edits > 0 && tries < kTries * edits; ++tries) {
    ProgramText next(best);
    const std::span<const Mutation> list = random.chance(2) ? token_mutations() : statement_mutations();
    if (!random.pick<Mutation>(list)(next, random)) continue;
    const std::string found = checked(next.text(), as_written);
    if (found.empty() || found == best) continue;
    best = found;
    --edits;
  }
  return best;
}

}  // namespace tilegen::differential
