// Programs mutated from those of tests/files and of the regressions, and those of tests/files for other
// sizes, on every executor.
//   TILEGEN_SEED=n            only that program, or TILEGEN_COUNT=m of them from there; TILEGEN_LONG=1: 2000
//   TILEGEN_SHOW_FAILED=1     each failure, not one of each way of failing; none is made small
//   TILEGEN_TARGETS=sm_90a    on the host and a device; a program is made small when it is the only one
//   TILEGEN_SHOW=1            what each program came to
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>

#include "mutated_case.h"
#include "shrink.h"
#include "varied_case.h"
#include "watched_items.h"

namespace tilegen::differential {
namespace {

using Kind = Outcome::Kind;

constexpr uint64_t kFirst = 50001, kCount = 50, kVaried = 16;
constexpr double kSeconds = 20;     // of one program
constexpr uint64_t kMadeSmall = 3;  // ways of failing, each of them for at most
constexpr std::chrono::seconds kShrinking(60);

uint64_t number_of(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

// One after the other in the same process that fails, so that what one of them does wrong is named.
std::vector<std::string> targets(uint64_t seed, const std::string& text) {
  if (std::getenv("TILEGEN_TARGETS")) return executable_targets();
  std::vector<std::string> names = {"host", simulator_in_turn(seed, text), "sim:sm_90a"};
  if (long_run())
    for (const SimulatorTurn& s : kSimulators)
      if (s.name != names[1]) names.emplace_back(s.name);
  return names;
}

std::string target_of(const Outcome& o, const std::vector<std::string>& targets) {
  for (const std::string& name : targets)
    if (o.text.rfind(name + ":", 0) == 0) return name;
  return "";
}

// The first line says the way of failing, the rest what it was. Empty: no defect.
std::string report_of(const std::string& text, const std::vector<Launch>& launches,
                      const std::vector<std::string>& where) {
  const Judgement j = judge_mutated(text, launches, where);
  if (std::getenv("TILEGEN_SHOW")) std::cout << kind_name(j.outcome.kind) << " " << j.outcome.text << "\n";
  if (!j.outcome.is_defect()) return {};
  return way_of_failing(j.outcome) + " " + target_of(j.outcome, where) + "\n" + to_text({"", j.launch}) +
         j.outcome.text;
}

std::string way(const std::string& report) { return report.substr(0, report.find('\n')); }

// The report of one program from a process of its own.
std::string watched_report(const Case& c) {
  std::string found;
  run_watched({1, 1, kSeconds / 2, 1, [&](uint64_t) { return report_of(c.text, {c.launch}, c.targets); },
               [&](uint64_t, const std::string& report) { found = report; }});
  return found;
}

// The smallest case that fails in the same way with one of the launches; the text as it is when none of them
// does alone.
std::string smallest(const MutatedCase& mutant, const std::vector<std::string>& targets) {
  for (const Launch& launch : mutant.launches) {
    Case c{mutant.text, launch, targets};
    const std::string failed = way(watched_report(c));
    if (failed.empty()) continue;
    for (const std::string& target : targets)
      if (Case only{c.text, c.launch, {target}}; way(watched_report(only)) == failed) c = only;
    const auto end = std::chrono::steady_clock::now() + kShrinking;
    const auto fails = [&](const Case& x) {
      return std::chrono::steady_clock::now() < end && way(watched_report(x)) == failed;
    };
    const Case small = shrink(c, fails, 300);
    return to_text(small) + watched_report(small);
  }
  return mutant.text;
}

void expect_agreement(MutatedCase (*make)(uint64_t seed), uint64_t usual_count) {
  const uint64_t first = number_of("TILEGEN_SEED", kFirst);
  const uint64_t count = number_of("TILEGEN_COUNT", std::getenv("TILEGEN_SEED") ? 1
                                                    : long_run()                ? 2000
                                                                                : usual_count);
  const bool show = std::getenv("TILEGEN_SHOW_FAILED") != nullptr;
  // On a device each try costs a context.
  const bool makes_small = !show && (count == 1 || !std::getenv("TILEGEN_TARGETS"));
  std::map<std::string, uint64_t> ways;  // of failing, with the programs that do
  run_watched({first, count, kSeconds, 100,
               [&](uint64_t seed) {
                 watched_doing("mutating");
                 const MutatedCase c = make(seed);
                 if (count == 1) std::cout << c.source << "\n" << c.text;
                 return report_of(c.text, c.launches, targets(seed, c.text));
               },
               [&](uint64_t seed, const std::string& report) {
                 if (ways[way(report)]++ > 0 && !show) return;
                 const MutatedCase c = make(seed);
                 ADD_FAILURE() << "seed " << seed << ", from " << c.source << ": " << report
                               << "\nagain: TILEGEN_SEED=" << seed << "\n"
                               << c.text;
                 if (makes_small && ways.size() <= kMadeSmall)
                   std::cout << "smallest such program:\n" << smallest(c, targets(seed, c.text)) << std::endl;
               }});
  for (const auto& [name, programs] : ways) std::cout << programs << " programs: " << name << "\n";
}

TEST(MutatedPrograms, ExecutorsAgree) { expect_agreement(mutated_case, kCount); }

// Facts of dims, extents of tiles, threads and stages.
TEST(VariedPrograms, ExecutorsAgree) { expect_agreement(varied_case, kVaried); }

TEST(VariedPrograms, AreAFunctionOfTheSeed) {
  EXPECT_EQ(varied_case(7).text, varied_case(7).text);
  EXPECT_NE(varied_case(7).text, varied_case(8).text);
}

TEST(MutatedPrograms, AreAFunctionOfTheSeed) {
  EXPECT_EQ(mutated_case(7).text, mutated_case(7).text);
  EXPECT_NE(mutated_case(7).text, mutated_case(8).text);
}

}  // namespace
}  // namespace tilegen::differential
