// The kernel around a body: parameters, launch registers, shared memory.
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/nvptx/gpu_emitter.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using llvm::Value;
using thread::Memory;
using thread::Space;

namespace {

constexpr unsigned kGlobal = 1, kShared = 3;             // address spaces
constexpr uint64_t kMapBytes = 128, kMapAlignment = 64;  // of a tensor map
constexpr const char* kSharedName = "$shared_memory";    // no kernel is called that

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
      ptx_(b_),
      packing_(b_),
      registers_(program, b_, packing_) {}

std::optional<std::string> GpuEmitter::emit() {
  for (const Memory& m : program_.memories)
    if (m.space == Space::local && !m.in_registers)
      return "local memory '" + m.name + "' is not in registers, which a GPU kernel needs";
  if (!target_.tensor_copy && !(program_.barriers.empty() && program_.tensor_maps.empty()))
    return "transaction barriers and tensor copies need a target with a copy engine, as sm_90a is";
  folding_ = find_foldings(program_, registers_);
  create_function();
  open_scope(true);
  bind_params();
  bind_launch_vars();
  // The next kernel's blocks may take the places of those that end. This one's shared memory is made ready
  // beside the end of the one before.
  if (program_.dependent) ptx_.effect("griddepcontrol.launch_dependents;");
  if (!refused()) initialise_block();
  if (program_.dependent) ptx_.effect("griddepcontrol.wait;");
  if (!refused()) emit_early_divisions(program_.body);
  emit_body(program_.body);
  b_.CreateRetVoid();
  close_scope();
  return refusal();
}

// The slots, divisors with their reciprocals, then the tensor maps by value, then the address of the counter.
void GpuEmitter::create_function() {
  std::vector<llvm::Type*> types;
  for (const thread::Param& p : program_.params)
    types.push_back(p.kind == thread::Param::Kind::tensor ? static_cast<llvm::Type*>(b_.getPtrTy(kGlobal))
                                                          : b_.getInt64Ty());
  types.insert(types.end(), 2 * program_.divisors.size(), b_.getInt64Ty());
  const size_t first_map = types.size();
  types.insert(types.end(), program_.tensor_maps.size(), b_.getPtrTy());
  if (program_.dynamic_tiles) types.push_back(b_.getPtrTy(kGlobal));
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), types, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol_, module_);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr("no-builtins");
  for (size_t i = 0; i < program_.tensor_maps.size(); ++i) {
    llvm::Argument* map = function_->getArg(static_cast<unsigned>(first_map + i));
    map->setName(program_.tensor_maps[i].name);
    map->addAttr(
        llvm::Attribute::getWithByValType(context_, llvm::ArrayType::get(b_.getInt8Ty(), kMapBytes)));
    map->addAttr(llvm::Attribute::getWithAlignment(context_, llvm::Align(kMapAlignment)));
    maps_.push_back(map);
  }
  for (size_t i = 0; i < program_.divisors.size(); ++i) {
    const auto slot = [&](size_t which, const char* name) {
      llvm::Argument* argument =
          function_->getArg(static_cast<unsigned>(program_.params.size() + 2 * i + which));
      argument->setName(name);
      return argument;
    };
    divisors_[program_.divisors[i]] = {slot(0, "divisor"), slot(1, "reciprocal")};
  }
  if (program_.dynamic_tiles) {
    counter_ = function_->getArg(static_cast<unsigned>(types.size() - 1));
    counter_->setName("counter");
  }
  annotate_function();
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  declare_shared();
}

void GpuEmitter::annotate_function() {
  llvm::NamedMDNode* annotations = module_.getOrInsertNamedMetadata("nvvm.annotations");
  auto number = [&](int64_t v) {
    return llvm::ConstantAsMetadata::get(b_.getInt32(static_cast<uint32_t>(v)));
  };
  auto annotate = [&](const char* name, llvm::Metadata* value) {
    annotations->addOperand(llvm::MDNode::get(
        context_, {llvm::ConstantAsMetadata::get(function_), llvm::MDString::get(context_, name), value}));
  };
  annotate("kernel", number(1));
  annotate("maxntidx", number(program_.threads));
  annotate("minctasm", number(std::max<int64_t>(program_.min_blocks, 1)));
  std::vector<llvm::Metadata*> in_place;  // parameters that stay where the launch put them, counted from 1
  for (size_t i = 0; i < maps_.size(); ++i)
    in_place.push_back(number(static_cast<int64_t>(maps_[i]->getArgNo() + 1)));
  if (!in_place.empty()) annotate("grid_constant", llvm::MDNode::get(context_, in_place));
}

void GpuEmitter::declare_shared() {
  if (program_.arena_bytes == 0) return;
  shared_ = module_.getGlobalVariable(kSharedName);
  if (shared_) return;
  auto* bytes = llvm::ArrayType::get(b_.getInt8Ty(), 0);
  shared_ =
      new llvm::GlobalVariable(module_, bytes, /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
                               nullptr, kSharedName, nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
  shared_->setAlignment(llvm::Align(static_cast<uint64_t>(target_.tensor_tile_alignment)));
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

// A register of 0 .. count - 1.
Value* GpuEmitter::launch_register(llvm::Intrinsic::ID id, int64_t count) {
  llvm::CallInst* call = b_.CreateIntrinsic(id, {}, {});
  llvm::MDBuilder md(context_);
  call->setMetadata(llvm::LLVMContext::MD_range,
                    md.createRange(llvm::APInt(32, 0), llvm::APInt(32, static_cast<uint64_t>(count))));
  return call;
}

void GpuEmitter::bind_launch_vars() {
  using namespace llvm::Intrinsic;
  constexpr ID kBlock[] = {nvvm_read_ptx_sreg_ctaid_x, nvvm_read_ptx_sreg_ctaid_y,
                           nvvm_read_ptx_sreg_ctaid_z};
  const size_t n = program_.block_vars.size();
  if (n > std::size(kBlock)) return refuse("a grid of more than 3 extents");
  for (size_t i = 0; i < n; ++i) {
    ir::VarId v = program_.block_vars[i];
    bind(v, launch_register(kBlock[n - 1 - i], facts_.range_of_var(v).hi + 1));
  }
  if (program_.launched_var.valid())
    bind(program_.launched_var,
         launch_register(nvvm_read_ptx_sreg_nctaid_x, facts_.range_of_var(program_.launched_var).hi + 1));
  if (program_.thread_var.valid())
    bind(program_.thread_var, launch_register(nvvm_read_ptx_sreg_tid_x, program_.threads));
  bind_warp();
}

}  // namespace tilegen::codegen
