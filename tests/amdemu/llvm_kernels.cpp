#include "llvm_kernels.h"

#include <stdexcept>

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>

#include "codegen/llvm/llvm_setup.h"
#include "codegen/llvm/machine_code.h"
#include "object/hsaco_linker.h"

namespace tilegen::amdemu {

std::string code_object_of(const std::string& text, const std::string& cpu) {
  auto machine = codegen::make_machine("amdgcn-amd-amdhsa", cpu, {});
  if (!machine) throw std::runtime_error(machine.error().to_text());
  llvm::LLVMContext context;
  llvm::SMDiagnostic wrong;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, wrong, context);
  if (!module)
    throw std::runtime_error(wrong.getMessage().str() + " in line " + std::to_string(wrong.getLineNo()));
  module->setTargetTriple("amdgcn-amd-amdhsa");
  module->setDataLayout((*machine)->createDataLayout());
  codegen::MachineCodeEmitter emitter;
  if (!emitter.run(**machine, *module, llvm::CodeGenFileType::ObjectFile))
    throw std::runtime_error("no object");
  auto linked = object::link_hsaco({emitter.bytes().data(), emitter.bytes().size()});
  if (!linked) throw std::runtime_error(linked.error().to_text());
  return *linked;
}

}  // namespace tilegen::amdemu
