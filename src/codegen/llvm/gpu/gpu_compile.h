// A compile of GPU kernels, as all vendors do it: what it owns of LLVM, and the module before optimisation.
#pragma once

#include <set>

#include <llvm/IR/OptBisect.h>

#include "codegen/gpu_code.h"
#include "codegen/llvm/compile_steps.h"
#include "codegen/llvm/gpu/lane_votes.h"
#include "codegen/llvm/index_facts.h"
#include "codegen/llvm/machine_code.h"
#include "codegen/llvm/native_functions.h"
#include "codegen/llvm/optimise.h"

namespace tilegen::codegen {

// An atom of another target's table.
std::optional<Error> foreign_atom(std::span<const thread::ThreadProgram> kernels,
                                  const target::Target& target);

// Passes of LLVM's code generator that make these kernels slower: strength reduction of loops gives every
// shared address of an unrolled body an induction variable of its own. Nor is any run that nobody waits for.
// The scheduler behind register allocation takes a quarter of an AMD kernel's time where blocks are long: by
// the model of docs/hip.md loops are as busy without it, within two hundredths either way.
// The vectorizer of loads and stores takes time quadratic in a block's instructions (2 s for 30,000), and
// lowering has chosen vectors already.
class PassChoice final : public llvm::OptPassGate {
 public:
  explicit PassChoice(const Cancellation* cancellation) : cancellation_(cancellation) {}
  bool isEnabled() const override { return true; }
  bool shouldRunPass(const llvm::StringRef pass, llvm::StringRef) override {
    return pass != "Loop Strength Reduction" && pass != "PostRA Machine Instruction Scheduler" &&
           !(long_blocks_ && pass == "GPU Load and Store Vectorizer") && !stop_requested(cancellation_);
  }
  void look_at(const llvm::Module& m) {
    for (const llvm::Function& f : m)
      for (const llvm::BasicBlock& b : f) long_blocks_ |= b.size() > kLongBlock;
  }

 private:
  static constexpr size_t kLongBlock = 1 << 13;
  bool long_blocks_ = false;
  const Cancellation* cancellation_;
};

// Everything of LLVM that one compile owns, in order of construction.
struct GpuCompile {
  explicit GpuCompile(const Cancellation* cancellation) : passes(cancellation) {}

  std::string errors;  // reported through the context
  PassChoice passes;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<Optimiser> optimiser;
  MachineCodeEmitter assembly, object;
};

// A kernel for each program, by a vendor's emitter.
template <class Emitter>
std::optional<Error> emit_module(GpuCompile& c, std::span<const thread::ThreadProgram> kernels,
                                 const target::Target& target, const MachineFeatures& features,
                                 const GpuCodegenOptions& options, const GridLimits& grid) {
  c.module = std::make_unique<llvm::Module>("tilegen", c.context);
  c.module->setTargetTriple(c.machine->getTargetTriple().str());
  c.module->setDataLayout(c.machine->createDataLayout());
  std::set<std::string> symbols;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (auto stop = given_up(options.cancellation, kernels)) return stop;
    std::string symbol = options.symbols.empty() ? kernels[i].name : options.symbols[i];
    if (!symbols.insert(symbol).second) return backend_error(symbol, "two kernels of one symbol");
    IndexFacts facts(kernels[i], grid);
    Emitter emitter(*c.module, kernels[i], facts, features, target, symbol);
    if (auto why = emitter.emit()) {
      const std::string& origin = emitter.refused_origin();
      return backend_error(origin.empty() ? kernels[i].name : origin, *why);
    }
  }
  inline_native_functions(*c.module);
  return options.verify ? invalid_module(*c.module, kernels) : std::nullopt;
}

// The optimised module, with its times and texts in the result. `emitted` and `optimised` change the
// module where a vendor's code asks for it.
template <class Emitter, class Result, class Emitted, class Optimised>
std::optional<Error> make_module(GpuCompile& c, std::span<const thread::ThreadProgram> kernels,
                                 const target::Target& target, const MachineFeatures& features,
                                 const GpuCodegenOptions& options, const GridLimits& grid,
                                 const LaneInstructions& lanes, Result& result, Emitted emitted,
                                 Optimised optimised) {
  Clock clock;
  collect_diagnostics(c.context, c.errors);
  c.context.setOptPassGate(c.passes);
  if (auto error = emit_module<Emitter>(c, kernels, target, features, options, grid)) return error;
  emitted(*c.module);
  result.emit_ms = clock.lap();
  if (options.keep_ir) result.llvm_ir = module_text(*c.module);
  clock.lap();
  c.optimiser = std::make_unique<Optimiser>(*c.machine, Emitter::kPipeline, options.cancellation, &lanes);
  c.optimiser->run(*c.module);
  optimised(*c.module);
  result.optimise_ms = clock.lap();
  if (auto stop = given_up(options.cancellation, kernels)) return stop;
  if (options.keep_ir) result.llvm_ir_optimised = module_text(*c.module);
  c.passes.look_at(*c.module);
  return std::nullopt;
}

// What the vendor's code generator wrote, into `emitter`.
inline std::optional<Error> write_code(GpuCompile& c, std::span<const thread::ThreadProgram> kernels,
                                       const GpuCodegenOptions& options, MachineCodeEmitter& emitter,
                                       llvm::CodeGenFileType type, const char* refused) {
  if (!emitter.run(*c.machine, *c.module, type)) return backend_error(names_of(kernels), refused);
  if (!c.errors.empty()) return backend_error(names_of(kernels), c.errors);
  return given_up(options.cancellation, kernels);
}

// What generate(GpuCompile&, Result&) makes, on the machine of an LLVM triple.
template <class Result, class Generate>
Expected<Result> compile_gpu(std::span<const thread::ThreadProgram> kernels, const target::Target& target,
                             const GpuCodegenOptions& options, const char* triple,
                             const std::vector<std::string>& machine_features, const Generate& generate) {
  if (!options.symbols.empty() && options.symbols.size() != kernels.size())
    return backend_error(names_of(kernels), "as many symbols as kernels are needed");
  if (auto foreign = foreign_atom(kernels, target)) return *foreign;
  auto machine = make_machine(triple, target.cpu, machine_features);
  if (!machine) return machine.error();
  Result result;
  const GuardedScope calls_llvm;
  auto compile = std::make_unique<GpuCompile>(options.cancellation);
  compile->machine = std::move(*machine);
  if (auto failure =
          run_compile(std::move(compile), kernels, [&](GpuCompile& c) { return generate(c, result); }))
    return *failure;
  return result;
}

}  // namespace tilegen::codegen
