// The function around a kernel's body: parameters, memories and the loop over the blocks of a chunk.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/host_emitter.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using llvm::Value;
using thread::Memory;
using thread::Space;

std::optional<std::string> HostEmitter::emit() {
  if (program_.threads != 1)
    return "a host kernel has one thread per block, this one has " + std::to_string(program_.threads);
  create_function();
  open_scope(true);
  bind_params();
  create_memories();
  create_alias_scopes();
  configure_matrix_registers();
  emit_block_loop();
  b_.CreateBr(return_);
  b_.SetInsertPoint(return_);
  // Stores that bypassed the caches are not ordered by the release that ends a launch.
  if (streamed_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  release_matrix_registers();
  b_.CreateRetVoid();
  close_scope();
  return refusal();
}

void HostEmitter::create_function() {
  llvm::Type* ptr = b_.getPtrTy();
  llvm::Type* i64 = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, i64, i64, ptr, ptr}, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol_, module_);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr("no-builtins");
  function_->addFnAttr("prefer-vector-width", std::to_string(features_.vector_bits));
  function_->addFnAttr("min-legal-vector-width", std::to_string(features_.vector_bits));
  const char* names[] = {"params", "grid", "first", "last", "arena", "stop"};
  for (int i = 0; i < 6; ++i) function_->getArg(i)->setName(names[i]);
  for (int i : {0, 1, 4}) function_->addParamAttr(i, llvm::Attribute::NoAlias);
  for (int i : {0, 1, 5}) function_->addParamAttr(i, llvm::Attribute::ReadOnly);
  function_->addParamAttr(4, llvm::Attribute::getWithAlignment(context_, llvm::Align(64)));
  arena_ = function_->getArg(4);
  entry_ = llvm::BasicBlock::Create(context_, "entry", function_);
  return_ = llvm::BasicBlock::Create(context_, "return", function_);
  b_.SetInsertPoint(entry_);
}

void HostEmitter::bind_params() {
  bases_.assign(program_.memories.size(), nullptr);
  Value* params = function_->getArg(0);
  for (size_t i = 0; i < program_.params.size(); ++i) {
    const thread::Param& p = program_.params[i];
    Value* slot = b_.CreateConstGEP1_64(b_.getInt64Ty(), params, i);
    if (p.kind == thread::Param::Kind::tensor) {
      bases_[p.memory.value] = b_.CreateAlignedLoad(b_.getPtrTy(), slot, llvm::Align(8), p.name);
      continue;
    }
    ir::DType t = p.kind == thread::Param::Kind::dim ? ir::DType::i64 : p.type;
    Value* v = b_.CreateAlignedLoad(storage_type(context_, t), slot, llvm::Align(8), p.name);
    bind(p.var, from_storage(b_, t, v));
  }
}

void HostEmitter::create_memories() {
  for (size_t i = 0; i < program_.memories.size(); ++i) {
    const Memory& m = program_.memories[i];
    if (m.space == Space::global) {
      if (!bases_[i] && m.param >= 0 && static_cast<size_t>(m.param) < program_.params.size())
        bases_[i] = b_.CreateAlignedLoad(
            b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getInt64Ty(), function_->getArg(0), m.param),
            llvm::Align(8), m.name);
    } else if (m.in_registers || m.arena_offset < 0) {
      auto* type = llvm::ArrayType::get(storage_type(context_, m.type), static_cast<uint64_t>(m.elements));
      auto* slot = b_.CreateAlloca(type, nullptr, m.name);
      slot->setAlignment(llvm::Align(64));
      bases_[i] = slot;
    } else {
      bases_[i] =
          b_.CreateConstGEP1_64(b_.getInt8Ty(), arena_, static_cast<uint64_t>(m.arena_offset), m.name);
    }
    if (!bases_[i]) refuse("memory '" + m.name + "' has no parameter");
  }
}

// Slices of the arena with no byte in common do not alias each other, and nothing in the arena aliases a
// parameter. Parameters may alias one another.
void HostEmitter::create_alias_scopes() {
  size_t n = program_.memories.size();
  scope_of_.assign(n, nullptr);
  disjoint_from_.assign(n, nullptr);
  llvm::MDBuilder md(context_);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain(symbol_);
  auto in_arena = [&](const Memory& m) {
    return m.space != Space::global && !m.in_registers && m.arena_offset >= 0;
  };
  auto end = [&](const Memory& m) { return m.arena_offset + m.elements * ir::dtype_bytes(m.type); };
  std::vector<llvm::Metadata*> scopes(n, nullptr);
  llvm::MDNode* global = md.createAnonymousAliasScope(domain, "global");
  for (size_t i = 0; i < n; ++i) {
    const Memory& m = program_.memories[i];
    if (m.space == Space::global)
      scopes[i] = global;
    else if (in_arena(m))
      scopes[i] = md.createAnonymousAliasScope(domain, m.name);
    if (scopes[i]) scope_of_[i] = llvm::MDNode::get(context_, {scopes[i]});
  }
  for (size_t i = 0; i < n; ++i) {
    if (!scopes[i]) continue;
    const Memory& m = program_.memories[i];
    std::vector<llvm::Metadata*> others;
    if (m.space != Space::global) others.push_back(global);
    for (size_t j = 0; j < n; ++j) {
      const Memory& o = program_.memories[j];
      if (j == i || !in_arena(o)) continue;
      bool apart = m.space == Space::global || end(o) <= m.arena_offset || end(m) <= o.arena_offset;
      if (apart) others.push_back(scopes[j]);
    }
    if (!others.empty()) disjoint_from_[i] = llvm::MDNode::get(context_, others);
  }
}

void HostEmitter::emit_block_loop() {
  std::vector<Value*> grid;
  for (size_t i = 0; i < program_.grid.size(); ++i)
    grid.push_back(b_.CreateAlignedLoad(b_.getInt64Ty(),
                                        b_.CreateConstGEP1_64(b_.getInt64Ty(), function_->getArg(1), i),
                                        llvm::Align(8), "grid"));
  Value* first = function_->getArg(2);
  Value* count = b_.CreateSub(function_->getArg(3), first);
  CountedLoop loop = begin_counted_loop(count, "block");
  emit_stop_check();
  open_scope(true);
  bind_block_vars(b_.CreateAdd(first, loop.index), grid);
  emit_body(program_.body);
  close_scope();
  end_counted_loop(loop);
}

void HostEmitter::emit_stop_check() {
  auto* flag = b_.CreateAlignedLoad(b_.getInt32Ty(), function_->getArg(5), llvm::Align(4), "stop");
  flag->setAtomic(llvm::AtomicOrdering::Monotonic);  // another thread sets it
  auto* go_on = llvm::BasicBlock::Create(context_, "going", function_);
  llvm::MDNode* rarely = llvm::MDBuilder(context_).createUnlikelyBranchWeights();
  b_.CreateCondBr(b_.CreateICmpNE(flag, b_.getInt32(0)), return_, go_on, rarely);
  b_.SetInsertPoint(go_on);
}

void HostEmitter::bind_block_vars(Value* linear, const std::vector<Value*>& grid) {
  for (size_t i = program_.block_vars.size(); i-- > 0;) {
    if (i == 0) {
      bind(program_.block_vars[i], linear);
    } else {
      // Chunks come from a non-empty grid, so no extent is 0 here.
      bind(program_.block_vars[i], b_.CreateURem(linear, grid[i]));
      linear = b_.CreateUDiv(linear, grid[i]);
    }
  }
}

}  // namespace tilegen::codegen
