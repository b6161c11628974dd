// The lean pass pipeline of host kernels. The emitter already vectorises and unrolls, so what is left is
// promotion of register memories, sharing, hoisting and clean-up; the loop and SLP vectorisers would only
// cost time.
#pragma once

#include <memory>

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace tilegen::codegen {

// Owns the analyses of one compile. After a fatal error it must be leaked with the module.
class Optimiser {
 public:
  explicit Optimiser(llvm::TargetMachine& machine);
  ~Optimiser();
  void run(llvm::Module& module);

 private:
  struct Passes;
  std::unique_ptr<Passes> passes_;
};

}  // namespace tilegen::codegen
