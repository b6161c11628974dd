#include "codegen/llvm/gpu/packing.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/llvm/fp8.h"

namespace tilegen::codegen {

using ir::DType;
using llvm::Value;

llvm::Type* Packing::word_type(DType t) { return b_.getIntNTy(static_cast<unsigned>(8 * word_bytes(t))); }

Value* Packing::bits(Value* v) {
  return b_.CreateBitCast(v, b_.getIntNTy(static_cast<unsigned>(v->getType()->getPrimitiveSizeInBits())));
}

Value* Packing::unpack(DType t, Value* word, int position) {
  Value* held = unpack_new(t, word, position);
  if (!llvm::isa<llvm::Constant>(held)) origins_.emplace(held, Origin{word, position, t});
  return held;
}

Value* Packing::unpack_new(DType t, Value* word, int position) {
  switch (t) {
    case DType::f64:
      return b_.CreateBitCast(word, b_.getDoubleTy());
    case DType::f32:
      return b_.CreateBitCast(word, b_.getFloatTy());
    case DType::i64:
    case DType::i32:
      return word;
    case DType::f16: {
      Value* pair = b_.CreateBitCast(word, llvm::FixedVectorType::get(b_.getHalfTy(), 2));
      return b_.CreateFPExt(b_.CreateExtractElement(pair, static_cast<uint64_t>(position)), b_.getFloatTy());
    }
    case DType::bf16: {
      Value* bits = position == 0 ? b_.CreateShl(word, 16) : b_.CreateAnd(word, 0xffff0000);
      return b_.CreateBitCast(bits, b_.getFloatTy());
    }
    default: {
      unsigned bits = static_cast<unsigned>(ir::dtype_bits(t));
      Value* shifted = b_.CreateLShr(word, bits * static_cast<unsigned>(position));
      return from_element_bits(t, b_.CreateTrunc(shifted, b_.getIntNTy(bits)));
    }
  }
}

Value* Packing::same_word(DType t, std::span<Value* const> held) {
  Value* word = nullptr;
  for (size_t i = 0; i < held.size(); ++i) {
    auto it = origins_.find(held[i]);
    if (it == origins_.end() || it->second.type != t || it->second.position != static_cast<int>(i))
      return nullptr;
    if (word && it->second.word != word) return nullptr;
    word = it->second.word;
  }
  return word;
}

// Bytes of two words put together: one instruction.
Value* Packing::permuted(DType t, std::span<Value* const> held) {
  if (held.size() != 4 || !features_.nvptx) return nullptr;
  Value* words[2] = {};
  uint32_t selector = 0;
  for (size_t i = 0; i < held.size(); ++i) {
    auto it = origins_.find(held[i]);
    if (it == origins_.end() || it->second.type != t) return nullptr;
    Value* word = it->second.word;
    const uint32_t from = !words[0] || words[0] == word ? 0 : 1;
    if (words[from] && words[from] != word) return nullptr;
    words[from] = word;
    selector |= (4 * from + static_cast<uint32_t>(it->second.position)) << (4 * i);
  }
  if (!words[1]) words[1] = words[0];
  return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {}, {words[0], words[1], b_.getInt32(selector)});
}

Value* Packing::pack(DType t, std::span<Value* const> held) {
  if (Value* word = same_word(t, held)) return word;
  if (Value* word = permuted(t, held)) return word;
  switch (t) {
    case DType::f64:
    case DType::f32:
      return b_.CreateBitCast(held[0], word_type(t));
    case DType::i64:
    case DType::i32:
      return held[0];
    case DType::f16:
    case DType::bf16:
      return pack_halves(t, held[0], held[1]);
    default:
      break;
  }
  if (ir::is_storage_only(t)) {
    Value* low = converted_pair(b_, held[0], held[1]);
    Value* high = low ? converted_pair(b_, held[2], held[3]) : nullptr;
    if (high)
      return b_.CreateOr(b_.CreateZExt(low, word_type(t)),
                         b_.CreateShl(b_.CreateZExt(high, word_type(t)), 16));
  }
  Value* word = nullptr;
  for (size_t i = 0; i < held.size(); ++i) {
    Value* bits = b_.CreateZExt(element_bits(t, held[i]), word_type(t));
    bits = b_.CreateShl(bits, static_cast<uint64_t>(ir::dtype_bits(t)) * i);
    word = word ? b_.CreateOr(word, bits) : bits;
  }
  return word;
}

Value* Packing::narrowed(DType t, Value* held) {
  llvm::Type* type = t == DType::f16 ? b_.getHalfTy() : b_.getBFloatTy();
  // Elsewhere bf16 is rounded in integers, and the upper half of the f32 is the number.
  if (t == DType::bf16 && !features_.nvptx) {
    Value* high = b_.CreateTrunc(b_.CreateLShr(bits(held), 16), b_.getInt16Ty());
    return b_.CreateBitCast(high, type);
  }
  auto* widened = llvm::dyn_cast<llvm::FPExtInst>(held);
  if (widened && widened->getSrcTy() == type) return widened->getOperand(0);
  return b_.CreateFPTrunc(held, type);
}

// Two roundings next to each other are one instruction, unless one of them is known already.
Value* Packing::pack_halves(DType t, Value* low, Value* high) {
  Value* l = narrowed(t, low);
  Value* h = narrowed(t, high);
  auto* lt = llvm::dyn_cast<llvm::FPTruncInst>(l);
  auto* ht = llvm::dyn_cast<llvm::FPTruncInst>(h);
  if (features_.nvptx && lt && ht && lt->getSrcTy()->isFloatTy() && ht->getSrcTy()->isFloatTy()) {
    auto id = t == DType::f16 ? llvm::Intrinsic::nvvm_ff2f16x2_rn : llvm::Intrinsic::nvvm_ff2bf16x2_rn;
    return b_.CreateBitCast(b_.CreateIntrinsic(id, {}, {ht->getOperand(0), lt->getOperand(0)}),
                            b_.getInt32Ty());
  }
  Value* pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(l->getType(), 2));
  pair = b_.CreateInsertElement(b_.CreateInsertElement(pair, l, uint64_t{0}), h, uint64_t{1});
  return b_.CreateBitCast(pair, b_.getInt32Ty());
}

std::vector<Value*> Packing::words(DType t, std::span<Value* const> held) {
  const size_t per_word = static_cast<size_t>(word_elements(t));
  std::vector<Value*> out;
  if (held.size() >= per_word) {
    for (size_t i = 0; i < held.size(); i += per_word) out.push_back(pack(t, held.subspan(i, per_word)));
    return out;
  }
  Value* bits = element_bits(t, held[0]);
  if (held.size() == 2) {  // two bytes
    if (Value* pair = ir::is_storage_only(t) ? converted_pair(b_, held[0], held[1]) : nullptr) return {pair};
    Value* high = b_.CreateZExt(element_bits(t, held[1]), b_.getInt16Ty());
    bits = b_.CreateOr(b_.CreateZExt(bits, b_.getInt16Ty()), b_.CreateShl(high, 8));
  }
  return {bits};
}

std::vector<Value*> Packing::elements(DType t, std::span<Value* const> words, int64_t count) {
  const int per_word = word_elements(t);
  if (count == 1 && per_word > 1) return {from_element_bits(t, words[0])};
  std::vector<Value*> held;
  for (Value* w : words) {
    if (!w->getType()->isIntegerTy(static_cast<unsigned>(8 * word_bytes(t))))
      w = b_.CreateZExt(w, word_type(t));
    for (int i = 0; i < per_word && static_cast<int64_t>(held.size()) < count; ++i)
      held.push_back(unpack(t, w, i));
  }
  return held;
}

Value* Packing::element_bits(DType t, Value* held) {
  switch (t) {
    case DType::f16:
    case DType::bf16:
      return b_.CreateBitCast(narrowed(t, held), b_.getInt16Ty());
    case DType::f32:
      return b_.CreateBitCast(held, b_.getInt32Ty());
    case DType::f64:
      return b_.CreateBitCast(held, b_.getInt64Ty());
    case DType::boolean:
      return b_.CreateZExt(held, b_.getInt8Ty());
    default:
      return held;
  }
}

Value* Packing::from_element_bits(DType t, Value* bits) {
  switch (t) {
    case DType::f16:
      return b_.CreateFPExt(b_.CreateBitCast(bits, b_.getHalfTy()), b_.getFloatTy());
    case DType::bf16:
      return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(bits, b_.getInt32Ty()), 16), b_.getFloatTy());
    case DType::f32:
      return b_.CreateBitCast(bits, b_.getFloatTy());
    case DType::f64:
      return b_.CreateBitCast(bits, b_.getDoubleTy());
    case DType::boolean:
      return b_.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0));
    default:
      return bits;
  }
}

}  // namespace tilegen::codegen
