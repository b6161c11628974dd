#include "codegen/llvm/optimise.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/InstSimplifyPass.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>

#include "codegen/llvm/gpu/lane_votes.h"

namespace tilegen::codegen {

namespace {

// The vectoriser looks at all that is stored, which takes as long as all other passes for a product: where a
// kernel computes nothing in floats by itself there are no pairs to find.
struct PairsOfFloats : llvm::PassInfoMixin<PairsOfFloats> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& known) {
    for (const llvm::Instruction& i : llvm::instructions(f))
      if (i.getType()->isFloatingPointTy() &&
          (i.isBinaryOp() || i.isUnaryOp() || llvm::isa<llvm::CallInst>(i)))
        return vectoriser.run(f, known);
    return llvm::PreservedAnalyses::all();
  }
  llvm::SLPVectorizerPass vectoriser;
};

struct LaneVotes : llvm::PassInfoMixin<LaneVotes> {
  explicit LaneVotes(const LaneInstructions& machine) : machine(machine) {}
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager&) {
    if (!select_votes(f, machine)) return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses kept;
    kept.preserveSet<llvm::CFGAnalyses>();
    return kept;
  }
  const LaneInstructions& machine;
};

// Stores and loads of one place in a loop become a register where the loop has no more accesses than that:
// each is compared with all others.
llvm::LICMOptions hoisting(unsigned most_accesses) {
  return {llvm::LICMOptions().MssaOptCap, most_accesses, /*AllowSpeculation=*/true};
}

constexpr unsigned kHostAccesses = 250, kGpuAccesses = 32;

}  // namespace

struct Optimiser::Passes {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassInstrumentationCallbacks watch;
  llvm::FunctionPassManager pipeline;

  void add_host();
  void add_gpu(bool pairs, const LaneInstructions* lanes);
};

void Optimiser::Passes::add_host() {
  llvm::FunctionPassManager& p = pipeline;
  p.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  p.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  p.addPass(llvm::InstSimplifyPass());
  p.addPass(llvm::SimplifyCFGPass());
  p.addPass(
      llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(hoisting(kHostAccesses)), /*UseMemorySSA=*/true));
  p.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  p.addPass(llvm::InstSimplifyPass());
  p.addPass(llvm::SimplifyCFGPass());
}

void Optimiser::Passes::add_gpu(bool pairs, const LaneInstructions* lanes) {
  llvm::FunctionPassManager& p = pipeline;
  p.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  if (lanes) p.addPass(LaneVotes(*lanes));
  p.addPass(llvm::InstCombinePass());
  p.addPass(
      llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(hoisting(kGpuAccesses)), /*UseMemorySSA=*/true));
  p.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  p.addPass(llvm::ADCEPass());
  p.addPass(llvm::SimplifyCFGPass());
  if (!pairs) return;
  p.addPass(PairsOfFloats());
  p.addPass(llvm::EarlyCSEPass());
}

Optimiser::Optimiser(llvm::TargetMachine& machine, Pipeline pipeline, const Cancellation* cancellation,
                     const LaneInstructions* lanes) {
  auto* const passes = new Passes;  // owned once it is whole; abandoned when anything is thrown before
  passes->watch.registerShouldRunOptionalPassCallback(
      [cancellation](llvm::StringRef, llvm::Any) { return !stop_requested(cancellation); });
  llvm::PassBuilder builder(&machine, llvm::PipelineTuningOptions(), std::nullopt, &passes->watch);
  builder.registerModuleAnalyses(passes->modules);
  builder.registerCGSCCAnalyses(passes->calls);
  builder.registerFunctionAnalyses(passes->functions);
  builder.registerLoopAnalyses(passes->loops);
  builder.crossRegisterProxies(passes->loops, passes->functions, passes->calls, passes->modules);

  pipeline == Pipeline::host ? passes->add_host()
                             : passes->add_gpu(pipeline == Pipeline::gpu_of_pairs, lanes);
  passes_.reset(passes);
}

Optimiser::~Optimiser() = default;

void Optimiser::run(llvm::Module& module) {
  for (llvm::Function& f : module)
    if (!f.isDeclaration()) passes_->pipeline.run(f, passes_->functions);
}

}  // namespace tilegen::codegen
