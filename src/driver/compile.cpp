#include "driver/compile.h"

#include <chrono>

#include "ir/text.h"
#include "lower/forward_stores.h"
#include "lower/fuse_loops.h"
#include "lower/lower_kernel.h"
#include "lower/prefetch_blocks.h"
#include "schedule/plan_program.h"

namespace tilegen::driver {

namespace {

// Every stage runs through this: cancel check, run, time, dump.
class Stages {
 public:
  Stages(const CompileOptions& options, std::vector<StageTime>& times) : options_(options), times_(times) {}

  template <class Run>
  auto run(const char* name, Run&& body) -> decltype(body()) {
    if (options_.cancelled && options_.cancelled())
      return Error(DiagCode::cancelled_by_caller, name,
                   "the cancel callback asked to stop before stage '" + std::string(name) + "'",
                   "compile again to have the result");
    auto start = std::chrono::steady_clock::now();
    auto result = body();
    times_.push_back(
        {name, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()});
    if (!result)
      for (Diagnostic& d : result.error().diagnostics)
        if (d.stage.empty()) d.stage = name;
    return result;
  }

  template <class Text>
  void dump(const char* name, Text&& text) const {
    if (options_.dump) options_.dump(name, text());
  }

 private:
  const CompileOptions& options_;
  std::vector<StageTime>& times_;
};

Checked verify(const std::vector<thread::ThreadProgram>& kernels) {
  for (const thread::ThreadProgram& k : kernels) {
    std::vector<std::string> broken = thread::verify_thread_program(k);
    if (!broken.empty())
      return Error(DiagCode::internal_error, k.name,
                   "the thread program breaks an invariant: " + broken.front(), "please report this program");
  }
  return Unit{};
}

}  // namespace

Expected<std::shared_ptr<const Artifact>> compile(std::shared_ptr<const ir::Program> program,
                                                  const target::Target& target,
                                                  const CompileOptions& options) {
  auto artifact = std::make_shared<Artifact>();
  artifact->target = target;
  artifact->program = program;
  Stages stages(options, artifact->times);
  stages.dump("program", [&] { return ir::print_program(*program); });

  // plan: engines, atoms, layouts, stages, memory
  auto schedule = stages.run("plan", [&] {
    return schedule::plan_program(*program, target,
                                  {options.schedule ? &*options.schedule : nullptr, options.conversions});
  });
  if (!schedule) return schedule.error();
  artifact->schedule = std::move(*schedule);
  artifact->schedule.program_hash = ir::program_hash(*program);
  stages.dump("schedule", [&] { return plan::schedule_to_text(artifact->schedule); });
  if (options.plan_only) return std::shared_ptr<const Artifact>(artifact);

  // lower: thread programs
  auto kernels = stages.run("lower", [&]() -> Expected<std::vector<thread::ThreadProgram>> {
    std::vector<thread::ThreadProgram> list;
    for (size_t k = 0; k < program->kernels.size(); ++k) {
      auto lowered =
          lower::lower_kernel(*program, static_cast<int>(k), artifact->schedule.kernels[k], target);
      if (!lowered) return lowered.error();
      lower::fuse_loops(*lowered);
      lower::forward_stores(*lowered);
      lower::prefetch_blocks(*lowered);
      list.push_back(std::move(*lowered));
    }
    return list;
  });
  if (!kernels) return kernels.error();
  artifact->kernels = std::move(*kernels);
  for (size_t k = 0; k < artifact->kernels.size(); ++k) artifact->forms.push_back({k, 1});
  stages.dump("thread", [&] {
    std::string text;
    for (const thread::ThreadProgram& k : artifact->kernels) text += thread::print_thread_program(k);
    return text;
  });
  if (options.verify)
    if (Checked ok = stages.run("verify", [&] { return verify(artifact->kernels); }); !ok) return ok.error();

  // generate: machine code
  auto code = stages.run("generate", [&] {
    codegen::HostCodegenOptions host;
    host.keep_ir = options.keep_ir || static_cast<bool>(options.dump);
    host.keep_assembly = options.keep_assembly;
    return codegen::compile_host(artifact->kernels, target, host);
  });
  if (!code) return code.error();
  artifact->host_code = code->code;
  artifact->times.push_back({"generate.emit", code->emit_ms});
  artifact->times.push_back({"generate.optimise", code->optimise_ms});
  artifact->times.push_back({"generate.codegen", code->codegen_ms});
  stages.dump("llvm", [&] { return code->llvm_ir; });
  stages.dump("llvm-opt", [&] { return code->llvm_ir_optimised; });
  artifact->llvm_ir = std::move(code->llvm_ir);
  artifact->llvm_ir_optimised = std::move(code->llvm_ir_optimised);
  artifact->assembly = std::move(code->assembly);
  return std::shared_ptr<const Artifact>(artifact);
}

}  // namespace tilegen::driver
