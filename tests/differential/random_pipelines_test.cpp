// Products in pipelined loops (random_pipeline.h) on the simulators, where the copy engine and warpgroups do
// them, and in machine code of AMD targets, where loads stand between matrix instructions.
//   TILEGEN_SEED=n   that one, with its text      TILEGEN_COUNT=n   that many
//   TILEGEN_SHOW_INVALID=1   why programs may not run or a target refuses them
#include <gtest/gtest.h>

#include <cstdlib>

#include "random_pipeline.h"

namespace tilegen::differential {
namespace {

TEST(RandomPipelines, GpusAgree) {
  uint64_t first = 1, count = 40;
  if (const char* seed = std::getenv("TILEGEN_SEED")) first = std::strtoull(seed, nullptr, 10), count = 1;
  if (const char* asked = std::getenv("TILEGEN_COUNT")) count = std::strtoull(asked, nullptr, 10);
  uint64_t invalid = 0, refused = 0, defects = 0;
  for (uint64_t seed = first; seed < first + count && defects < 3; ++seed) {
    Case c = random_pipeline(seed);
    c.targets = {seed % 4 == 0   ? simulator_in_turn(seed / 4, c.text)
                 : seed % 8 == 2 ? "gfx942"
                 : seed % 8 == 6 ? "gfx90a"
                                 : "sim:sm_90a"};
    const Outcome o = compare_executors(c);
    invalid += o.kind == Outcome::Kind::invalid;
    refused += o.kind == Outcome::Kind::refused;
    if (count == 1 || (o.kind != Outcome::Kind::agree && std::getenv("TILEGEN_SHOW_INVALID")))
      std::cout << (count == 1 ? to_text(c) : "") << "seed " << seed << " " << kind_name(o.kind) << " "
                << o.text << "\n";
    if (!o.is_defect()) continue;
    ++defects;
    ADD_FAILURE() << "seed " << seed << ": " << kind_name(o.kind) << ": " << o.text << "\n" << to_text(c);
  }
  EXPECT_LE(invalid * 5, count) << "the generator makes too many programs that may not run";
  EXPECT_LE(refused * 5, count);
}

}  // namespace
}  // namespace tilegen::differential
