// The pipeline: program + target (+ partial Schedule) -> Artifact. One function for all targets.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/host_code.h"
#include "cost/sizes.h"
#include "ir/program.h"
#include "plan/schedule.h"
#include "schedule/plan_program.h"
#include "sim/simulator.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"
#include "support/log.h"
#include "support/once.h"
#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::driver {

struct StageTime {
  std::string stage;
  double ms = 0;
};

// The versions of one kernel of the program among Artifact::kernels, in the order in which a launch tries
// their guards.
struct VersionRange {
  size_t first = 0, count = 1;
};

class FallbackVersion;
struct Specialisations;

// What a version of the code assumes of a launch's arguments beyond what the program promises, most first.
enum class AssumptionLevel : uint8_t {
  tensor_stores,       // tensors that the copy engine can load and store; aligned others
  tensor_loads,        // tensors that it can load; aligned others
  tensor_loads_alone,  // tensors that it can load
  aligned,             // aligned tensors
  none
};

// Everything a launch needs, self-contained: the program it came from may be gone.
struct Artifact {
  target::Target target;
  std::shared_ptr<const ir::Program> program;  // parameters, facts, shapes for argument checks
  // The same with the workspaces that the code has beyond those of the text, as last parameters; null: none.
  std::shared_ptr<const ir::Program> launched;
  plan::Schedule schedule;
  // every version of every kernel; a name is a symbol of the code
  std::vector<thread::ThreadProgram> kernels;
  // parallel to kernels: what each version was lowered from (simulated targets)
  std::vector<plan::KernelSchedule> decisions;
  std::vector<VersionRange> versions;  // one per kernel of the program, in launch order
  std::string code;                    // of the target's CodeFormat; empty: planned only, or simulated
  std::shared_ptr<codegen::HostCode> host_code;  // where this process is the device: the same, linked
  std::shared_ptr<const FallbackVersion>
      fallback;  // where a version has guards; not where all are in `kernels`
  // Where launches of different sizes have code of their own (specialisations.h).
  std::shared_ptr<const Specialisations> specialised;
  std::string llvm_ir, llvm_ir_optimised, assembly;  // kept on request
  sim::SimOptions simulation;                        // of simulated targets: how launches run
  cost::Sizes sizes;                                 // that estimates take
  std::optional<double> estimate;                    // microseconds, of CompileOptions::estimate_only
  std::vector<StageTime> times;

  // Its parameters are the slots of a launch.
  const ir::Program& launch_program() const { return launched ? *launched : *program; }
};

struct CompileOptions {
  // Decisions to take as given; by fallback versions as far as they can hold there (fallback_plan.h).
  std::optional<plan::Schedule> schedule;
  bool conversions = true;  // false: refuse instead of inserting layout conversions
  bool keep_ir = false;
  bool keep_assembly = false;
  bool plan_only = false;  // no code, of any target; the schedule is of the plan that the checks take
  // With plan_only: no more of the plan is decided than an estimate sees, and no check of its code is asked.
  bool estimate_only = false;
  bool verify = false;      // verify between stages (tests, fuzzing)
  bool native_text = true;  // false: refuse functions with native text
  // GPU targets: the first version's; a target without the engine starts lower
  AssumptionLevel level = AssumptionLevel::tensor_stores;
  // The version is one after the first.
  bool fallback = false;
  // At level `none`: the decisions of the level above, to begin with.
  std::shared_ptr<const plan::Schedule> planned;
  int64_t fallback_ms = 0;  // what the compilation of each fallback version may take; 0: any time
  // GPU targets: the first to try, of what no schedule is given for
  schedule::PlanForm form = schedule::PlanForm::full;
  sim::SimOptions simulation;
  cost::Sizes sizes;  // of dims, for estimates; nominal ones for others
  // Judges a kernel's code as the verifiers do: what is wrong with it. For tests of what follows a rejection.
  std::function<std::vector<std::string>(const thread::ThreadProgram&)> check;
  // Called for each plan of a kernel that planning, lowering or a check rejects, whether another takes its
  // place or not: a planner whose plans are internal_error has a defect, which no result shows.
  std::function<void(const Error&)> rejected;
  // Called after each stage with its name and a text of its result; return is ignored. Stages run again where
  // a plan is rejected.
  std::function<void(std::string_view stage, std::string_view text)> dump;
  // Hears what each stage decided; may be null.
  std::shared_ptr<Log> log;
  // Asked before every stage and kernel, and by long loops inside.
  const Cancellation* cancellation = nullptr;
};

Expected<std::shared_ptr<const Artifact>> compile(std::shared_ptr<const ir::Program> program,
                                                  const target::Target& target,
                                                  const CompileOptions& options);

}  // namespace tilegen::driver
