// Lean pass pipelines. The emitters already vectorise and unroll, so what is left is promotion of register
// memories (host), sharing, hoisting and clean-up; the vectorisers and unrollers would only cost time. Where
// instructions work on two registers of a lane (v_pk_fma_f32), the straight-line vectoriser makes pairs.
#pragma once

#include <memory>

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "support/cancellation.h"

namespace tilegen::codegen {

struct LaneInstructions;

// Owns the analyses of one compile. After a fatal error it must be leaked with the module.
class Optimiser {
 public:
  enum class Pipeline { host, gpu, gpu_of_pairs };
  // Passes are left out once `cancellation` asks to stop. `lanes`: votes become instructions of the machine
  // (gpu/lane_votes.h).
  Optimiser(llvm::TargetMachine& machine, Pipeline pipeline, const Cancellation* cancellation,
            const LaneInstructions* lanes = nullptr);
  ~Optimiser();
  void run(llvm::Module& module);

 private:
  struct Passes;
  std::unique_ptr<Passes> passes_;
};

}  // namespace tilegen::codegen
