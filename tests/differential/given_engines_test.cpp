// Engines and producers asked of every program: refused with a way out, or the interpreter's results and
// nothing found.
//   TILEGEN_SHOW=1     the refusals
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

#include "files.h"
#include "given_schedule.h"

namespace tilegen::differential {
namespace {

// What is given for programs on sm_90a: refused with a way out, or done so, with the interpreter's results
// and nothing found. Short runs take one in `share`.
class Asked {
 public:
  explicit Asked(int share) : share_(long_run() ? 1 : share) {}
  void ask(Scheduled& program, const plan::Schedule& given, int seeds = 1) {
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
    ++ran_;
    for (const plan::KernelSchedule& wanted : given.kernels) {
      const auto kernel =
          std::find_if((*artifact)->schedule.kernels.begin(), (*artifact)->schedule.kernels.end(),
                       [&](const auto& k) { return k.kernel == wanted.kernel; });
      for (const plan::OpPlan& op : wanted.ops)
        EXPECT_EQ(plan::find_op(*kernel, op.op)->engine, op.engine) << op.op;
    }
    for (int i = 0; i < seeds; ++i) {
      const uint64_t seed = static_cast<uint64_t>(ran_ + i);
      EXPECT_EQ(program.run(**artifact, seed), "") << "seed " << seed;
    }
  }
  int ran() const { return ran_; }
  int refused() const { return refused_; }
  ~Asked() { std::cout << ran_ << " ran, " << refused_ << " refused\n"; }

 private:
  int share_, asked_ = 0, ran_ = 0, refused_ = 0;
};

// visit(program, kernel) for all that sm_90a serves, as it is planned.
template <class Visit>
void each_planned_kernel(Visit&& visit) {
  for (Scheduled& program : scheduled_programs()) {
    const plan::Schedule* planned = program.schedule("sim:sm_90a");
    if (!planned) continue;
    for (const plan::KernelSchedule& kernel : planned->kernels) visit(program, kernel);
  }
}

plan::Schedule schedule_of(const plan::KernelSchedule& kernel, std::vector<plan::OpPlan> ops) {
  plan::Schedule given;
  given.kernels.push_back({.kernel = kernel.kernel, .ops = std::move(ops)});
  return given;
}

bool is_copy(const plan::OpPlan& op) {
  return op.op.find("/copy#") != std::string::npos || op.op.find("/atomic#") != std::string::npos;
}

// All products of matrix instructions by that engine.
std::vector<plan::OpPlan> products_by(plan::Engine engine, const plan::KernelSchedule& kernel) {
  std::vector<plan::OpPlan> ops;
  for (const plan::OpPlan& op : kernel.ops)
    if (op.engine == plan::Engine::mma || op.engine == plan::Engine::warpgroup_mma)
      ops.push_back({.op = op.op, .engine = engine});
  return ops;
}

// Each copy of a kernel asked of the copy engine, and all of them.
TEST(GivenEngines, EveryCopyMayBeAskedOfTheEngine) {
  Asked asked(1);
  const int seeds = long_run() ? 6 : 2;
  each_planned_kernel([&](Scheduled& program, const plan::KernelSchedule& kernel) {
    std::vector<plan::OpPlan> all;
    for (const plan::OpPlan& op : kernel.ops) {
      if (!is_copy(op) || op.engine == plan::Engine::tensor_copy) continue;
      all.push_back({.op = op.op, .engine = plan::Engine::tensor_copy});
      asked.ask(program, schedule_of(kernel, {all.back()}), seeds);
    }
    if (all.size() > 1) asked.ask(program, schedule_of(kernel, all), seeds);
  });
  EXPECT_GT(asked.ran(), 12);
  EXPECT_GT(asked.refused(), 100);
}

// Each product of warps asked of warpgroups, and each tile of warpgroups' products asked of threads, whoever
// fills the tiles.
TEST(GivenEngines, EveryProductMayBeAskedOfWarpgroups) {
  Asked asked(5);
  each_planned_kernel([&](Scheduled& program, const plan::KernelSchedule& kernel) {
    const std::vector<plan::OpPlan> products = products_by(plan::Engine::warpgroup_mma, kernel);
    for (const plan::OpPlan& op : kernel.ops) {
      if (op.engine == plan::Engine::mma)
        asked.ask(program, schedule_of(kernel, {{.op = op.op, .engine = plan::Engine::warpgroup_mma}}));
      if (op.engine != plan::Engine::tensor_copy) continue;
      std::vector<plan::OpPlan> ops = products;
      ops.push_back({.op = op.op, .engine = plan::Engine::vector_copy});
      asked.ask(program, schedule_of(kernel, ops));
    }
  });
  EXPECT_GT(asked.ran(), 20);
}

// All products of a kernel asked of warps, and the loads of the tiles of one loop, or of all, of the copy
// engine.
TEST(GivenEngines, ProductsOfWarpsMayTakeTilesOfAProducer) {
  Asked asked(8);
  each_planned_kernel([&](Scheduled& program, const plan::KernelSchedule& kernel) {
    const std::vector<plan::OpPlan> products = products_by(plan::Engine::mma, kernel);
    if (products.empty()) return;
    std::map<std::string, std::vector<plan::OpPlan>> loads;  // with the products, by the path of their block
    std::vector<plan::OpPlan> all = products;
    for (const plan::OpPlan& op : kernel.ops) {
      if (!is_copy(op) || !program.loads_tile(op.op)) continue;
      std::vector<plan::OpPlan>& one =
          loads.try_emplace(op.op.substr(0, op.op.rfind('/')), products).first->second;
      for (std::vector<plan::OpPlan>* ops : {&one, &all})
        ops->push_back({.op = op.op, .engine = plan::Engine::tensor_copy});
    }
    for (const auto& [block, ops] : loads) asked.ask(program, schedule_of(kernel, ops));
    if (loads.size() > 1) asked.ask(program, schedule_of(kernel, all));
  });
  EXPECT_GT(asked.ran(), 6);
}

// One product of a kernel asked of warpgroups, the others of warps.
TEST(GivenEngines, ProductsOfALoopMayHaveEnginesOfTheirOwn) {
  Asked asked(5);
  each_planned_kernel([&](Scheduled& program, const plan::KernelSchedule& kernel) {
    std::vector<plan::OpPlan> ops = products_by(plan::Engine::mma, kernel);
    for (size_t i = 0; ops.size() > 1 && i < ops.size(); ++i) {
      ops[i].engine = plan::Engine::warpgroup_mma;
      asked.ask(program, schedule_of(kernel, ops));
      ops[i].engine = plan::Engine::mma;
    }
  });
  EXPECT_GT(asked.ran(), 3);
}

// Slots of a loop go back to those that fill them when the engine has read what it combines from there.
TEST(GivenEngines, TilesOfALoopMayBeCombinedByTheEngine) {
  std::string text = text_of(test_data("regressions") / "combined_tiles_of_a_pipeline.tl");
  const std::string_view dim = "dim k divisible 64";
  text.replace(text.find(dim), dim.size(), "dim k divisible 320");
  Scheduled program("combined tiles", text);
  const plan::Schedule* planned = program.schedule("sim:sm_90a");
  ASSERT_NE(planned, nullptr);
  plan::Schedule given;
  for (const plan::KernelSchedule& kernel : planned->kernels) {
    given.kernels.push_back({.kernel = kernel.kernel});
    for (const plan::OpPlan& op : kernel.ops)
      if (op.op.find("/atomic#") != std::string::npos)
        given.kernels.back().ops.push_back({.op = op.op, .engine = plan::Engine::tensor_copy});
  }
  plan::Schedule walks = given, alone = given;
  for (plan::KernelSchedule& kernel : walks.kernels)
    kernel.persistence = plan::PersistencePlan{.persistent = true};
  for (plan::KernelSchedule& kernel : alone.kernels) kernel.roles.emplace();
  for (const plan::Schedule* asked : {&given, &walks, &alone}) {
    const auto artifact = program.compile("sim:sm_90a", *asked, false);
    ASSERT_TRUE(artifact) << artifact.error().to_text();
    for (uint64_t seed = 0; seed < 6; ++seed) EXPECT_EQ(program.run(**artifact, seed), "") << seed;
  }
}

// A producer for each pipeline, where blocks walk over tiles as planned, as their index tells and as they
// fetch them: the interpreter's results and nothing found.
TEST(GivenEngines, EveryPipelineMayHaveAProducerOfItsOwn) {
  int found = 0;
  Asked asked(1);
  each_planned_kernel([&](Scheduled& program, const plan::KernelSchedule& kernel) {
    if (!kernel.has_producer() || kernel.pipelines.size() < 2) return;
    if (++found % 3 != 0 && !long_run()) return;
    plan::Schedule given = schedule_of(kernel, {});
    given.kernels[0].roles = {plan::RolePlan{.name = "math"}};
    std::vector<plan::RolePlan>& roles = *given.kernels[0].roles;
    for (const plan::PipelinePlan& line : kernel.pipelines) {
      plan::RolePlan role{.name = line.name};
      for (const std::string& op : (*kernel.roles)[1].ops)
        if (program.writes(op, line.values)) role.ops.push_back(op);
      roles.push_back(std::move(role));
    }
    // Refused where a warp for each is too many, or a cluster has no tiles to fetch.
    for (const char* order : {"", "static", "dynamic"}) {
      given.kernels[0].persistence.reset();
      if (*order) given.kernels[0].persistence = plan::PersistencePlan{.persistent = true, .order = order};
      asked.ask(program, given);
    }
  });
  EXPECT_GT(asked.ran(), 12);
}

}  // namespace
}  // namespace tilegen::differential
