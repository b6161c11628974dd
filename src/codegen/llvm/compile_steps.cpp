#include "codegen/llvm/compile_steps.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "codegen/llvm/llvm_setup.h"

namespace tilegen::codegen {

std::string module_text(const llvm::Module& m) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  m.print(stream, nullptr);
  return text;
}

std::string names_of(std::span<const thread::ThreadProgram> kernels) {
  std::string names;
  for (const thread::ThreadProgram& k : kernels) names += (names.empty() ? "" : ", ") + k.name;
  return names;
}

std::optional<Error> invalid_module(const llvm::Module& m, std::span<const thread::ThreadProgram> kernels) {
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  if (!llvm::verifyModule(m, &stream)) return std::nullopt;
  return backend_error(names_of(kernels), "invalid LLVM IR: " + broken);
}

}  // namespace tilegen::codegen
