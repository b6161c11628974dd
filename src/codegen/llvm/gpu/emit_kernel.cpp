// The kernel around a body: parameters and what the launch sets.
#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/gpu/gpu_emitter.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using llvm::Value;
using thread::Memory;
using thread::Space;

namespace {

llvm::Align alignment_of(const Memory& m) {
  uint64_t known = static_cast<uint64_t>(std::max<int64_t>(m.alignment, ir::dtype_bytes(m.type)));
  return llvm::Align(std::min<uint64_t>(known & (0 - known), 4096));
}

}  // namespace

GpuEmitter::GpuEmitter(llvm::Module& module, const thread::ThreadProgram& program, IndexFacts& facts,
                       const MachineFeatures& features, const target::Target& target, std::string symbol)
    : ProgramEmitter(module, program, facts.pool(), features, std::move(symbol)),
      facts_(facts),
      target_(target),
      packing_(b_, features_),
      registers_(program, b_, packing_) {}

std::optional<std::string> GpuEmitter::emit() {
  for (const Memory& m : program_.memories)
    if (m.space == Space::local && !m.in_registers)
      return "local memory '" + m.name + "' is not in registers, which a GPU kernel needs";
  if (auto why = unsupported()) return why;
  declare_kernel();
  open_scope(true);
  bind_params();
  bind_launch_vars();
  begin_body();
  if (!refused()) emit_early_divisions(program_.body);
  emit_body(program_.body);
  b_.CreateRetVoid();
  close_scope();
  return refusal();
}

void GpuEmitter::create_function(const std::vector<llvm::Type*>& more) {
  std::vector<llvm::Type*> types;
  for (const thread::Param& p : program_.params)
    types.push_back(p.kind == thread::Param::Kind::tensor
                        ? static_cast<llvm::Type*>(b_.getPtrTy(kGlobalSpace))
                        : b_.getInt64Ty());
  types.insert(types.end(), 2 * program_.divisors.size(), b_.getInt64Ty());
  types.insert(types.end(), more.begin(), more.end());
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), types, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol_, module_);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr("no-builtins");
  for (size_t i = 0; i < program_.divisors.size(); ++i) {
    const auto slot = [&](size_t which, const char* name) {
      llvm::Argument* argument =
          function_->getArg(static_cast<unsigned>(program_.params.size() + 2 * i + which));
      argument->setName(name);
      return argument;
    };
    divisors_[program_.divisors[i]] = {slot(0, "divisor"), slot(1, "reciprocal")};
  }
}

void GpuEmitter::bind_params() {
  bases_.assign(program_.memories.size(), nullptr);
  for (size_t i = 0; i < program_.params.size(); ++i) {
    const thread::Param& p = program_.params[i];
    llvm::Argument* slot = function_->getArg(static_cast<unsigned>(i));
    slot->setName(p.name);
    if (p.kind == thread::Param::Kind::tensor) {
      slot->addAttr(llvm::Attribute::getWithAlignment(context_, alignment_of(program_.memory(p.memory))));
      bases_[p.memory.value] = slot;
      continue;
    }
    ir::DType t = p.kind == thread::Param::Kind::dim ? ir::DType::i64 : p.type;
    Value* bits = b_.CreateTrunc(slot, b_.getIntNTy(static_cast<unsigned>(ir::dtype_bits(t))));
    bind(p.var, packing_.from_element_bits(t, bits));
  }
  for (size_t i = 0; i < program_.memories.size(); ++i) {
    const Memory& m = program_.memories[i];
    if (m.space != Space::global || bases_[i]) continue;
    if (m.param < 0 || static_cast<size_t>(m.param) >= program_.params.size())
      return refuse("memory '" + m.name + "' has no parameter");
    bases_[i] = function_->getArg(static_cast<unsigned>(m.param));
  }
}

Value* GpuEmitter::below(llvm::CallInst* v, int64_t count) {
  llvm::MDBuilder md(context_);
  v->setMetadata(llvm::LLVMContext::MD_range,
                 md.createRange(llvm::APInt(32, 0), llvm::APInt(32, static_cast<uint64_t>(count))));
  return v;
}

void GpuEmitter::bind_launch_vars() {
  const size_t n = program_.block_vars.size();
  if (n > 3) return refuse("a grid of more than 3 extents");
  for (size_t i = 0; i < n; ++i) {
    ir::VarId v = program_.block_vars[i];
    bind(v, block_index(static_cast<unsigned>(n - 1 - i), facts_.range_of_var(v).hi + 1));
  }
  if (program_.launched_var.valid())
    bind(program_.launched_var, launched_blocks(facts_.range_of_var(program_.launched_var).hi + 1));
  if (program_.thread_var.valid()) bind(program_.thread_var, thread_index());
}

}  // namespace tilegen::codegen
