// Records the plan and the code of every version of every kernel of the suite's programs, for
// replay_test.cpp.
#include <gtest/gtest.h>

#include <set>

#include "driver/settle_plan.h"
#include "replay_records.h"
#include "small_programs.h"

namespace tilegen::differential {
namespace {

std::string paths_of(const ir::Program& p) {
  const std::vector<std::string> paths = ir::statement_paths(p);
  std::string lines;
  for (ir::StmtId id : statements_in_order(p)) lines += paths[id.value] + "\n";
  return lines;
}

bool has_tensor_copies(const plan::Schedule& s) {
  for (const plan::KernelSchedule& kernel : s.kernels)
    for (const plan::OpPlan& op : kernel.ops)
      if (op.engine == plan::Engine::tensor_copy) return true;
  return false;
}

class Recorder {
 public:
  explicit Recorder(std::ostream& out) : out_(out) {}

  void record(const std::string& path, const ir::Program& program, const std::string& target) {
    const ir::Program form = schedule::planned_form(program, target);
    const target::Target t = schedule::target_named(target);
    driver::CompileOptions options;
    std::vector<driver::StageTime> times;
    driver::Stages stages(options, times);
    auto level = driver::AssumptionLevel::tensor_stores;
    std::optional<plan::Schedule> above;
    std::set<std::string> recorded;
    bool last_but_one = false;  // the next version is the one that assumes nothing
    for (const auto next : {driver::AssumptionLevel::tensor_stores, driver::AssumptionLevel::tensor_loads,
                            driver::AssumptionLevel::tensor_loads_alone, driver::AssumptionLevel::aligned,
                            driver::AssumptionLevel::none}) {
      const bool last = next == driver::AssumptionLevel::none;
      if ((!t.has_block_threads() || last_but_one) && !last) continue;
      level = next;
      auto settled = driver::settle_plan(form, t, options, level, above ? &*above : nullptr, stages);
      if (!settled) return;  // no plan of it for the target
      for (size_t k = 0; k < settled->kernels.size(); ++k) {
        plan::Schedule one = settled->schedule;
        one.kernels = {settled->schedule.kernels[k]};
        const std::string number = std::to_string(k), json = plan::schedule_to_json(one),
                          code = thread::print_thread_program(settled->kernels[k]);
        if (!recorded.insert(number + json + code).second) continue;  // the level above has the same version
        write_record(out_, {path, ir::print_program(form), paths_of(form), target, number, json, code});
        ++count;
      }
      // Without the engine's copies the levels between differ in nothing.
      if (!has_tensor_copies(settled->schedule)) last_but_one = true;
      above = std::move(settled->schedule);
    }
  }

  int count = 0;

 private:
  std::ostream& out_;
};

TEST(ReplayRecord, EveryVersionOfEveryKernel) {
  std::ofstream out(TILEGEN_REPLAY_RECORDS, std::ios::binary);
  ASSERT_TRUE(out.good()) << TILEGEN_REPLAY_RECORDS;
  Recorder recorder(out);
  std::vector<std::string> paths = all_programs();
  for (const auto& path : programs_in(test_data("regressions"))) paths.push_back(path.string());
  size_t number = 0;
  for (const std::string& path : paths)
    if (const auto program = parsed(schedule::read_file(path)))
      for (const char* target : {"sm_80", "sm_90a", number++ % 2 == 0 ? "x86-64-v3" : "gfx942"})
        recorder.record(path, *program, target);
  EXPECT_GT(recorder.count, 1000);
}

}  // namespace
}  // namespace tilegen::differential
