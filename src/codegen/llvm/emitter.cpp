#include "codegen/llvm/emitter.h"

namespace tilegen::codegen {

KernelEmitter::KernelEmitter(llvm::Module& module, const thread::ThreadProgram& program,
                             const HostFeatures& features, std::string symbol)
    : module_(module),
      context_(module.getContext()),
      program_(program),
      exprs_(program.exprs),
      features_(features),
      symbol_(std::move(symbol)),
      b_(module.getContext()),
      bound_(program.vars.size()),
      lanes_(program) {
  llvm::FastMathFlags contract;
  contract.setAllowContract(true);
  b_.setFastMathFlags(contract);
}

// A new region is code that does not dominate what follows its parent's scope: a loop body, one side of a
// branch. Statements and unrolled iterations open scopes too, only to limit how long values are remembered.
int KernelEmitter::open_scope(bool new_region) {
  Scope s;
  s.region = new_region || scopes_.empty() ? static_cast<int>(scopes_.size()) : scopes_.back().region;
  scopes_.push_back(std::move(s));
  return level();
}

void KernelEmitter::close_scope() {
  for (uint64_t key : scopes_.back().keys) memo_.erase(key);
  scopes_.pop_back();
}

void KernelEmitter::refuse(std::string message) {
  if (refusal_.empty()) refusal_ = std::move(message);
}

}  // namespace tilegen::codegen
