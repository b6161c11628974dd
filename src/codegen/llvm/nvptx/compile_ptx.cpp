// compile_ptx: emit, verify, optimise, generate. One context per compile; a fatal error of LLVM abandons it.
#include <algorithm>
#include <set>

#include <llvm/IR/OptBisect.h>

#include "codegen/gpu_code.h"
#include "codegen/llvm/compile_steps.h"
#include "codegen/llvm/llvm_setup.h"
#include "codegen/llvm/machine_code.h"
#include "codegen/llvm/nvptx/gpu_emitter.h"
#include "codegen/llvm/optimise.h"

namespace tilegen::codegen {
namespace {

using Kernels = std::span<const thread::ThreadProgram>;

constexpr int kStoreMatrixPtx = 78;  // PTX ISA, "stmatrix"

// Least PTX version that serves the target and what the kernels use of it.
int least_ptx(const target::Target& target, Kernels kernels) {
  int ptx = target.isa_version;
  for (const thread::ThreadProgram& k : kernels)
    for (const thread::Stmt& s : k.stmts) {
      if (auto* mma = std::get_if<thread::WarpMma>(&s.node))
        if (const target::MmaAtom* atom = target::find_mma_atom(target, mma->atom))
          ptx = std::max(ptx, atom->isa_version);
      if (auto* mma = std::get_if<thread::WarpgroupMma>(&s.node))
        if (const auto instruction = target::find_warpgroup_atom(target, mma->atom))
          ptx = std::max(ptx, instruction->atom->isa_version);
      if (std::holds_alternative<thread::StoreMatrix>(s.node)) ptx = std::max(ptx, kStoreMatrixPtx);
    }
  if (target.fp8_isa_version > ptx)
    for (const thread::ThreadProgram& k : kernels)
      for (size_t id = 0; id < k.exprs.size(); ++id)
        if (ir::is_storage_only(k.exprs.type(ir::ExprId(id)))) return target.fp8_isa_version;
  return ptx;
}

// An atom of another target's table.
std::optional<Error> foreign_atom(Kernels kernels, const target::Target& target) {
  for (const thread::ThreadProgram& k : kernels)
    for (const thread::Stmt& s : k.stmts) {
      auto* mma = std::get_if<thread::WarpMma>(&s.node);
      if (mma && !target::find_mma_atom(target, mma->atom))
        return backend_error(s.origin.empty() ? k.name : s.origin,
                             target.name + " has no matrix atom '" + mma->atom + "'");
    }
  return std::nullopt;
}

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
struct Compile {
  explicit Compile(const Cancellation* cancellation) : passes(cancellation) {}

  std::string errors;  // reported through the context
  PassChoice passes;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<Optimiser> optimiser;
  MachineCodeEmitter assembly;
};

std::optional<Error> emit_module(Compile& c, Kernels kernels, const target::Target& target,
                                 const MachineFeatures& features, const GpuCodegenOptions& options) {
  c.module = std::make_unique<llvm::Module>("tilegen", c.context);
  c.module->setTargetTriple(c.machine->getTargetTriple().str());
  c.module->setDataLayout(c.machine->createDataLayout());
  std::set<std::string> symbols;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (auto stop = given_up(options.cancellation, kernels)) return stop;
    std::string symbol = options.symbols.empty() ? kernels[i].name : options.symbols[i];
    if (!symbols.insert(symbol).second) return backend_error(symbol, "two kernels of one symbol");
    IndexFacts facts(kernels[i], kNvidiaGrid);
    GpuEmitter emitter(*c.module, kernels[i], facts, features, target, symbol);
    if (auto why = emitter.emit()) {
      const std::string& origin = emitter.refused_origin();
      return backend_error(origin.empty() ? kernels[i].name : origin, *why);
    }
  }
  return options.verify ? invalid_module(*c.module, kernels) : std::nullopt;
}

std::optional<Error> generate(Compile& c, Kernels kernels, const target::Target& target,
                              const MachineFeatures& features, const GpuCodegenOptions& options,
                              PtxResult& result) {
  Clock clock;
  collect_diagnostics(c.context, c.errors);
  c.context.setOptPassGate(c.passes);
  if (auto error = emit_module(c, kernels, target, features, options)) return error;
  result.emit_ms = clock.lap();
  if (options.keep_ir) result.llvm_ir = module_text(*c.module);
  clock.lap();
  c.optimiser = std::make_unique<Optimiser>(*c.machine, Optimiser::Pipeline::gpu, options.cancellation);
  c.optimiser->run(*c.module);
  result.optimise_ms = clock.lap();
  if (auto stop = given_up(options.cancellation, kernels)) return stop;
  if (options.keep_ir) result.llvm_ir_optimised = module_text(*c.module);
  clock.lap();
  c.passes.look_at(*c.module);
  if (!c.assembly.run(*c.machine, *c.module, llvm::CodeGenFileType::AssemblyFile))
    return backend_error(names_of(kernels), "the target writes no assembly");
  if (!c.errors.empty()) return backend_error(names_of(kernels), c.errors);
  if (auto stop = given_up(options.cancellation, kernels)) return stop;
  result.ptx.assign(c.assembly.bytes().begin(), c.assembly.bytes().end());
  result.codegen_ms = clock.lap();
  return std::nullopt;
}

}  // namespace

Expected<PtxResult> compile_ptx(Kernels kernels, const target::Target& target,
                                const GpuCodegenOptions& options) {
  if (target.code != target::CodeFormat::ptx)
    return backend_error(names_of(kernels), "no PTX for target '" + target.name + "'");
  if (!options.symbols.empty() && options.symbols.size() != kernels.size())
    return backend_error(names_of(kernels), "as many symbols as kernels are needed");
  if (auto foreign = foreign_atom(kernels, target)) return *foreign;
  MachineFeatures features;
  features.fma = features.nvptx = true;
  features.fp8_pairs = target.fp8_isa_version > 0;
  auto machine =
      make_machine("nvptx64-nvidia-cuda", target.cpu, {"+ptx" + std::to_string(least_ptx(target, kernels))});
  if (!machine) return machine.error();
  PtxResult result;
  const GuardedScope calls_llvm;
  auto compile = std::make_unique<Compile>(options.cancellation);
  compile->machine = std::move(*machine);
  auto failure = run_compile(std::move(compile), kernels, [&](Compile& c) {
    return generate(c, kernels, target, features, options, result);
  });
  if (failure) return *failure;
  return result;
}

}  // namespace tilegen::codegen
