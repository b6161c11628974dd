// compile_hsaco: emit, verify, optimise, generate an object, link it. One context per compile; a fatal error
// of LLVM abandons it.
#include <llvm/Transforms/Utils/Cloning.h>

#include "codegen/gpu_code.h"
#include "codegen/llvm/amdgpu/amd_emitter.h"
#include "codegen/llvm/amdgpu/split_wide_or.h"
#include "codegen/llvm/gpu/gpu_compile.h"
#include "object/hsaco_linker.h"

namespace tilegen::codegen {
namespace {

using Kernels = std::span<const thread::ThreadProgram>;

constexpr uint32_t kCodeObjectVersion = 500;  // 5, the least that names the runtime's arguments

std::string text(const llvm::SmallVector<char, 0>& bytes) { return {bytes.begin(), bytes.end()}; }

// The listing is generated from a copy: generating changes the module.
std::optional<Error> list_assembly(GpuCompile& c, Kernels kernels, HsacoResult& result) {
  const std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*c.module);
  if (!c.assembly.run(*c.machine, *copy, llvm::CodeGenFileType::AssemblyFile))
    return backend_error(names_of(kernels), "the target writes no assembly");
  result.assembly = text(c.assembly.bytes());
  return std::nullopt;
}

std::optional<Error> generate(GpuCompile& c, Kernels kernels, const target::Target& target,
                              const MachineFeatures& features, const GpuCodegenOptions& options,
                              HsacoResult& result) {
  Clock clock;
  collect_diagnostics(c.context, c.errors);
  c.context.setOptPassGate(c.passes);
  if (auto error = emit_module<AmdEmitter>(c, kernels, target, features, options, kAmdGrid)) return error;
  c.module->addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", kCodeObjectVersion);
  result.emit_ms = clock.lap();
  if (options.keep_ir) result.llvm_ir = module_text(*c.module);
  clock.lap();
  c.optimiser = std::make_unique<Optimiser>(*c.machine, Optimiser::Pipeline::gpu, options.cancellation);
  c.optimiser->run(*c.module);
  split_wide_or(*c.module);
  result.optimise_ms = clock.lap();
  if (auto stop = given_up(options.cancellation, kernels)) return stop;
  if (options.keep_ir) result.llvm_ir_optimised = module_text(*c.module);
  c.passes.look_at(*c.module);
  if (options.keep_assembly)
    if (auto error = list_assembly(c, kernels, result)) return error;
  clock.lap();
  if (!c.object.run(*c.machine, *c.module, llvm::CodeGenFileType::ObjectFile))
    return backend_error(names_of(kernels), "the target writes no objects");
  if (!c.errors.empty()) return backend_error(names_of(kernels), c.errors);
  if (auto stop = given_up(options.cancellation, kernels)) return stop;
  const auto& bytes = c.object.bytes();
  if (options.keep_assembly) result.object = text(bytes);
  auto linked = object::link_hsaco({bytes.data(), bytes.size()});
  if (!linked) return linked.error();
  result.hsaco = std::move(*linked);
  result.codegen_ms = clock.lap();
  return std::nullopt;
}

}  // namespace

Expected<HsacoResult> compile_hsaco(Kernels kernels, const target::Target& target,
                                    const GpuCodegenOptions& options) {
  if (target.code != target::CodeFormat::hsaco)
    return backend_error(names_of(kernels), "no HSACO for target '" + target.name + "'");
  if (!options.symbols.empty() && options.symbols.size() != kernels.size())
    return backend_error(names_of(kernels), "as many symbols as kernels are needed");
  if (auto foreign = foreign_atom(kernels, target)) return *foreign;
  MachineFeatures features;
  features.fma = features.amdgpu = true;
  auto machine = make_machine("amdgcn-amd-amdhsa", target.cpu, target.features);
  if (!machine) return machine.error();
  HsacoResult result;
  const GuardedScope calls_llvm;
  auto compile = std::make_unique<GpuCompile>(options.cancellation);
  compile->machine = std::move(*machine);
  auto failure = run_compile(std::move(compile), kernels, [&](GpuCompile& c) {
    return generate(c, kernels, target, features, options, result);
  });
  if (failure) return *failure;
  return result;
}

}  // namespace tilegen::codegen
