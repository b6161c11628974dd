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
#include "thread/transaction_verify.h"

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
    if (broken.empty()) broken = thread::verify_transactions(k);
    if (!broken.empty())
      return Error(DiagCode::internal_error, k.name,
                   "the thread program breaks an invariant: " + broken.front(), "please report this program");
  }
  return Unit{};
}

// A name for form `number` of `kernel` that no kernel of the program has.
std::string form_name(const ir::Program& program, const std::string& kernel, size_t number) {
  std::string name = kernel + "__v" + std::to_string(number);
  const auto taken = [&](const ir::Kernel& k) { return k.name == name; };
  while (std::any_of(program.kernels.begin(), program.kernels.end(), taken)) name += '_';
  return name;
}

// Whether a launch may refuse the form: the code relies on more than the program promises.
bool relies_on_arguments(const thread::ThreadProgram& form) { return !form.guards.empty() || !form.tensor_maps.empty(); }

// The level below `level` that gives another plan than this one. The decisions tell, not the code made of them: what is known
// under a guard may leave none of a tensor copy.
FormLevel level_below(FormLevel level, const ir::Program& program, const plan::Schedule& schedule) {
  bool copies = false, stores = false;
  const std::vector<std::string> paths = ir::statement_paths(program);
  for (const plan::KernelSchedule& kernel : schedule.kernels)
    for (const plan::OpPlan& op : kernel.ops) {
      if (op.engine != plan::Engine::tensor_copy) continue;
      copies = true;
      const auto at = std::find(paths.begin(), paths.end(), op.op);
      const auto* copy = at == paths.end() ? nullptr : program.as<ir::TileOp>(ir::StmtId(static_cast<size_t>(at - paths.begin())));
      stores |= copy && program.buffer(copy->operands[1].buffer).scope == ir::MemScope::global;
    }
  if (stores && level < FormLevel::tensor_loads) return FormLevel::tensor_loads;
  if (copies && level < FormLevel::tensor_loads_alone) return FormLevel::tensor_loads_alone;
  return copies && level < FormLevel::aligned ? FormLevel::aligned : FormLevel::anything;
}

Expected<plan::Schedule> plan(const ir::Program& program, const target::Target& target, const CompileOptions& options,
                              FormLevel level) {
  // A given schedule is for the best form.
  const bool given = options.schedule && level == options.level;
  schedule::PlanOptions how{given ? &*options.schedule : nullptr, options.conversions};
  if (level == FormLevel::tensor_loads) how.tensor_copies = schedule::TensorCopies::loads;
  if (level == FormLevel::tensor_loads_alone) how.tensor_copies = schedule::TensorCopies::product_loads;
  if (level >= FormLevel::aligned) how.tensor_copies = schedule::TensorCopies::none;
  return schedule::plan_program(program, target, how);
}

struct Lowered {
  std::vector<thread::ThreadProgram> kernels;
  std::vector<plan::KernelSchedule> decisions;
  std::vector<FormRange> forms;
  bool guarded = false;  // the last form of some kernel relies on more than the program promises
  FormLevel below = FormLevel::anything;  // where it does: the level that relies on less
  std::vector<std::vector<plan::Note>> notes;  // of each kernel's first form
};

// One form of each kernel.
Expected<std::vector<thread::ThreadProgram>> lower_forms(const ir::Program& program, const plan::Schedule& schedule,
                                                         const target::Target& target, FormLevel level,
                                                         std::vector<std::vector<plan::Note>>& notes) {
  std::vector<thread::ThreadProgram> out;
  notes.resize(program.kernels.size());
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    auto lowered = lower::lower_kernel(program, static_cast<int>(k), schedule.kernels[k], target,
                                       {.assume_aligned = level != FormLevel::anything,
                                        .for_copy_engine_only = level == FormLevel::tensor_loads_alone,
                                        .notes = &notes[k]});
    if (!lowered) return lowered.error();
    if (target.is_host()) {
      lower::fuse_loops(*lowered);
      lower::forward_stores(*lowered);
      lower::prefetch_blocks(*lowered);
    }
    out.push_back(std::move(*lowered));
  }
  return out;
}

// One form of each kernel for a device, where UnguardedCode has the others; all at once for the simulator.
Expected<Lowered> lower_program(const ir::Program& program, const plan::Schedule& schedule, const target::Target& target,
                                const CompileOptions& options) {
  std::vector<std::vector<thread::ThreadProgram>> by_kernel(program.kernels.size());
  std::vector<std::vector<plan::KernelSchedule>> decisions(program.kernels.size());
  Lowered out;
  FormLevel level = options.level;
  const auto add = [&](const plan::Schedule& s) -> Checked {
    std::vector<std::vector<plan::Note>> notes;
    auto forms = lower_forms(program, s, target, level, notes);
    if (!forms) return forms.error();
    if (out.notes.empty()) out.notes = std::move(notes);
    out.guarded = false;
    out.below = level_below(level, program, s);
    for (size_t k = 0; k < forms->size(); ++k) {
      std::vector<thread::ThreadProgram>& list = by_kernel[k];
      if (!list.empty() && !relies_on_arguments(list.back())) continue;
      if (!list.empty()) (*forms)[k].name = form_name(program, (*forms)[k].name, list.size());
      out.guarded |= relies_on_arguments((*forms)[k]);
      list.push_back(std::move((*forms)[k]));
      if (target.simulated) decisions[k].push_back(s.kernels[k]);
    }
    return Unit{};
  };
  if (Checked ok = add(schedule); !ok) return ok.error();
  plan::Schedule current = schedule;
  while (out.guarded && target.simulated && level != FormLevel::anything) {
    level = out.below;
    if (level != FormLevel::anything) {
      auto next = plan(program, target, options, level);
      if (!next) return next.error();
      current = std::move(*next);
    }
    if (Checked ok = add(current); !ok) return ok.error();
  }
  for (std::vector<plan::KernelSchedule>& list : decisions)
    for (plan::KernelSchedule& s : list) out.decisions.push_back(std::move(s));
  for (std::vector<thread::ThreadProgram>& list : by_kernel) {
    out.forms.push_back({out.kernels.size(), list.size()});
    for (thread::ThreadProgram& form : list) out.kernels.push_back(std::move(form));
  }
  return out;
}

// A schedule that was given may have them already.
void add_notes(plan::KernelSchedule& schedule, const std::vector<plan::Note>& notes) {
  for (const plan::Note& n : notes)
    if (std::find(schedule.notes.begin(), schedule.notes.end(), n) == schedule.notes.end()) schedule.notes.push_back(n);
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
                             plan::Schedule schedule, FormLevel level)
    : program_(std::move(program)), target_(std::move(target)), schedule_(std::move(schedule)), level_(level) {}

Expected<std::shared_ptr<const Artifact>> UnguardedCode::get() const {
  std::call_once(made_, [this] {
    CompileOptions options;
    // What was planned for the copy engine does not hold without it.
    if (level_ == FormLevel::anything) options.schedule = schedule_;
    options.level = level_;
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
  auto schedule = stages.run("plan", [&] { return plan(*program, target, options, options.level); });
  if (!schedule) return schedule.error();
  artifact->schedule = std::move(*schedule);
  artifact->schedule.program_hash = ir::program_hash(*program);
  stages.dump("schedule", [&] { return plan::schedule_to_text(artifact->schedule); });
  if (options.plan_only) return std::shared_ptr<const Artifact>(artifact);

  // lower: thread programs
  auto lowered = stages.run("lower", [&] { return lower_program(*program, artifact->schedule, target, options); });
  if (!lowered) return lowered.error();
  artifact->kernels = std::move(lowered->kernels);
  artifact->forms = std::move(lowered->forms);
  artifact->decisions = std::move(lowered->decisions);
  for (size_t k = 0; k < lowered->notes.size(); ++k) add_notes(artifact->schedule.kernels[k], lowered->notes[k]);
  if (lowered->guarded && !target.simulated)
    artifact->unguarded = std::make_shared<UnguardedCode>(
        program, target, artifact->schedule, lowered->below);
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
