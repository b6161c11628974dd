// LLVM module -> object bytes -> executable memory of this process. Nothing is registered globally: no unwind
// tables, no debugger hooks, and an external symbol is an error, so the code depends on nothing outside
// itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/host_code.h"
#include "support/diagnostic.h"

namespace tilegen::codegen {

// The code generator of one compile; after a fatal error it must be leaked.
class MachineCodeEmitter {
 public:
  // False when the target cannot write that kind of file.
  bool run(llvm::TargetMachine& machine, llvm::Module& module, llvm::CodeGenFileType type);
  const llvm::SmallVector<char, 0>& bytes() const { return bytes_; }

 private:
  llvm::SmallVector<char, 0> bytes_;
  std::unique_ptr<llvm::raw_svector_ostream> stream_;
  std::unique_ptr<llvm::legacy::PassManager> passes_;
};

// Maps an object into memory and looks up its entries.
Expected<std::shared_ptr<HostCode>> load_object(llvm::StringRef object,
                                                const std::vector<std::string>& symbols);

}  // namespace tilegen::codegen
