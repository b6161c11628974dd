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

#include "analysis/kernel_ops.h"
#include "attention_program.h"
#include "check/check_program.h"
#include "fault_guard.h"
#include "files.h"
#include "interp/interpreter.h"
#include "launch_memory.h"
#include "runtime/host/host_runtime.h"
#include "runtime/sim/sim_executable.h"
#include "schedule_mutation.h"

namespace tilegen::differential {
namespace {

const char* const kTargets[] = {"host", "sim:sm_80", "sim:sm_90a"};

// A program, a launch of it and what is in memory after that; its schedule for each target.
class Scheduled {
 public:
  Scheduled(std::string name, const std::string& text) : name_(std::move(name)) {
    auto parsed = ir::parse_program(text, name_, Limits{});
    if (!parsed || !check::check_program(*parsed, Limits{}).empty()) return;
    auto program = std::make_shared<const ir::Program>(std::move(*parsed));
    launch_ = launch_near(*program, {77, 45, 40, 33});
    launch_.magnitude = 4;
    launch_.bound = {2e-3, 8};  // sums are exact; functions of them are not
    if (memory_.bind(*program, launch_).empty()) program_ = std::move(program);
  }
  explicit operator bool() const { return program_ != nullptr; }
  const std::string& name() const { return name_; }

  // Nothing where the target does not serve the program.
  const JsonTree* planned(const std::string& target) {
    const auto [it, first] = schedules_.try_emplace(target);
    if (first) {
      auto artifact = compile(target, std::nullopt, true);
      if (artifact) it->second = JsonTreeReader(plan::schedule_to_json((*artifact)->schedule)).read();
    }
    return it->second ? &*it->second : nullptr;
  }

  Expected<std::shared_ptr<const driver::Artifact>> compile(const std::string& target,
                                                            std::optional<plan::Schedule> given,
                                                            bool plan_only) const {
    driver::CompileOptions options;
    options.schedule = std::move(given);
    options.plan_only = plan_only;
    options.verify = true;
    return driver::compile(program_, *target::find_target(target), options);
  }

  // The operation of that path writes one of the values.
  bool writes(const std::string& op, const std::vector<std::string>& values) const {
    for (size_t kernel = 0; kernel < program_->kernels.size(); ++kernel) {
      const analysis::KernelOps ops = analysis::collect_kernel_ops(*program_, static_cast<int>(kernel));
      for (const analysis::KernelOp& o : ops.ops)
        for (const analysis::OpAccess& a : o.accesses)
          if (o.path == op && a.write && a.value.valid() &&
              std::count(values.begin(), values.end(), ops.values[a.value].name) > 0)
            return true;
    }
    return false;
  }

  // Empty, or what is wrong with the results.
  std::string run(const driver::Artifact& artifact, uint64_t seed) {
    if (expected_.empty()) {
      expected_ = memory_.fresh(true);
      if (Checked ran = interp::interpret(*program_, memory_.slots(expected_)); !ran)
        return "the interpreter: " + ran.error().to_text();
    }
    std::vector<GuardedMemory> got = memory_.fresh(true);
    if (artifact.target.simulated) {
      sim::SimOptions options;
      options.order = static_cast<sim::WarpOrder>(seed % 3);
      options.async_latest = seed / 3 % 2 == 0;
      options.seed = seed;
      options.workers = 1;
      auto results = runtime::simulate_artifact(artifact, memory_.slots(got), options);
      if (!results) return results.error().to_text();
      if (Checked clean = runtime::findings_error(*results); !clean) return clean.error().to_text();
    } else if (Checked ran = runtime::run_host(artifact, memory_.slots(got), 1); !ran) {
      return ran.error().to_text();
    }
    return memory_.compare(expected_, got, launch_.bound);
  }

 private:
  std::string name_;
  Launch launch_;
  LaunchMemory memory_;
  std::vector<GuardedMemory> expected_;
  std::shared_ptr<const ir::Program> program_;
  std::map<std::string, std::optional<JsonTree>> schedules_;
};

std::vector<Scheduled> all_programs() {
  std::vector<Scheduled> list;
  const auto add = [&](std::string name, const std::string& text) {
    if (Scheduled s(std::move(name), text); s) list.push_back(std::move(s));
  };
  for (const auto& file : program_files()) add(file.filename().string(), text_of(file));
  for (int64_t rows : {64, 128}) {
    Attention a;
    a.rows = rows;
    a.threads = static_cast<int>(2 * rows);
    a.right = 0;
    a.row_sums = rows == 64;
    add("attention of " + std::to_string(rows), attention_text(a));
  }
  return list;
}

// What a schedule may be refused as; the refusal has a way out.
bool is_refusal(const Error& e) {
  constexpr DiagCode kCodes[] = {DiagCode::json_error,         DiagCode::schedule_illegal,
                                 DiagCode::schedule_mismatch,  DiagCode::limit_memory,
                                 DiagCode::limit_unroll,       DiagCode::target_unsupported,
                                 DiagCode::conversion_refused, DiagCode::no_atom};
  const Diagnostic& d = e.diagnostics[0];
  return std::find(std::begin(kCodes), std::end(kCodes), d.code) != std::end(kCodes) && !d.hint.empty() &&
         !d.message.empty();
}

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
  std::vector<Scheduled> programs = all_programs();
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

// Each copy of a kernel asked of the copy engine, and all of them: refused with a way out, or done so, with
// the interpreter's results and nothing found.
TEST(ScheduleMutants, EveryCopyMayBeAskedOfTheEngine) {
  const char* const target = "sim:sm_90a";
  std::map<std::string, int> outcomes;
  for (Scheduled& program : all_programs()) {
    auto planned = program.compile(target, std::nullopt, true);
    if (!planned) continue;
    std::vector<plan::Schedule> asked;
    for (const plan::KernelSchedule& kernel : (*planned)->schedule.kernels) {
      plan::Schedule all;
      all.kernels.push_back({.kernel = kernel.kernel});
      for (const plan::OpPlan& op : kernel.ops) {
        if (op.op.find("/copy#") == std::string::npos || op.engine == plan::Engine::tensor_copy) continue;
        plan::Schedule one;
        one.kernels.push_back({.kernel = kernel.kernel});
        one.kernels[0].ops.push_back({.op = op.op, .engine = plan::Engine::tensor_copy});
        all.kernels[0].ops.push_back(one.kernels[0].ops[0]);
        asked.push_back(std::move(one));
      }
      if (all.kernels[0].ops.size() > 1) asked.push_back(std::move(all));
    }
    for (const plan::Schedule& given : asked) {
      SCOPED_TRACE(program.name() + ": " + plan::schedule_to_json(given));
      auto artifact = program.compile(target, given, false);
      if (!artifact) {
        ++outcomes["refused"];
        if (std::getenv("TILEGEN_SHOW"))
          std::cout << program.name() << ": " << artifact.error().diagnostics[0].message << "\n";
        EXPECT_TRUE(is_refusal(artifact.error())) << artifact.error().to_text();
        continue;
      }
      ++outcomes["runs"];
      const plan::KernelSchedule& wanted = given.kernels[0];
      const auto kernel =
          std::find_if((*artifact)->schedule.kernels.begin(), (*artifact)->schedule.kernels.end(),
                       [&](const auto& k) { return k.kernel == wanted.kernel; });
      for (const plan::OpPlan& op : wanted.ops)
        EXPECT_EQ(plan::find_op(*kernel, op.op)->engine, plan::Engine::tensor_copy);
      for (uint64_t seed = 0; seed < 6; ++seed)
        EXPECT_EQ(program.run(**artifact, seed), "") << "seed " << seed;
    }
  }
  for (const auto& [outcome, times] : outcomes) std::cout << times << " " << outcome << "\n";
  EXPECT_GT(outcomes["runs"], 12);
  EXPECT_GT(outcomes["refused"], 100);
}

// Each product of warps asked of warpgroups, and each tile of warpgroups' products asked of threads: refused
// with a way out, or done so, whoever fills the tiles.
TEST(ScheduleMutants, EveryProductMayBeAskedOfWarpgroups) {
  const char* const target = "sim:sm_90a";
  int asked = 0, ran = 0, refused = 0;
  const auto expect_either = [&](Scheduled& program, const plan::Schedule& given) {
    if (++asked % 5 != 0 && !long_run()) return;
    SCOPED_TRACE(program.name() + ": " + plan::schedule_to_json(given));
    auto artifact = program.compile(target, given, false);
    if (!artifact) {
      ++refused;
      EXPECT_TRUE(is_refusal(artifact.error())) << artifact.error().to_text();
      return;
    }
    const uint64_t seed = static_cast<uint64_t>(++ran);
    EXPECT_EQ(program.run(**artifact, seed), "") << "seed " << seed;
  };
  for (Scheduled& program : all_programs()) {
    auto planned = program.compile(target, std::nullopt, true);
    if (!planned) continue;
    for (const plan::KernelSchedule& kernel : (*planned)->schedule.kernels) {
      plan::Schedule products;
      products.kernels.push_back({.kernel = kernel.kernel});
      for (const plan::OpPlan& op : kernel.ops)
        if (op.engine == plan::Engine::mma || op.engine == plan::Engine::warpgroup_mma)
          products.kernels[0].ops.push_back({.op = op.op, .engine = plan::Engine::warpgroup_mma});
      for (const plan::OpPlan& op : kernel.ops) {
        plan::Schedule given = products;
        if (op.engine == plan::Engine::mma) {
          given.kernels[0].ops = {{.op = op.op, .engine = plan::Engine::warpgroup_mma}};
          expect_either(program, given);
        }
        if (op.engine != plan::Engine::tensor_copy) continue;
        given.kernels[0].ops.push_back({.op = op.op, .engine = plan::Engine::vector_copy});
        expect_either(program, given);
      }
    }
  }
  std::cout << ran << " ran, " << refused << " refused\n";
  EXPECT_GT(ran, 20);
}

// A producer for each pipeline, where blocks walk over tiles as planned, as their index tells and as they
// fetch them: the interpreter's results and nothing found.
TEST(ScheduleMutants, EveryPipelineMayHaveAProducerOfItsOwn) {
  const char* const target = "sim:sm_90a";
  int found = 0, ran = 0;
  for (Scheduled& program : all_programs()) {
    auto planned = program.compile(target, std::nullopt, true);
    if (!planned) continue;
    for (const plan::KernelSchedule& kernel : (*planned)->schedule.kernels) {
      if (!kernel.has_producer() || kernel.pipelines.size() < 2) continue;
      if (++found % 3 != 0 && !long_run()) continue;
      plan::Schedule given;
      given.kernels.push_back({.kernel = kernel.kernel});
      given.kernels[0].roles = {plan::RolePlan{.name = "math"}};
      std::vector<plan::RolePlan>& roles = *given.kernels[0].roles;
      for (const plan::PipelinePlan& line : kernel.pipelines) {
        plan::RolePlan role{.name = line.name};
        for (const std::string& op : (*kernel.roles)[1].ops)
          if (program.writes(op, line.values)) role.ops.push_back(op);
        roles.push_back(std::move(role));
      }
      for (const char* order : {"", "static", "dynamic"}) {
        given.kernels[0].persistence.reset();
        if (*order) given.kernels[0].persistence = plan::PersistencePlan{.persistent = true, .order = order};
        SCOPED_TRACE(program.name() + ": " + plan::schedule_to_json(given));
        auto artifact = program.compile(target, given, false);
        if (!artifact) {
          // A warp for each may be too many, or a cluster have no tiles to fetch.
          EXPECT_TRUE(is_refusal(artifact.error())) << artifact.error().to_text();
          continue;
        }
        const uint64_t seed = static_cast<uint64_t>(++ran);
        EXPECT_EQ(program.run(**artifact, seed), "") << "seed " << seed;
      }
    }
  }
  std::cout << ran << " schedules ran\n";
  EXPECT_GT(ran, 12);
}

// Digits that reach beyond the tile: what lies there is guarded, and no part of the tile.
TEST(ScheduleMutants, PaddingOfAnIterationIsNotCopied) {
  for (Scheduled& program : all_programs()) {
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
  for (Scheduled& program : all_programs())
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
