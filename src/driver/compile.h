// The pipeline: program + target (+ partial Schedule) -> Artifact. One function for all targets.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/host_code.h"
#include "ir/program.h"
#include "plan/schedule.h"
#include "schedule/plan_program.h"
#include "sim/simulator.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"
#include "support/once.h"
#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::driver {

struct StageTime {
  std::string stage;
  double ms = 0;
};

// The forms of one kernel of the program among Artifact::kernels, in the order in which a launch tries their
// guards.
struct FormRange {
  size_t first = 0, count = 1;
};

struct Artifact;
struct CompileOptions;

// How much more than the program promises a form relies on, most first: what the copy engine demands of the
// tensors it loads and stores and aligned others; of those it loads and aligned others; of those it loads;
// aligned tensors; nothing.
enum class FormLevel : uint8_t { tensor_stores, tensor_loads, tensor_loads_alone, aligned, anything };

// The code for arguments that the guards of an artifact's forms refuse, planned for the next lower level. Few
// launches need it, so it is compiled by the first that does, once, as the first form was asked for.
class UnguardedCode {
 public:
  UnguardedCode(std::shared_ptr<const ir::Program> program, target::Target target,
                const CompileOptions& options, FormLevel level);
  ~UnguardedCode();
  // May be called by any number of threads; the first one compiles. The artifact has one form of each kernel,
  // and code of a lower level behind it where it has guards, too.
  Expected<std::shared_ptr<const Artifact>> get() const;

 private:
  std::shared_ptr<const ir::Program> program_;
  target::Target target_;
  std::unique_ptr<const CompileOptions> options_;
  mutable Once made_;
  mutable std::optional<Expected<std::shared_ptr<const Artifact>>> artifact_;
};

// Everything a launch needs, self-contained: the program it came from may be gone.
struct Artifact {
  target::Target target;
  std::shared_ptr<const ir::Program> program;  // parameters, facts, shapes for argument checks
  plan::Schedule schedule;
  // every form of every kernel; a name is a symbol of the code
  std::vector<thread::ThreadProgram> kernels;
  // parallel to kernels: what each form was lowered from (simulated targets)
  std::vector<plan::KernelSchedule> decisions;
  std::vector<FormRange> forms;                      // one per kernel of the program, in launch order
  std::shared_ptr<codegen::HostCode> host_code;      // host targets
  std::string ptx;                                   // NVIDIA targets
  std::shared_ptr<const UnguardedCode> unguarded;    // NVIDIA targets, where a form has guards
  std::string llvm_ir, llvm_ir_optimised, assembly;  // kept on request
  sim::SimOptions simulation;  // of simulated targets: how launches run
  std::vector<StageTime> times;
};

struct CompileOptions {
  // Decisions to take as given; by forms without the copy engine as far as they are not about it. At level
  // `anything`: all of them, made for `aligned`.
  std::optional<plan::Schedule> schedule;
  bool conversions = true;                 // false: refuse instead of inserting layout conversions
  bool keep_ir = false;
  bool keep_assembly = false;
  bool plan_only = false;  // stop behind planning (any target); the artifact has only the schedule
  bool verify = false;     // verify between stages (tests, fuzzing)
  // GPU targets: the first form's; a target without the engine starts lower
  FormLevel level = FormLevel::tensor_stores;
  // GPU targets: the first to try, of what no schedule is given for
  schedule::PlanForm form = schedule::PlanForm::full;
  sim::SimOptions simulation;
  // Judges a kernel's code as the verifiers do: what is wrong with it. For tests of what follows a rejection.
  std::function<std::vector<std::string>(const thread::ThreadProgram&)> check;
  // Called for each plan of a kernel that planning, lowering or a check rejects, whether another takes its
  // place or not: a planner whose plans are internal_error has a defect, which no result shows.
  std::function<void(const Error&)> rejected;
  // Called after each stage with its name and a text of its result; return is ignored. Stages run again where
  // a plan is rejected.
  std::function<void(std::string_view stage, std::string_view text)> dump;
  // Asked in front of every stage and kernel, and by long loops inside.
  const Cancellation* cancellation = nullptr;
};

Expected<std::shared_ptr<const Artifact>> compile(std::shared_ptr<const ir::Program> program,
                                                  const target::Target& target,
                                                  const CompileOptions& options);

}  // namespace tilegen::driver
