// compile_host: emit, verify, optimise, generate, link. One context per compile; a fatal error of LLVM
// abandons it.
#include <llvm/Transforms/Utils/Cloning.h>

#include "codegen/host_code.h"
#include "codegen/llvm/compile_steps.h"
#include "codegen/llvm/host_emitter.h"
#include "codegen/llvm/llvm_setup.h"
#include "codegen/llvm/machine_code.h"
#include "codegen/llvm/native_functions.h"
#include "codegen/llvm/optimise.h"

namespace tilegen::codegen {
namespace {

// Everything of LLVM that one compile owns, in order of construction.
struct Compile {
  std::string errors;  // reported through the context
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module, copy;
  std::unique_ptr<Optimiser> optimiser;
  MachineCodeEmitter object, assembly;
};

// Entries are numbered so that two kernels of one name do not collide.
std::string symbol_of(const thread::ThreadProgram& kernel, size_t index) {
  return kernel.name + "_" + std::to_string(index);
}

std::optional<Error> emit_module(Compile& c, std::span<const thread::ThreadProgram> kernels,
                                 const HostCodegenOptions& options) {
  c.module = std::make_unique<llvm::Module>("tilegen", c.context);
  c.module->setTargetTriple(c.machine->getTargetTriple().str());
  c.module->setDataLayout(c.machine->createDataLayout());
  MachineFeatures features = host_features(*c.machine);
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (auto stop = given_up(options.cancellation, kernels)) return stop;
    HostEmitter emitter(*c.module, kernels[i], features, symbol_of(kernels[i], i));
    if (auto why = emitter.emit()) return backend_error(kernels[i].name, *why);
  }
  inline_native_functions(*c.module);
  return options.verify ? invalid_module(*c.module, kernels) : std::nullopt;
}

std::optional<Error> generate(Compile& c, std::span<const thread::ThreadProgram> kernels,
                              const HostCodegenOptions& options, HostCodeResult& result) {
  Clock clock;
  collect_diagnostics(c.context, c.errors);
  if (auto error = emit_module(c, kernels, options)) return error;
  result.emit_ms = clock.lap();
  if (options.keep_ir) result.llvm_ir = module_text(*c.module);
  clock.lap();
  c.optimiser = std::make_unique<Optimiser>(*c.machine, Optimiser::Pipeline::host, options.cancellation);
  c.optimiser->run(*c.module);
  result.optimise_ms = clock.lap();
  if (auto stop = given_up(options.cancellation, kernels)) return stop;
  if (options.keep_ir) result.llvm_ir_optimised = module_text(*c.module);
  if (options.keep_assembly) {
    c.copy = llvm::CloneModule(*c.module);
    if (!c.assembly.run(*c.machine, *c.copy, llvm::CodeGenFileType::AssemblyFile))
      return backend_error(names_of(kernels), "the target writes no assembly");
    result.assembly.assign(c.assembly.bytes().begin(), c.assembly.bytes().end());
  }
  clock.lap();
  if (!c.object.run(*c.machine, *c.module, llvm::CodeGenFileType::ObjectFile))
    return backend_error(names_of(kernels), "the target writes no object files");
  if (!c.errors.empty()) return backend_error(names_of(kernels), c.errors);
  if (auto stop = given_up(options.cancellation, kernels)) return stop;
  std::vector<std::string> symbols;
  for (size_t i = 0; i < kernels.size(); ++i) symbols.push_back(symbol_of(kernels[i], i));
  llvm::StringRef bytes(c.object.bytes().data(), c.object.bytes().size());
  auto code = load_object(bytes, symbols);
  if (!code) return code.error();
  result.code = *code;
  result.object = bytes.str();
  result.codegen_ms = clock.lap();
  return std::nullopt;
}

}  // namespace

Expected<HostCodeResult> compile_host(std::span<const thread::ThreadProgram> kernels,
                                      const target::Target& target, const HostCodegenOptions& options) {
  auto machine = make_target_machine(target);
  if (!machine) return machine.error();
  HostCodeResult result;
  const GuardedScope calls_llvm;
  auto compile = std::make_unique<Compile>();
  compile->machine = std::move(*machine);
  auto failure = run_compile(std::move(compile), kernels,
                             [&](Compile& c) { return generate(c, kernels, options, result); });
  if (failure) return *failure;
  return result;
}

}  // namespace tilegen::codegen
