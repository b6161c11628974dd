// What judges mutated programs, on programs whose verdict is known: the edits, the sanitized run, the bounds,
// the processes.
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <thread>

#include "check/check_program.h"
#include "files.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "mutated_case.h"
#include "open_values.h"
#include "program_mutation.h"
#include "sanitized_run.h"
#include "watched_items.h"

namespace tilegen::differential {
namespace {

ir::Program parsed(const std::string& text) {
  return std::move(*ir::parse_program(text, "case.tl", Limits()));
}

std::vector<std::string> all_programs() {
  std::vector<std::string> list;
  for (const char* folder : {"files", "regressions"})
    for (const auto& file : programs_in(test_data(folder)))
      if (Subject(text_of(file)).invalid().empty()) list.push_back(text_of(file));
  return list;
}

// ---- the edits ----

TEST(Mutation, EveryEditMakesProgramsThatPassTheChecks) {
  const std::vector<std::string> texts = all_programs();
  std::vector<Mutation> edits(token_mutations().begin(), token_mutations().end());
  edits.insert(edits.end(), statement_mutations().begin(), statement_mutations().end());
  for (size_t e = 0; e < edits.size(); ++e) {
    Random random(e + 1);
    int made = 0;
    for (int tries = 0; tries < 400 && made < 3; ++tries) {
      const std::string before = ir::print_program(parsed(random.pick<std::string>(texts)));
      ProgramText text(before);
      if (!edits[e](text, random)) continue;
      EXPECT_NE(text.text(), "");
      auto p = ir::parse_program(text.text(), "mutated.tl", Limits());
      made += p && check::check_program(*p, Limits()).empty() && ir::print_program(*p) != before;
    }
    EXPECT_EQ(made, 3) << "edit " << e;
  }
}

TEST(Mutation, LeavesProgramsThatAreReadAndPrinted) {
  const std::vector<std::string> texts = all_programs();
  Random random(5);
  int changed = 0;
  for (int n = 0; n < 60; ++n) {
    const std::string from = ir::print_program(parsed(random.pick<std::string>(texts)));
    const std::string to = mutated_program(from, random, 3);
    EXPECT_EQ(Subject(to).invalid(), "") << to;
    const std::string printed = ir::print_program(parsed(to));
    EXPECT_EQ(ir::print_program(parsed(printed)), printed);
    changed += to != from;
  }
  EXPECT_GE(changed, 57);
}

TEST(ProgramTextTest, TokensAndStatements) {
  const ProgramText text(
      "tl 1 program p\ndim n\n\nkernel k grid (b: 1) {\n  alloc x: local f32[1]\n  serial i in 0 .. n {\n    "
      "if i < 3 {\n"
      "      x[0] = 1e-05f32\n    } else {\n      x[0] = 0x3c:e4m3\n    }\n  }\n}\n");
  EXPECT_EQ(text.statements(), (std::vector<size_t>{5, 6, 7, 9}));
  EXPECT_EQ(text.end_of(5), 11u);
  EXPECT_EQ(text.end_of(6), 10u);
  EXPECT_EQ(text.end_of(7), 7u);
  std::vector<std::string> numbers;
  for (const Token& t : text.tokens())
    if (t.kind == Token::Kind::number) numbers.push_back(t.text);
  EXPECT_EQ(numbers, (std::vector<std::string>{"1", "1", "0", "3", "0", "1e-05f32", "0", "0x3c:e4m3"}));
  EXPECT_EQ(literal_type("1.5bf16"), "bf16");
  EXPECT_EQ(literal_type("15"), "");
}

// ---- the sanitized run ----

TEST(SanitizedRun, AgreesWithTheInterpreterBitForBit) {
  int defined = 0;
  for (const std::string& text : all_programs()) {
    const ir::Program p = parsed(text);
    Launch launch = launch_near(p, {13, 33, 17, 5});
    launch.data = Data::reals;
    LaunchMemory memory;
    if (!memory.bind(p, launch).empty()) continue;
    const std::vector<GuardedMemory> mine = memory.fresh(true), theirs = memory.fresh(true);
    if (run_sanitized(p, memory.slots(mine), {}).kind != SanitizedResult::Kind::defined) continue;
    ++defined;
    ASSERT_TRUE(interp::interpret(p, memory.slots(theirs)));
    EXPECT_EQ(memory.compare(theirs, mine, Bound::exact()), "") << text;
  }
  EXPECT_GT(defined, 80);
}

SanitizedResult sanitized(const std::string& body, std::vector<int64_t> indices) {
  const std::string text =
      "tl 1 program p\ntensor I: i64[4] readonly\ntensor W: i64[4] workspace\ntensor Y: i64[4]\n\nkernel k "
      "grid (b: 2) {\n"
      "  alloc t: shared i64[4]\n" +
      body + "}\n";
  EXPECT_EQ(Subject(text).invalid(), "");
  const ir::Program p = parsed(text);
  Launch launch;
  launch.whole["I"] = std::move(indices);
  LaunchMemory memory;
  EXPECT_EQ(memory.bind(p, launch), "");
  const std::vector<GuardedMemory> results = memory.fresh(true);
  return run_sanitized(p, memory.slots(results), {.max_steps = 1000});
}

TEST(SanitizedRun, NamesWhatHasNoDefinedResult) {
  const std::string scatter =
      "  fill t, 0\n  parallel i in 4 {\n    t[I[i]] = i\n  }\n  copy t[b * 2 :+ 2] -> Y[b * 2 :+ 2]\n";
  EXPECT_EQ(sanitized(scatter, {3, 1, 0, 2}).why, "");
  EXPECT_EQ(sanitized(scatter, {3, 1, 0, 3}).why, "iterations or operands meet in t");
  EXPECT_EQ(sanitized(scatter, {3, 1, 0, 4}).why, "an access leaves t");
  EXPECT_EQ(sanitized("  Y[0] = b\n", {0, 0, 0, 0}).why, "blocks meet in Y");
  EXPECT_EQ(sanitized("  Y[b] = Y[b + 1]\n", {0, 0, 0, 0}).why, "blocks meet in Y");
  EXPECT_EQ(sanitized("  Y[b] = Y[b + 2]\n", {0, 0, 0, 0}).why, "");
  EXPECT_EQ(sanitized("  if I[0] == 0 {\n    W[b] = 1\n  }\n  Y[b] = W[b]\n", {1, 0, 0, 0}).why,
            "W is read before anything wrote it");
  EXPECT_EQ(sanitized("  if I[0] == 0 {\n    W[b] = 1\n  }\n  Y[b] = W[b]\n", {0, 0, 0, 0}).why, "");
  EXPECT_EQ(sanitized("  fill t, 0\n  copy t[I[0] :+ 2] -> t[I[1] :+ 2]\n", {0, 1, 0, 0}).why,
            "iterations or operands meet in t");
  EXPECT_EQ(sanitized("  fill t, 0\n  copy t[I[0] :+ 2] -> t[I[1] :+ 2]\n", {0, 2, 0, 0}).why, "");
  EXPECT_EQ(sanitized("  serial i in 0 .. I[0] {\n    fill t, i\n  }\n", {1000, 0, 0, 0}).kind,
            SanitizedResult::Kind::too_long);
}

// ---- what the contract leaves open ----

// The comparison of a program's results, changed by `change`, with its own bounds.
std::string difference(const std::string& text, Data data, const std::function<void(double&)>& change) {
  const ir::Program p = parsed(text);
  Launch launch;
  launch.data = data;
  LaunchMemory memory;
  EXPECT_EQ(memory.bind(p, launch), "");
  const std::vector<GuardedMemory> expected = memory.fresh(true);
  EXPECT_TRUE(interp::interpret(p, memory.slots(expected)));
  std::vector<GuardedMemory> got = memory.fresh(true);
  const size_t last = got.size() - 1;
  for (size_t i = 0; i < got.size(); ++i) std::ranges::copy(expected[i].bytes(), got[i].bytes().begin());
  double value = ir::float_from_bits(ir::DType::f32, memory.tensors()[last].element(got[last].bytes(), 0));
  change(value);
  const auto bits = static_cast<uint32_t>(ir::float_to_bits(ir::DType::f32, value));
  std::memcpy(got[last].bytes().data(), &bits, sizeof bits);
  return OpenValues(p, launch).differ(memory, expected, got);
}

std::string sum_of(const std::string& term) {
  return "tl 1 program p\ntensor X: f32[64] readonly\ntensor Y: f32[1]\n\nkernel k grid (b: 1) {\n  alloc x: "
         "fragment f32[64]\n"
         "  alloc y: fragment f32[1]\n  copy X -> x\n  parallel i in 64 {\n    x[i] = " +
         term + "\n  }\n  reduce x -> y\n  copy y -> Y\n}\n";
}

TEST(OpenValuesTest, SumsOfWholeNumbersAreExact) {
  EXPECT_EQ(difference(sum_of("x[i]"), Data::integers, [](double&) {}), "");
  EXPECT_NE(difference(sum_of("x[i]"), Data::integers, [](double& v) { v += 1e-4; }), "");
}

TEST(OpenValuesTest, OthersAreAsExactAsTheirSums) {
  EXPECT_EQ(difference(sum_of("x[i]"), Data::reals, [](double& v) { v += 1e-6; }), "");
  EXPECT_NE(difference(sum_of("x[i]"), Data::reals, [](double& v) { v += 1e-2; }), "");
  EXPECT_EQ(difference(sum_of("exp(x[i])"), Data::reals, [](double& v) { v *= 1 + 1e-6; }), "");
  EXPECT_NE(difference(sum_of("exp(x[i])"), Data::reals, [](double& v) { v *= 1 + 1e-3; }), "");
}

TEST(OpenValuesTest, WhatHangsOnRoundingIsNotCompared) {
  const std::string steps = "select(x[i] / 3.0f32 * 3.0f32 * exp(x[i] - x[i]) > x[i], 1.0f32, 0.0f32)";
  EXPECT_EQ(difference(sum_of(steps), Data::integers, [](double& v) { v += 1; }), "");
}

// ---- the processes ----

TEST(WatchedItemsTest, OneThatFailsIsNamedAndTheOthersGoOn) {
  std::map<uint64_t, std::string> reports;
  run_watched({10, 8, 0.5, 3,
               [](uint64_t item) -> std::string {
                 watched_doing("item " + std::to_string(item));
                 if (item == 11) raise(SIGKILL);
                 if (item == 12) std::this_thread::sleep_for(std::chrono::seconds(30));
                 if (item == 15) _exit(124);
                 return item == 13 ? std::string(100000, 'x') : "";
               },
               [&](uint64_t item, const std::string& report) { reports[item] = report; }});
  EXPECT_EQ(reports.size(), 4u);
  EXPECT_EQ(reports[11], "the process ends in SIGKILL while item 11");
  EXPECT_EQ(reports[12], "the process takes too long while item 12");
  EXPECT_EQ(reports[13], std::string(100000, 'x'));
  EXPECT_EQ(reports[15], "the process ends in exit status 124 while item 15");
}

// ---- all of it ----

TEST(JudgeMutated, DefectsOfLaunchesWithADefinedResultOnly) {
  const std::string scatter =
      "tl 1 program p\ntensor I: i64[4] readonly\ntensor Y: i64[4]\n\nkernel k grid (b: 1) threads 32 {\n  "
      "parallel i in 4 {\n"
      "    Y[I[i]] = i\n  }\n}\n";
  Launch racy, defined;
  racy.whole["I"] = {0, 1, 1, 2};
  defined.whole["I"] = {3, 1, 0, 2};
  EXPECT_EQ(judge_mutated(scatter, {racy}, {"host", "sim:sm_80"}).outcome.kind, Outcome::Kind::invalid);
  EXPECT_EQ(judge_mutated(scatter, {racy, defined}, {"host", "sim:sm_80"}).outcome.kind,
            Outcome::Kind::agree);
}

}  // namespace
}  // namespace tilegen::differential
