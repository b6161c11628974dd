// The kernel around a body: launch registers, shared memory, tensor maps.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/llvm/nvptx/ptx_emitter.h"
#include "codegen/llvm/nvptx/word_access.h"

namespace tilegen::codegen {

using llvm::Value;
using thread::Memory;

namespace {

constexpr uint64_t kMapBytes = 128, kMapAlignment = 64;  // of a tensor map
constexpr const char* kSharedName = "$shared_memory";    // no kernel is called that

}  // namespace

PtxEmitter::PtxEmitter(llvm::Module& module, const thread::ThreadProgram& program, IndexFacts& facts,
                       const MachineFeatures& features, const target::Target& target, std::string symbol)
    : GpuEmitter(module, program, facts, features, target, std::move(symbol)),
      ptx_(b_),
      folding_(find_foldings(program, registers_)) {}

std::optional<std::string> PtxEmitter::unsupported() const {
  if (!target_.tensor_copy && !program_.tensor_maps.empty())
    return "tensor copies need a target with a copy engine, as sm_90a is";
  return std::nullopt;
}

// The slots, divisors with their reciprocals, then the tensor maps by value, then the address of the counter.
void PtxEmitter::declare_kernel() {
  std::vector<llvm::Type*> more(program_.tensor_maps.size(), b_.getPtrTy());
  if (program_.dynamic_tiles) more.push_back(b_.getPtrTy(kGlobalSpace));
  create_function(more);
  const size_t first_map = function_->arg_size() - more.size();
  for (size_t i = 0; i < program_.tensor_maps.size(); ++i) {
    llvm::Argument* map = function_->getArg(static_cast<unsigned>(first_map + i));
    map->setName(program_.tensor_maps[i].name);
    map->addAttr(
        llvm::Attribute::getWithByValType(context_, llvm::ArrayType::get(b_.getInt8Ty(), kMapBytes)));
    map->addAttr(llvm::Attribute::getWithAlignment(context_, llvm::Align(kMapAlignment)));
    maps_.push_back(map);
  }
  if (program_.dynamic_tiles) {
    counter_ = function_->getArg(static_cast<unsigned>(function_->arg_size() - 1));
    counter_->setName("counter");
  }
  annotate_function();
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  declare_shared();
}

void PtxEmitter::annotate_function() {
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
  if (program_.most_registers > 0) annotate("maxnreg", number(program_.most_registers));
  annotate("minctasm", number(std::max<int64_t>(program_.min_blocks, 1)));
  std::vector<llvm::Metadata*> in_place;  // parameters that stay where the launch put them, counted from 1
  for (size_t i = 0; i < maps_.size(); ++i)
    in_place.push_back(number(static_cast<int64_t>(maps_[i]->getArgNo() + 1)));
  if (!in_place.empty()) annotate("grid_constant", llvm::MDNode::get(context_, in_place));
}

void PtxEmitter::declare_shared() {
  if (program_.arena_bytes == 0) return;
  shared_ = module_.getGlobalVariable(kSharedName);
  if (shared_) return;
  auto* bytes = llvm::ArrayType::get(b_.getInt8Ty(), 0);
  shared_ = new llvm::GlobalVariable(module_, bytes, /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
                                     nullptr, kSharedName, nullptr, llvm::GlobalValue::NotThreadLocal,
                                     kSharedSpace);
  shared_->setAlignment(llvm::Align(static_cast<uint64_t>(target_.tensor_tile_alignment)));
}

Value* PtxEmitter::block_index(unsigned dimension, int64_t count) {
  using namespace llvm::Intrinsic;
  constexpr ID kBlock[] = {nvvm_read_ptx_sreg_ctaid_x, nvvm_read_ptx_sreg_ctaid_y,
                           nvvm_read_ptx_sreg_ctaid_z};
  return below(b_.CreateIntrinsic(kBlock[dimension], {}, {}), count);
}

Value* PtxEmitter::launched_blocks(int64_t count) {
  return below(b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {}, {}), count);
}

Value* PtxEmitter::thread_index() {
  return below(b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {}), program_.threads);
}

void PtxEmitter::begin_body() {
  bind_warp();
  // The next kernel's blocks may take the places of those that end. This one's shared memory is made ready
  // beside the end of the one before.
  if (program_.dependent) ptx_.effect("griddepcontrol.launch_dependents;");
  if (!refused()) initialise_block();
  const bool waits_later = std::any_of(
      program_.stmts.begin(), program_.stmts.end(),
      [](const thread::Stmt& s) { return std::holds_alternative<thread::GridDependencyWait>(s.node); });
  if (program_.dependent && !waits_later) ptx_.effect("griddepcontrol.wait;");
}

PtxEmitter::Values PtxEmitter::load_words(const Place& at, const Memory& m, int64_t bytes, Value* condition,
                                          LoadKind kind) {
  return ptx_load_words(b_, at, m, bytes, condition, kind);
}

void PtxEmitter::store_words(const Place& at, const Memory& m, int64_t bytes, Values words, Value* condition,
                             bool streaming) {
  ptx_store_words(b_, at, m, bytes, std::move(words), condition, streaming);
}

}  // namespace tilegen::codegen
