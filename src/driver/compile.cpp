#include "driver/compile.h"

#include <algorithm>
#include <set>
#include <span>

#include "codegen/gpu_code.h"
#include "driver/settle_plan.h"
#include "driver/stages.h"
#include "ir/text.h"

namespace tilegen::driver {

namespace {

// A name for form `number` of `kernel` that no kernel of the program has.
std::string form_name(const ir::Program& program, const std::string& kernel, size_t number) {
  std::string name = kernel + "__v" + std::to_string(number);
  const auto taken = [&](const ir::Kernel& k) { return k.name == name; };
  while (std::any_of(program.kernels.begin(), program.kernels.end(), taken)) name += '_';
  return name;
}

// Whether a launch may refuse the form: the code relies on more than the program promises.
bool relies_on_arguments(const thread::ThreadProgram& form) {
  return !form.guards.empty() || !form.tensor_maps.empty();
}

// The level below `level` that gives another plan than this one. The decisions tell, not the code made of
// them: what is known under a guard may leave none of a tensor copy.
FormLevel level_below(FormLevel level, const ir::Program& program, const plan::Schedule& schedule) {
  std::set<std::string> copies;
  for (const plan::KernelSchedule& kernel : schedule.kernels)
    for (const plan::OpPlan& op : kernel.ops)
      if (op.engine == plan::Engine::tensor_copy) copies.insert(op.op);
  if (copies.empty()) return FormLevel::anything;
  bool stores = false;
  const std::vector<std::string> paths = ir::statement_paths(program);
  for (size_t s = 0; s < paths.size(); ++s)
    if (const auto* copy = program.as<ir::TileOp>(ir::StmtId(s));
        copy && copy->kind == ir::OpKind::copy && copies.count(paths[s]))
      stores |= program.buffer(copy->operands[1].buffer).scope == ir::MemScope::global;
  if (stores && level < FormLevel::tensor_loads) return FormLevel::tensor_loads;
  if (level < FormLevel::tensor_loads_alone) return FormLevel::tensor_loads_alone;
  return level < FormLevel::aligned ? FormLevel::aligned : FormLevel::anything;
}

struct Lowered {
  plan::Schedule schedule;  // of the first forms
  std::vector<thread::ThreadProgram> kernels;
  std::vector<plan::KernelSchedule> decisions;
  std::vector<FormRange> forms;
  bool guarded = false;  // the last form of some kernel relies on more than the program promises
  FormLevel below = FormLevel::anything;  // where it does: the level that relies on less
};

// One form of each kernel for a device, where UnguardedCode has the others; all at once for the simulator.
Expected<Lowered> make_forms(const ir::Program& program, const target::Target& target,
                             const CompileOptions& options, Stages& stages) {
  std::vector<std::vector<thread::ThreadProgram>> by_kernel(program.kernels.size());
  std::vector<std::vector<plan::KernelSchedule>> decisions(program.kernels.size());
  Lowered out;
  std::optional<plan::Schedule> above;
  if (options.level == FormLevel::anything) above = options.schedule;
  for (FormLevel level = options.level;; level = out.below) {
    auto settled = settle_plan(program, target, options, level, above ? &*above : nullptr, stages);
    if (!settled) return settled.error();
    if (out.schedule.kernels.empty()) out.schedule = settled->schedule;
    if (options.plan_only) return out;
    out.guarded = false;
    out.below = level_below(level, program, settled->schedule);
    for (size_t k = 0; k < settled->kernels.size(); ++k) {
      std::vector<thread::ThreadProgram>& list = by_kernel[k];
      if (!list.empty() && !relies_on_arguments(list.back())) continue;
      thread::ThreadProgram& form = settled->kernels[k];
      if (!list.empty()) form.name = form_name(program, form.name, list.size());
      out.guarded |= relies_on_arguments(form);
      list.push_back(std::move(form));
      if (target.simulated) decisions[k].push_back(settled->schedule.kernels[k]);
    }
    above = std::move(settled->schedule);
    if (!out.guarded || !target.simulated || level == FormLevel::anything) break;
  }
  for (std::vector<plan::KernelSchedule>& list : decisions)
    for (plan::KernelSchedule& s : list) out.decisions.push_back(std::move(s));
  for (std::vector<thread::ThreadProgram>& list : by_kernel) {
    out.forms.push_back({out.kernels.size(), list.size()});
    for (thread::ThreadProgram& form : list) out.kernels.push_back(std::move(form));
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
    host.cancellation = options.cancellation;
    host.keep_assembly = options.keep_assembly;
    auto code = codegen::compile_host(kernels, target, host);
    if (!code) return code.error();
    take(code);
    out.host_code = std::move(code->code);
    out.assembly = std::move(code->assembly);
  } else {
    codegen::GpuCodegenOptions gpu;
    gpu.keep_ir = keep_ir;
    gpu.cancellation = options.cancellation;
    auto code = codegen::compile_ptx(kernels, target, gpu);
    if (!code) return code.error();
    take(code);
    out.ptx = std::move(code->ptx);
    if (options.keep_assembly) out.assembly = out.ptx;
  }
  return out;
}

}  // namespace

// The caller hears nothing of it and cannot stop it: what it listened with may be gone.
UnguardedCode::UnguardedCode(std::shared_ptr<const ir::Program> program, target::Target target,
                             const CompileOptions& options, FormLevel level)
    : program_(std::move(program)), target_(std::move(target)) {
  auto own = std::make_unique<CompileOptions>(options);
  own->level = level;
  own->check = nullptr;
  own->rejected = nullptr;
  own->dump = nullptr;
  own->cancellation = nullptr;
  options_ = std::move(own);
}

UnguardedCode::~UnguardedCode() = default;

Expected<std::shared_ptr<const Artifact>> UnguardedCode::get() const {
  made_.run([this] { artifact_ = compile(program_, target_, *options_); });
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

  // plan: engines, atoms, layouts, stages, memory; lower: thread programs; verify: again with less where a
  //   check says no
  auto forms = make_forms(*program, target, options, stages);
  if (!forms) return forms.error();
  artifact->schedule = std::move(forms->schedule);
  if (options.plan_only) return std::shared_ptr<const Artifact>(artifact);
  artifact->kernels = std::move(forms->kernels);
  artifact->forms = std::move(forms->forms);
  artifact->decisions = std::move(forms->decisions);
  if (forms->guarded && !target.simulated) {
    CompileOptions below = options;
    // What was planned for the copy engine does not hold without it; the rest does.
    if (forms->below == FormLevel::anything) below.schedule = artifact->schedule;
    artifact->unguarded = std::make_shared<UnguardedCode>(program, target, below, forms->below);
  }

  artifact->simulation = options.simulation;
  // the thread programs are what runs
  if (target.simulated) return std::shared_ptr<const Artifact>(artifact);

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
