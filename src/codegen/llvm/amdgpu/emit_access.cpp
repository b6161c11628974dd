// Words of global and shared memory.
//
// What lies under a predicate in global memory is a buffer access where the index, in bytes, is known to
// have 31 bits: beyond the descriptor's bytes the hardware loads zeros and stores nothing, so the predicate
// chooses an offset, and there is neither a branch around a store nor an address of zeros. Of a tensor's own
// bytes the bound knows nothing: predicates are what is exact, to the element.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/llvm/amdgpu/amd_emitter.h"

namespace tilegen::codegen {

using llvm::Value;
using thread::Memory;
using thread::Space;

namespace {

constexpr const char* kZerosName = "tilegen.zeros";  // no kernel is called that
constexpr unsigned kConstantSpace = 4, kDescriptorSpace = 8;

// "Buffer resource descriptor", word 3: elements of 32 bits, of no stride; as it is on gfx90a and gfx942.
constexpr uint32_t kRawWords = 4 << 15 | 7 << 12;
// Of an access, "cache policy": it streams (slc, on gfx942 nt).
constexpr uint32_t kStreams = 2;

// What one access moves: `count` words of `bits`.
struct Shape {
  unsigned count = 1, bits = 32;
};

Shape shape_of(int64_t bytes, ir::DType t) {
  const int64_t word = word_bytes(t);
  if (bytes < word) return {1, static_cast<unsigned>(8 * bytes)};
  return {static_cast<unsigned>(bytes / word), static_cast<unsigned>(8 * word)};
}

llvm::Type* type_of(llvm::IRBuilder<>& b, const Shape& s) {
  llvm::Type* word = b.getIntNTy(s.bits);
  return s.count > 1 ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(word, s.count)) : word;
}

}  // namespace

// 16 bytes of zeros beside the code, at a global address.
Value* AmdEmitter::zeros() {
  llvm::GlobalVariable* found = module_.getNamedGlobal(kZerosName);
  if (!found) {
    auto* type = llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(target_.vector_bytes));
    found = new llvm::GlobalVariable(module_, type, /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
                                     llvm::Constant::getNullValue(type), kZerosName, nullptr,
                                     llvm::GlobalValue::NotThreadLocal, kConstantSpace);
    found->setAlignment(llvm::Align(static_cast<uint64_t>(target_.vector_bytes)));
  }
  return b_.CreateAddrSpaceCast(found, b_.getPtrTy(kGlobalSpace));
}

// Of the tensor's descriptor: its own where the hardware is to bound what accesses leave to it.
Value* AmdEmitter::bytes_of(const Memory& m) {
  const auto known = tensor_bytes_.find(m.param);
  return known != tensor_bytes_.end() ? known->second
                                      : b_.getInt32(static_cast<uint32_t>(target_.buffer_bytes));
}

void AmdEmitter::bind_tensor_bytes() {
  for (const thread::Guard& g : program_.guards) {
    if (g.bounds.empty()) continue;
    const Memory& m = program_.memory(program_.params[static_cast<size_t>(g.param)].memory);
    Value* elements = b_.CreateTrunc(value(g.elements), b_.getInt32Ty());
    tensor_bytes_[g.param] =
        b_.CreateMul(elements, b_.getInt32(static_cast<uint32_t>(ir::dtype_bytes(m.type))));
  }
}

// The four words of a buffer's descriptor, for instructions that LLVM does not look into.
Value* AmdEmitter::words_of_buffer(Value* base, const Memory& m) {
  Value* address = b_.CreateBitCast(b_.CreatePtrToInt(base, b_.getInt64Ty()),
                                    llvm::FixedVectorType::get(b_.getInt32Ty(), 2));
  Value* words = b_.CreateShuffleVector(address, {0, 1, -1, -1});  // addresses have 48 bits, strides are 0
  words = b_.CreateInsertElement(words, bytes_of(m), uint64_t{2});
  return b_.CreateInsertElement(words, b_.getInt32(kRawWords), uint64_t{3});
}

// LLVM makes a constant of a sum the instruction's own. The hardware adds it without coming round: where what
// is left is negative the access would be beyond the tensor. Such a sum is one that LLVM does not look into.
Value* AmdEmitter::buffer_offset(const Place& at, Value* condition) {
  Value* offset = b_.CreateAdd(at.within, b_.getInt32(static_cast<uint32_t>(at.offset)));
  if (!at.upward) {
    auto* same = llvm::FunctionType::get(offset->getType(), {offset->getType()}, false);
    offset = b_.CreateCall(llvm::InlineAsm::get(same, "", "=v,0", /*hasSideEffects=*/false), {offset});
    llvm::cast<llvm::CallInst>(offset)->setDoesNotAccessMemory();
  }
  if (!condition) return offset;
  return b_.CreateSelect(condition, offset, b_.getInt32(static_cast<uint32_t>(target_.buffer_bytes)));
}

// A load where nothing is stored. LLVM selects buffer accesses of words, alone or as vectors, and of less.
llvm::CallInst* AmdEmitter::buffer_access(const Place& at, const Memory& m, Value* condition,
                                          llvm::Type* moved, Value* stored, bool streaming) {
  using namespace llvm::Intrinsic;
  Value* tensor = b_.CreateIntrinsic(b_.getPtrTy(kDescriptorSpace), amdgcn_make_buffer_rsrc,
                                     {at.base, b_.getInt16(0), bytes_of(m), b_.getInt32(kRawWords)});
  const auto bits = static_cast<unsigned>(moved->getPrimitiveSizeInBits().getFixedValue());
  llvm::Type* words = bits <= 32 ? static_cast<llvm::Type*>(b_.getIntNTy(bits))
                                 : llvm::FixedVectorType::get(b_.getInt32Ty(), bits / 32);
  std::vector<Value*> operands = {tensor, buffer_offset(at, condition), b_.getInt32(0),
                                  b_.getInt32(streaming ? kStreams : 0)};
  if (!stored) return b_.CreateIntrinsic(words, amdgcn_raw_ptr_buffer_load, operands);
  operands.insert(operands.begin(), b_.CreateBitCast(stored, words));
  return b_.CreateIntrinsic(b_.getVoidTy(), amdgcn_raw_ptr_buffer_store, operands);
}

AmdEmitter::Values AmdEmitter::load_words(const Place& at, const Memory& m, int64_t bytes, Value* condition,
                                          LoadKind) {
  const Shape s = shape_of(bytes, m.type);
  Value* loaded = nullptr;
  if ((condition || at.bounded) && at.base) {
    loaded =
        b_.CreateBitCast(buffer_access(at, m, condition, type_of(b_, s), nullptr, false), type_of(b_, s));
  } else {
    Value* from = pointer(b_, at);
    if (condition) from = b_.CreateSelect(condition, from, m.space == Space::shared ? shared_ : zeros());
    loaded = b_.CreateAlignedLoad(type_of(b_, s), from, llvm::Align(static_cast<uint64_t>(bytes)));
  }
  if (condition && m.space == Space::shared)
    loaded = b_.CreateSelect(condition, loaded, llvm::Constant::getNullValue(loaded->getType()));
  if (s.count == 1) return {loaded};
  Values words;
  for (unsigned i = 0; i < s.count; ++i) words.push_back(b_.CreateExtractElement(loaded, uint64_t{i}));
  return words;
}

void AmdEmitter::store_words(const Place& at, const Memory& m, int64_t bytes, Values words, Value* condition,
                             bool streaming) {
  const Shape s = shape_of(bytes, m.type);
  Value* stored = words[0];
  if (s.count > 1) {
    stored = llvm::PoisonValue::get(type_of(b_, s));
    for (unsigned i = 0; i < s.count; ++i) stored = b_.CreateInsertElement(stored, words[i], uint64_t{i});
  }
  if ((condition || at.bounded) && at.base) {
    buffer_access(at, m, condition, stored->getType(), stored, streaming);
    return;
  }
  Value* to = pointer(b_, at);
  llvm::BasicBlock* after = nullptr;
  if (condition) {
    llvm::BasicBlock* inside = llvm::BasicBlock::Create(context_, "store", function_);
    after = llvm::BasicBlock::Create(context_, "stored", function_);
    b_.CreateCondBr(condition, inside, after);
    b_.SetInsertPoint(inside);
  }
  llvm::StoreInst* store = b_.CreateAlignedStore(stored, to, llvm::Align(static_cast<uint64_t>(bytes)));
  if (streaming)
    store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                       llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  if (after) {
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }
}

}  // namespace tilegen::codegen
