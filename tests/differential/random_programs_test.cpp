// Random programs on every executor.
//   TILEGEN_LONG=1    2000 programs instead of 150
//   TILEGEN_SEED=n    only that program, or TILEGEN_COUNT=m of them from there
//   TILEGEN_SHOW_INVALID=1   why programs may not run or a target refuses them
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "random_program.h"
#include "shrink.h"

namespace tilegen::differential {
namespace {

using Kind = Outcome::Kind;

// The smallest case that fails in the same way.
std::string smallest(const Case& c, const Outcome& failed) {
  const std::string way = way_of_failing(failed);
  const Case small = shrink(
      c, [&](const Case& x) { return way_of_failing(compare_executors(x)) == way; }, 600);
  return to_text(small) + compare_executors(small).text;
}

constexpr uint64_t kUsual = 100;

TEST(RandomPrograms, ExecutorsAgree) {
  uint64_t first = 1, count = long_run() ? 2000 : kUsual;
  if (const char* seed = std::getenv("TILEGEN_SEED")) first = std::strtoull(seed, nullptr, 10), count = 1;
  if (const char* asked = std::getenv("TILEGEN_COUNT")) count = std::strtoull(asked, nullptr, 10);
  const char* asked_targets = std::getenv("TILEGEN_TARGETS");
  RandomProgramOptions options;
  options.for_amd = asked_targets && std::string(asked_targets).find("gfx") != std::string::npos;
  uint64_t invalid = 0, refused = 0, defects = 0;
  for (uint64_t seed = first; seed < first + count && defects < 3; ++seed) {
    Case c = random_case(seed, options);
    // Asked for many or one: every target. Otherwise one each, in turn.
    const std::vector<std::string>& targets = executable_targets();
    if (count == kUsual) c.targets = {targets[seed % targets.size()]};
    if (count == 1) std::cout << to_text(c);
    const Outcome o = compare_executors(c);
    invalid += o.kind == Kind::invalid;
    refused += o.kind == Kind::refused;
    const bool told = o.kind == Kind::invalid || o.kind == Kind::refused;
    if (count == 1 || (told && std::getenv("TILEGEN_SHOW_INVALID")))
      std::cout << "seed " << seed << " " << kind_name(o.kind) << " " << o.text << "\n";
    if (!o.is_defect()) continue;
    ++defects;
    ADD_FAILURE() << "seed " << seed << ": " << kind_name(o.kind) << ": " << o.text
                  << "\nsmallest such program:\n"
                  << smallest(c, o);
  }
  RecordProperty("invalid", static_cast<int>(invalid));
  EXPECT_LE(invalid * 20, count) << "the generator makes too many programs that may not run";
  // Of 32 threads, tiles beyond 64 KiB and engines that are asked for AMD's GPUs take less.
  EXPECT_LE(refused * (options.for_amd ? 8 : 20), count);
}

// Programs lowered for a GPU and simulated: the same values, and no finding.
//   TILEGEN_SIM_COUNT=n    that many of them
//   TILEGEN_SIM_ANY=1      the programs of the test above instead of those made for GPUs
//   TILEGEN_SHOW_FAILED=1  why programs are refused
TEST(RandomPrograms, SimulatedGpuAgrees) {
  uint64_t first = 1, count = long_run() ? 1000 : 60;
  if (const char* seed = std::getenv("TILEGEN_SEED")) first = std::strtoull(seed, nullptr, 10), count = 1;
  if (const char* asked = std::getenv("TILEGEN_SIM_COUNT")) count = std::strtoull(asked, nullptr, 10);
  RandomProgramOptions options;
  options.for_gpu = true;
  options.budget = 40000;
  const bool any = std::getenv("TILEGEN_SIM_ANY") != nullptr;
  uint64_t refused = 0, invalid = 0;
  std::map<std::string, uint64_t> ways;  // of failing, with the programs that do
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Case c = any ? random_case(seed) : random_case(seed, options);
    c.targets = {simulator_in_turn(seed, c.text)};
    const Outcome o = compare_executors(c);
    refused += o.kind == Kind::refused;
    invalid += o.kind == Kind::invalid;
    if (count == 1 || (o.kind != Kind::agree && std::getenv("TILEGEN_SHOW_FAILED")))
      std::cout << (count == 1 ? to_text(c) : "") << "seed " << seed << " " << kind_name(o.kind) << " "
                << o.text << "\n";
    if (!o.is_defect() || ways[way_of_failing(o)]++ > 0) continue;
    ADD_FAILURE() << "seed " << seed << ": " << kind_name(o.kind) << ": " << o.text
                  << "\nsmallest such program:\n"
                  << smallest(c, o);
  }
  std::cout << count << " programs: " << refused << " refused, " << invalid << " invalid\n";
  for (const auto& [way, programs] : ways) std::cout << programs << " programs: " << way << "\n";
  EXPECT_LE(refused * 2, count);
}

// Integers at the edges of the types, on the host and on simulators.
//   TILEGEN_INTEGERS=n   that many expressions
TEST(RandomPrograms, IntegersWrap) {
  uint64_t first = 1, count = long_run() ? 1000 : 15;
  if (const char* seed = std::getenv("TILEGEN_SEED")) first = std::strtoull(seed, nullptr, 10), count = 1;
  if (const char* asked = std::getenv("TILEGEN_INTEGERS"))
    count = std::strtoull(asked, nullptr, 10) / kIntegersOfAProgram + 1;
  uint64_t defects = 0, told = 0;
  for (uint64_t seed = first; seed < first + count && defects < 3; ++seed) {
    Case c = random_integers(seed);
    c.targets = {"host", simulator_in_turn(seed, c.text), "sim:sm_90a"};
    if (count == 1) std::cout << to_text(c);
    const Outcome o = compare_executors(c);
    const bool runs = o.kind != Kind::invalid && o.kind != Kind::refused;
    told += !runs;
    if (!runs && std::getenv("TILEGEN_SHOW_INVALID")) std::cout << "seed " << seed << " " << o.text << "\n";
    if (!o.is_defect()) continue;
    ++defects;
    ADD_FAILURE() << "seed " << seed << ": " << kind_name(o.kind) << ": " << o.text
                  << "\nsmallest such program:\n"
                  << smallest(c, o);
  }
  EXPECT_LE(told * 10, count);
}

TEST(RandomPrograms, AreAFunctionOfTheSeed) {
  EXPECT_EQ(random_case(7).text, random_case(7).text);
  EXPECT_NE(random_case(7).text, random_case(8).text);
}

// Several threads share the blocks of a launch.
TEST(RandomPrograms, ThreadsAgree) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Case c = random_case(seed + 1000);
    c.launch.max_threads = 4;
    const Outcome o = compare_executors(c);
    EXPECT_FALSE(o.is_defect()) << to_text(c) << o.text;
  }
}

}  // namespace
}  // namespace tilegen::differential
