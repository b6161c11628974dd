// Engines and producers asked of every program: refused with a way out, or the interpreter's results and
// nothing found.
//   TILEGEN_SHOW=1     the refusals
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "files.h"
#include "given_schedule.h"

namespace tilegen::differential {
namespace {

// Each copy of a kernel asked of the copy engine, and all of them: refused with a way out, or done so, with
// the interpreter's results and nothing found.
TEST(GivenEngines, EveryCopyMayBeAskedOfTheEngine) {
  const char* const target = "sim:sm_90a";
  std::map<std::string, int> outcomes;
  for (Scheduled& program : scheduled_programs()) {
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

// What is given for programs on sm_90a: refused with a way out, or the interpreter's results and nothing
// found. Short runs take one in `share`.
class Asked {
 public:
  explicit Asked(int share) : share_(long_run() ? 1 : share) {}
  void ask(Scheduled& program, const plan::Schedule& given) {
    if (++asked_ % share_ != 0) return;
    SCOPED_TRACE(program.name() + ": " + plan::schedule_to_json(given));
    auto artifact = program.compile("sim:sm_90a", given, false);
    if (!artifact) {
      ++refused_;
      if (std::getenv("TILEGEN_SHOW"))
        std::cout << program.name() << ": " << artifact.error().diagnostics[0].message << "\n";
      EXPECT_TRUE(is_refusal(artifact.error())) << artifact.error().to_text();
      return;
    }
    const uint64_t seed = static_cast<uint64_t>(++ran_);
    EXPECT_EQ(program.run(**artifact, seed), "") << "seed " << seed;
  }
  void expect_ran(int least) const {
    std::cout << ran_ << " ran, " << refused_ << " refused\n";
    EXPECT_GT(ran_, least);
  }

 private:
  int share_, asked_ = 0, ran_ = 0, refused_ = 0;
};

// Each product of warps asked of warpgroups, and each tile of warpgroups' products asked of threads, whoever
// fills the tiles.
TEST(GivenEngines, EveryProductMayBeAskedOfWarpgroups) {
  Asked asked(5);
  for (Scheduled& program : scheduled_programs()) {
    auto planned = program.compile("sim:sm_90a", std::nullopt, true);
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
          asked.ask(program, given);
        }
        if (op.engine != plan::Engine::tensor_copy) continue;
        given.kernels[0].ops.push_back({.op = op.op, .engine = plan::Engine::vector_copy});
        asked.ask(program, given);
      }
    }
  }
  asked.expect_ran(20);
}

// All products of a kernel asked of warps, and the loads of the tiles of one loop, or of all, of
// the copy engine.
TEST(GivenEngines, ProductsOfWarpsMayTakeTilesOfAProducer) {
  Asked asked(8);
  for (Scheduled& program : scheduled_programs()) {
    auto planned = program.compile("sim:sm_90a", std::nullopt, true);
    if (!planned) continue;
    for (const plan::KernelSchedule& kernel : (*planned)->schedule.kernels) {
      plan::Schedule products;
      products.kernels.push_back({.kernel = kernel.kernel});
      std::map<std::string, std::vector<plan::OpPlan>> loads;  // by the path of their block
      for (const plan::OpPlan& op : kernel.ops) {
        if (op.engine == plan::Engine::mma || op.engine == plan::Engine::warpgroup_mma)
          products.kernels[0].ops.push_back({.op = op.op, .engine = plan::Engine::mma});
        if (op.op.find("/copy#") != std::string::npos && program.loads_tile(op.op))
          loads[op.op.substr(0, op.op.rfind('/'))].push_back(
              {.op = op.op, .engine = plan::Engine::tensor_copy});
      }
      if (products.kernels[0].ops.empty()) continue;
      plan::Schedule all = products;
      for (const auto& [block, copies] : loads) {
        plan::Schedule one = products;
        for (plan::Schedule* given : {&one, &all})
          given->kernels[0].ops.insert(given->kernels[0].ops.end(), copies.begin(), copies.end());
        asked.ask(program, one);
      }
      if (loads.size() > 1) asked.ask(program, all);
    }
  }
  asked.expect_ran(6);
}

// One product of a kernel asked of warpgroups, the others of warps.
TEST(GivenEngines, ProductsOfALoopMayHaveEnginesOfTheirOwn) {
  Asked asked(5);
  for (Scheduled& program : scheduled_programs()) {
    auto planned = program.compile("sim:sm_90a", std::nullopt, true);
    if (!planned) continue;
    for (const plan::KernelSchedule& kernel : (*planned)->schedule.kernels) {
      plan::Schedule products;
      products.kernels.push_back({.kernel = kernel.kernel});
      std::vector<plan::OpPlan>& ops = products.kernels[0].ops;
      for (const plan::OpPlan& op : kernel.ops)
        if (op.engine == plan::Engine::mma || op.engine == plan::Engine::warpgroup_mma)
          ops.push_back({.op = op.op, .engine = plan::Engine::mma});
      for (size_t i = 0; ops.size() > 1 && i < ops.size(); ++i) {
        ops[i].engine = plan::Engine::warpgroup_mma;
        asked.ask(program, products);
        ops[i].engine = plan::Engine::mma;
      }
    }
  }
  asked.expect_ran(3);
}

// A producer for each pipeline, where blocks walk over tiles as planned, as their index tells and as they
// fetch them: the interpreter's results and nothing found.
TEST(GivenEngines, EveryPipelineMayHaveAProducerOfItsOwn) {
  const char* const target = "sim:sm_90a";
  int found = 0, ran = 0;
  for (Scheduled& program : scheduled_programs()) {
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

}  // namespace
}  // namespace tilegen::differential
