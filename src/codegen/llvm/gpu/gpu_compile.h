// A compile of GPU kernels, as all vendors do it: what it owns of LLVM, and the module before optimisation.
#pragma once

#include <set>

#include <llvm/IR/OptBisect.h>

#include "codegen/gpu_code.h"
#include "codegen/llvm/compile_steps.h"
#include "codegen/llvm/index_facts.h"
#include "codegen/llvm/machine_code.h"
#include "codegen/llvm/optimise.h"

namespace tilegen::codegen {

// An atom of another target's table.
std::optional<Error> foreign_atom(std::span<const thread::ThreadProgram> kernels,
                                  const target::Target& target);

// Passes of LLVM's code generator that make these kernels slower: strength reduction of loops gives every
// shared address of an unrolled body an induction variable of its own. Nor is any run that nobody waits for.
// The vectorizer of loads and stores takes time quadratic in a block's instructions (2 s for 30,000), and
// lowering has chosen vectors already.
class PassChoice final : public llvm::OptPassGate {
 public:
  explicit PassChoice(const Cancellation* cancellation) : cancellation_(cancellation) {}
  bool isEnabled() const override { return true; }
  bool shouldRunPass(const llvm::StringRef pass, llvm::StringRef) override {
    return pass != "Loop Strength Reduction" && !(long_blocks_ && pass == "GPU Load and Store Vectorizer") &&
           !stop_requested(cancellation_);
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
  return options.verify ? invalid_module(*c.module, kernels) : std::nullopt;
}

}  // namespace tilegen::codegen
