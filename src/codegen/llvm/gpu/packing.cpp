#include "codegen/llvm/gpu/packing.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/llvm/fp8.h"
#include "codegen/llvm/gpu/bit_fields.h"

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
    case DType::u64:
    case DType::i32:
    case DType::u32:
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

const Packing::Origin* Packing::origin(DType t, Value* held) const {
  const auto it = origins_.find(held);
  return it != origins_.end() && it->second.type == t ? &it->second : nullptr;
}

// Bytes of up to four words put together by v_perm_b32, whose selector counts the second word's bytes first:
// two pairs, then both.
Value* Packing::permuted_by_pairs(DType t, std::span<Value* const> held) {
  const Origin* of[4] = {};
  for (size_t i = 0; i < held.size(); ++i)
    if (of[i] = origin(t, held[i]); !of[i]) return nullptr;
  const auto perm = [&](Value* second, Value* first, uint32_t selector) {
    return b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_perm, {}, {second, first, b_.getInt32(selector)});
  };
  const auto pair = [&](const Origin& low, const Origin& high) {
    constexpr uint32_t kZeros = 0x0c0c0000, kOfSecond = 4;
    const auto at = static_cast<uint32_t>(low.position),
               next = static_cast<uint32_t>(high.position) + kOfSecond;
    return perm(high.word, low.word, kZeros | next << 8 | at);
  };
  constexpr uint32_t kLowHalves = 0x05040100;
  return perm(pair(*of[2], *of[3]), pair(*of[0], *of[1]), kLowHalves);
}

// Bytes of two words put together: one instruction, also where a condition chooses among them.
Value* Packing::permuted(DType t, std::span<Value* const> held) {
  if (held.size() != 4) return nullptr;
  if (features_.amdgpu) return permuted_by_pairs(t, held);
  if (!features_.nvptx) return nullptr;
  Value* words[2] = {};
  Value* condition = nullptr;
  uint32_t selector[2] = {};  // where the condition holds, and elsewhere
  for (size_t i = 0; i < held.size(); ++i) {
    const Origin* of[2] = {origin(t, held[i]), origin(t, held[i])};
    if (auto* choice = of[0] ? nullptr : llvm::dyn_cast<llvm::SelectInst>(held[i])) {
      of[0] = origin(t, choice->getTrueValue()), of[1] = origin(t, choice->getFalseValue());
      if (condition && condition != choice->getCondition()) return nullptr;
      condition = choice->getCondition();
    }
    for (size_t side = 0; side < 2; ++side) {
      if (!of[side]) return nullptr;
      Value* word = of[side]->word;
      const uint32_t from = !words[0] || words[0] == word ? 0 : 1;
      if (words[from] && words[from] != word) return nullptr;
      words[from] = word;
      selector[side] |= (4 * from + static_cast<uint32_t>(of[side]->position)) << (4 * i);
    }
  }
  if (!words[1]) words[1] = words[0];
  Value* bytes = b_.getInt32(selector[0]);
  if (condition) bytes = b_.CreateSelect(condition, bytes, b_.getInt32(selector[1]));
  return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {}, {words[0], words[1], bytes});
}

Value* Packing::pack(DType t, std::span<Value* const> held) {
  if (Value* word = same_word(t, held)) return word;
  if (Value* word = permuted(t, held)) return word;
  switch (t) {
    case DType::f64:
    case DType::f32:
      return b_.CreateBitCast(held[0], word_type(t));
    case DType::i64:
    case DType::u64:
    case DType::i32:
    case DType::u32:
      return held[0];
    case DType::f16:
    case DType::bf16:
      return pack_halves(t, held[0], held[1]);
    default:
      break;
  }
  if (ir::is_fnuz(t))
    if (Value* word = converted_word(b_, held)) return word;
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

namespace {

// A float of bits whose lower half is 0.
bool is_widened_bits(const Value* held) {
  const auto* cast = llvm::dyn_cast<llvm::BitCastInst>(held);
  const auto* made = cast ? llvm::dyn_cast<llvm::BinaryOperator>(cast->getOperand(0)) : nullptr;
  const auto* by = made ? llvm::dyn_cast<llvm::ConstantInt>(made->getOperand(1)) : nullptr;
  if (!by || by->getBitWidth() != 32) return false;
  return (made->getOpcode() == llvm::Instruction::Shl && by->equalsInt(16)) ||
         (made->getOpcode() == llvm::Instruction::And && by->equalsInt(0xffff0000));
}

}  // namespace

Value* Packing::narrowed(DType t, Value* held) {
  llvm::Type* type = t == DType::f16 ? b_.getHalfTy() : b_.getBFloatTy();
  // Elsewhere bf16 is rounded in integers, and the upper half of the f32 is the number. So it is of a number
  // made of bits, of which a conversion would lose those of a NaN.
  if (t == DType::bf16 && (!features_.nvptx || is_widened_bits(held))) {
    Value* high = b_.CreateTrunc(b_.CreateLShr(bits(held), 16), b_.getInt16Ty());
    return b_.CreateBitCast(high, type);
  }
  auto* widened = llvm::dyn_cast<llvm::FPExtInst>(held);
  if (widened && widened->getSrcTy() == type) return widened->getOperand(0);
  return b_.CreateFPTrunc(held, type);
}

namespace {

// Of expressions whose operations are done in pairs: bounds the time that looking for them takes.
constexpr int kPairLevels = 6;

// What is rounded to a half there, and widened again.
Value* rounded_float(Value* half) {
  auto* rounding = llvm::dyn_cast<llvm::FPTruncInst>(half);
  return rounding && rounding->getSrcTy()->isFloatTy() ? rounding->getOperand(0) : nullptr;
}

llvm::Constant* as_half(Value* held, llvm::Type* half) {
  auto* number = llvm::dyn_cast<llvm::ConstantFP>(held);
  if (!number) return nullptr;
  llvm::APFloat value = number->getValueAPF();
  bool inexact = false;
  value.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return inexact ? nullptr : llvm::ConstantFP::get(half->getContext(), value);
}

Value* widened_half(Value* held, llvm::Type* half) {
  auto* widened = llvm::dyn_cast<llvm::FPExtInst>(held);
  if (widened && widened->getSrcTy() == half) return widened->getOperand(0);
  return as_half(held, half);
}

// The least or the greatest of two; else not_intrinsic.
llvm::Intrinsic::ID choice_of(Value* held) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(held);
  const auto id = call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
  return id == llvm::Intrinsic::minnum || id == llvm::Intrinsic::maxnum ? id : llvm::Intrinsic::not_intrinsic;
}

// Whether a held value is a half: widened from one, a constant, or chosen among such.
bool is_half(Value* held, llvm::Type* half, int levels) {
  if (widened_half(held, half)) return true;
  if (levels == 0) return false;
  if (auto* select = llvm::dyn_cast<llvm::SelectInst>(held))
    return is_half(select->getTrueValue(), half, levels - 1) &&
           is_half(select->getFalseValue(), half, levels - 1);
  if (choice_of(held) == llvm::Intrinsic::not_intrinsic) return false;
  auto* call = llvm::cast<llvm::IntrinsicInst>(held);
  return is_half(call->getOperand(0), half, levels - 1) && is_half(call->getOperand(1), half, levels - 1);
}

// The half that a held value is, if it is one, a choice between two that are known among them.
Value* exact_half(llvm::IRBuilder<>& b, Value* held) {
  if (Value* known = widened_half(held, b.getHalfTy())) return known;
  auto* choice = llvm::dyn_cast<llvm::SelectInst>(held);
  if (!choice) return nullptr;
  Value* x = widened_half(choice->getTrueValue(), b.getHalfTy());
  Value* y = widened_half(choice->getFalseValue(), b.getHalfTy());
  return x && y ? b.CreateSelect(choice->getCondition(), x, y) : nullptr;
}

}  // namespace

// Of two operations in f32: one on pairs, where all operands are halves.
Value* Packing::operation_on_pairs(Value* low, Value* high, int levels) {
  auto* l = llvm::dyn_cast<llvm::Instruction>(low);
  auto* h = llvm::dyn_cast<llvm::Instruction>(high);
  if (levels == 0 || !l || !h || l->getOpcode() != h->getOpcode() || choice_of(l) != choice_of(h))
    return nullptr;
  const bool chooses = choice_of(l) != llvm::Intrinsic::not_intrinsic;
  const auto op = l->getOpcode();
  if (!chooses && op != llvm::Instruction::FAdd && op != llvm::Instruction::FSub &&
      op != llvm::Instruction::FMul)
    return nullptr;
  for (llvm::Instruction* side : {l, h})
    for (unsigned i = 0; i < 2; ++i)
      if (!is_half(side->getOperand(i), b_.getHalfTy(), levels - 1)) return nullptr;
  Value* a = half_pair(l->getOperand(0), h->getOperand(0), levels - 1);
  Value* b = half_pair(l->getOperand(1), h->getOperand(1), levels - 1);
  if (chooses) return b_.CreateBinaryIntrinsic(choice_of(l), a, b);
  return b_.CreateBinOp(static_cast<llvm::Instruction::BinaryOps>(op), a, b);
}

// The least and the greatest of halves are halves. A sum, difference or product in f32 that is rounded to f16
// is that in f16: f32 has more than twice the digits, so rounding twice is rounding once (Figueroa, "When is
// Double Rounding Innocuous?", 1995). Two other roundings are one instruction.
Value* Packing::half_pair(Value* low, Value* high, int levels) {
  llvm::Type* pair = llvm::FixedVectorType::get(b_.getHalfTy(), 2);
  Value* const held[] = {low, high};
  if (Value* word = same_word(DType::f16, held)) return b_.CreateBitCast(word, pair);
  if (choice_of(low) != llvm::Intrinsic::not_intrinsic)
    if (Value* done = operation_on_pairs(low, high, levels)) return done;
  Value* l = exact_half(b_, low);
  Value* h = exact_half(b_, high);
  if (!l) l = b_.CreateFPTrunc(low, b_.getHalfTy());
  if (!h) h = b_.CreateFPTrunc(high, b_.getHalfTy());
  Value* lf = rounded_float(l);
  Value* hf = rounded_float(h);
  if (lf && hf) {
    if (Value* done = features_.nvptx ? converted_fields(b_, DType::f16, lf, hf) : nullptr) return done;
    if (Value* done = operation_on_pairs(lf, hf, levels)) return done;
    if (features_.nvptx) return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_ff2f16x2_rn, {}, {hf, lf});
  }
  Value* both = llvm::PoisonValue::get(pair);
  return b_.CreateInsertElement(b_.CreateInsertElement(both, l, uint64_t{0}), h, uint64_t{1});
}

Value* Packing::pack_halves(DType t, Value* low, Value* high) {
  if (t == DType::f16) return b_.CreateBitCast(half_pair(low, high, kPairLevels), b_.getInt32Ty());
  Value* l = narrowed(t, low);
  Value* h = narrowed(t, high);
  Value* lf = rounded_float(l);
  Value* hf = rounded_float(h);
  if (features_.nvptx && lf && hf) {
    Value* both = converted_fields(b_, t, lf, hf);
    if (!both) both = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_ff2bf16x2_rn, {}, {hf, lf});
    return b_.CreateBitCast(both, b_.getInt32Ty());
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
    if (Value* word = ir::is_fnuz(t) ? converted_word(b_, held) : nullptr)
      return {b_.CreateTrunc(word, b_.getInt16Ty())};
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
