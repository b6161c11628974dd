#include "driver/compile.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "codegen/gpu_code.h"
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

// A name for another form of `kernel` that no kernel of the program has.
std::string form_name(const ir::Program& program, const std::string& kernel) {
  std::string name = kernel + "__v1";
  const auto taken = [&](const ir::Kernel& k) { return k.name == name; };
  while (std::any_of(program.kernels.begin(), program.kernels.end(), taken)) name += '_';
  return name;
}

struct Lowered {
  std::vector<thread::ThreadProgram> kernels;
  std::vector<FormRange> forms;
  bool guarded = false;  // some form relies on more than the program promises
};

// One form of each kernel. The simulator has a second one at once, without wide accesses, where the first relies on more
// than the program promises; for a device that is UnguardedCode's.
Expected<Lowered> lower_program(const ir::Program& program, const plan::Schedule& schedule,
                                const target::Target& target, bool assume_aligned) {
  Lowered out;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const auto lower = [&](bool aligned) {
      return lower::lower_kernel(program, static_cast<int>(k), schedule.kernels[k], target, {aligned});
    };
    auto first = lower(assume_aligned);
    if (!first) return first.error();
    if (target.is_host()) {
      lower::fuse_loops(*first);
      lower::forward_stores(*first);
      lower::prefetch_blocks(*first);
    }
    out.forms.push_back({out.kernels.size(), 1});
    const bool guarded = !first->guards.empty();
    out.guarded |= guarded;
    out.kernels.push_back(std::move(*first));
    if (!guarded || !target.simulated) continue;
    auto second = lower(false);
    if (!second) return second.error();
    second->name = form_name(program, second->name);
    out.forms.back().count = 2;
    out.kernels.push_back(std::move(*second));
  }
  return out;
}

struct Generated {
  std::shared_ptr<codegen::HostCode> host_code;
  std::string ptx, llvm_ir, llvm_ir_optimised, assembly;
  double emit_ms = 0, optimise_ms = 0, codegen_ms = 0;
};

Expected<Generated> generate(std::span<const thread::ThreadProgram> kernels, const target::Target& target,
                             const CompileOptions& options) {
  const bool keep_ir = options.keep_ir || static_cast<bool>(options.dump);
  Generated out;
  const auto take = [&out](auto& code) {
    out.llvm_ir = std::move(code->llvm_ir);
    out.llvm_ir_optimised = std::move(code->llvm_ir_optimised);
    out.emit_ms = code->emit_ms;
    out.optimise_ms = code->optimise_ms;
    out.codegen_ms = code->codegen_ms;
  };
  if (target.is_host()) {
    codegen::HostCodegenOptions host;
    host.keep_ir = keep_ir;
    host.keep_assembly = options.keep_assembly;
    auto code = codegen::compile_host(kernels, target, host);
    if (!code) return code.error();
    take(code);
    out.host_code = std::move(code->code);
    out.assembly = std::move(code->assembly);
  } else {
    codegen::GpuCodegenOptions gpu;
    gpu.keep_ir = keep_ir;
    auto code = codegen::compile_ptx(kernels, target, gpu);
    if (!code) return code.error();
    take(code);
    out.ptx = std::move(code->ptx);
    if (options.keep_assembly) out.assembly = out.ptx;
  }
  return out;
}

}  // namespace

UnguardedCode::UnguardedCode(std::shared_ptr<const ir::Program> program, target::Target target,
                             plan::Schedule schedule)
    : program_(std::move(program)), target_(std::move(target)), schedule_(std::move(schedule)) {}

Expected<std::shared_ptr<const Artifact>> UnguardedCode::get() const {
  std::call_once(made_, [this] {
    CompileOptions options;
    options.schedule = schedule_;
    options.assume_aligned = false;
    artifact_ = compile(program_, target_, options);
  });
  return *artifact_;
}

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
  auto lowered = stages.run("lower", [&] { return lower_program(*program, artifact->schedule, target, options.assume_aligned); });
  if (!lowered) return lowered.error();
  artifact->kernels = std::move(lowered->kernels);
  artifact->forms = std::move(lowered->forms);
  if (lowered->guarded && !target.simulated)
    artifact->unguarded = std::make_shared<UnguardedCode>(program, target, artifact->schedule);
  stages.dump("thread", [&] {
    std::string text;
    for (const thread::ThreadProgram& k : artifact->kernels) text += thread::print_thread_program(k);
    return text;
  });
  if (options.verify || !target.is_host())
    if (Checked ok = stages.run("verify", [&] { return verify(artifact->kernels); }); !ok) return ok.error();

  artifact->simulation = options.simulation;
  if (target.simulated) return std::shared_ptr<const Artifact>(artifact);  // the thread programs are what runs

  // generate: machine code, or PTX
  auto code = stages.run("generate", [&] { return generate(artifact->kernels, target, options); });
  if (!code) return code.error();
  artifact->host_code = std::move(code->host_code);
  artifact->ptx = std::move(code->ptx);
  artifact->times.push_back({"generate.emit", code->emit_ms});
  artifact->times.push_back({"generate.optimise", code->optimise_ms});
  artifact->times.push_back({"generate.codegen", code->codegen_ms});
  stages.dump("llvm", [&] { return code->llvm_ir; });
  stages.dump("llvm-opt", [&] { return code->llvm_ir_optimised; });
  if (!artifact->ptx.empty()) stages.dump("ptx", [&] { return artifact->ptx; });
  artifact->llvm_ir = std::move(code->llvm_ir);
  artifact->llvm_ir_optimised = std::move(code->llvm_ir_optimised);
  artifact->assembly = std::move(code->assembly);
  return std::shared_ptr<const Artifact>(artifact);
}

}  // namespace tilegen::driver
