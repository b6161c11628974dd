// Schedules given back with one field changed: refused by name, or the program computes what the interpreter
// does and what was given stands in the schedule of the result.
//   TILEGEN_COUNT=n    that many mutants of all programs, in place of a sample
//   TILEGEN_SEED=n     only that one, or TILEGEN_COUNT=m of them from there
//   TILEGEN_SHOW=1     what each came to
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>

#include "fault_guard.h"
#include "given_schedule.h"
#include "schedule_mutation.h"

namespace tilegen::differential {
namespace {

const char* const kTargets[] = {"host", "sim:sm_80", "sim:sm_90a", "sim:gfx942"};

struct Judged {
  std::string outcome;  // a refusal's code, or "runs"
  std::string defect;
};

Judged judge(Scheduled& program, const std::string& target, const JsonTree& mutant, uint64_t seed) {
  auto given = plan::schedule_from_json(mutant.print(), Limits{});
  if (!given) return {"json_error", is_refusal(given.error()) ? "" : given.error().to_text()};
  auto artifact = program.compile(target, *given, false);
  if (!artifact) {
    const Error& e = artifact.error();
    return {diag_name(e.diagnostics[0].code), is_refusal(e) ? "" : e.to_text()};
  }
  if (std::string lost =
          not_honoured(mutant, JsonTreeReader(plan::schedule_to_json((*artifact)->schedule)).read());
      !lost.empty())
    return {"runs", "accepted, but " + lost};
  return {"runs", program.run(**artifact, seed)};
}

TEST(ScheduleMutants, AreRefusedOrHappen) {
  const char *seed = std::getenv("TILEGEN_SEED"), *asked = std::getenv("TILEGEN_COUNT");
  const uint64_t first = seed ? std::strtoull(seed, nullptr, 10) : 1;
  const uint64_t count = asked ? std::strtoull(asked, nullptr, 10) : seed ? 1 : 150;
  const bool show = std::getenv("TILEGEN_SHOW") != nullptr;
  std::vector<Scheduled>& programs = scheduled_programs();
  ASSERT_GT(programs.size(), 30u);
  std::map<std::string, int> outcomes;
  for (uint64_t n = first; n < first + count; ++n) {
    Random random(n * 0x9e3779b97f4a7c15u);
    Scheduled& program = programs[static_cast<size_t>(random.below(static_cast<int64_t>(programs.size())))];
    const std::string target = kTargets[random.below(std::size(kTargets))];
    const JsonTree* planned = program.planned(target);
    if (!planned) continue;
    JsonTree mutant = *planned;
    std::string what = mutate_schedule(mutant, random);
    if (random.chance(4)) what += "; " + mutate_schedule(mutant, random);
    const auto start = std::chrono::steady_clock::now();
    Judged judged;
    if (const auto crash = crash_of([&] { judged = judge(program, target, mutant, n); }))
      judged = {"crash", *crash};
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start)
            .count();
    ++outcomes[judged.outcome];
    const std::string title = std::to_string(n) + ": " + program.name() + " on " + target + ": " + what;
    if (show) std::cout << title << ": " << judged.outcome << " " << judged.defect << " " << ms << " ms\n";
    if (seed && count == 1) std::cout << mutant.print() << "\n";
    EXPECT_EQ(judged.defect, "") << title;
  }
  for (const auto& [outcome, times] : outcomes) std::cout << times << " " << outcome << "\n";
  if (count >= 100) {
    EXPECT_GT(outcomes["runs"] * 5, static_cast<int>(count)) << "few mutants are accepted";
    EXPECT_GT(outcomes["schedule_illegal"] * 10, static_cast<int>(count));
  }
}

// Digits that reach beyond the tile: what lies there is guarded, and no part of the tile.
TEST(ScheduleMutants, PaddingOfAnIterationIsNotCopied) {
  for (Scheduled& program : scheduled_programs()) {
    if (program.name() != "convert_doubles.tl") continue;
    std::string text = program.planned("sim:sm_80")->print();
    const std::string digit = "1: d0/16%2*2 + d1/1%2*1";
    const size_t at = text.find(digit);
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, digit.size(), "1: d0/16%3*2 + d1/1%2*1");
    const Judged judged = judge(program, "sim:sm_80", JsonTreeReader(text).read(), 1);
    EXPECT_EQ(judged.outcome, "runs");
    EXPECT_EQ(judged.defect, "");
    return;
  }
  FAIL() << "the program is gone";
}

// What was planned is accepted, replayed and written again.
TEST(ScheduleMutants, SchedulesAsTheyAreReplay) {
  for (Scheduled& program : scheduled_programs())
    for (const std::string target : kTargets) {
      const JsonTree* planned = program.planned(target);
      if (!planned) continue;
      auto given = plan::schedule_from_json(planned->print(), Limits{});
      ASSERT_TRUE(given) << program.name() << " " << target << " " << given.error().to_text();
      auto again = program.compile(target, *given, true);
      ASSERT_TRUE(again) << program.name() << " " << target << " " << again.error().to_text();
      plan::Schedule replayed = (*again)->schedule;
      for (size_t k = 0; k < replayed.kernels.size(); ++k)
        replayed.kernels[k].notes = given->kernels[k].notes;
      EXPECT_EQ(plan::schedule_to_json(replayed), plan::schedule_to_json(*given))
          << program.name() << " " << target;
    }
}

}  // namespace
}  // namespace tilegen::differential
