#include "codegen/llvm/fp8.h"

#include <bit>
#include <cmath>

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>
#include <llvm/IR/PatternMatch.h>

#include "codegen/llvm/types.h"

namespace tilegen::codegen {
namespace {

using ir::DType;
using llvm::Value;
using B = llvm::IRBuilder<>;

constexpr int kFloatMantissa = 23, kFloatBias = 127;

// What the integer sequences need to know of a type.
struct Form {
  int mantissa;  // bits
  int bias;
  uint32_t largest;  // finite value, as f32 bits
  int dropped() const { return kFloatMantissa - mantissa; }
  int smallest_exponent() const { return 1 - bias - mantissa; }  // of the least subnormal
  uint32_t least_normal() const { return static_cast<uint32_t>(1 - bias + kFloatBias) << kFloatMantissa; }
};
Form form(DType t) {
  if (t == DType::e4m3) return {3, 7, 0x43e00000};
  if (t == DType::e4m3fnuz) return {3, 8, 0x43700000};
  return {2, t == DType::e5m2 ? 15 : 16, 0x47600000};
}

llvm::Constant* number_like(Value* v, uint32_t n) { return llvm::ConstantInt::get(v->getType(), n); }

Value* as_floats(B& b, Value* bits) { return b.CreateBitCast(bits, shaped_like(bits, b.getFloatTy())); }
Value* as_bits(B& b, Value* floats) { return b.CreateBitCast(floats, shaped_like(floats, b.getInt32Ty())); }
llvm::Constant* float_like(Value* v, double value) { return llvm::ConstantFP::get(v->getType(), value); }

const char* pair_name(DType t) { return t == DType::e4m3 ? "e4m3x2" : "e5m2x2"; }

// An instruction without an intrinsic, of its operands alone.
llvm::CallInst* instruction(B& b, llvm::Type* result, const std::string& text, const char* constraints,
                            llvm::ArrayRef<Value*> operands) {
  std::vector<llvm::Type*> types;
  for (Value* v : operands) types.push_back(v->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  auto* call =
      b.CreateCall(llvm::InlineAsm::get(type, text, constraints, /*hasSideEffects=*/false), operands);
  call->setDoesNotAccessMemory();
  return call;
}

llvm::CallInst* encode_pair(B& b, const std::string& text, Value* high, Value* low) {
  return instruction(b, b.getInt16Ty(), text, "=h,f,f", {high, low});
}

// The word of 32 bits that a code was taken out of as a byte; null where there is none.
struct Byte {
  Value* word = nullptr;
  uint64_t at = 0;
};
Byte byte_of_word(Value* code) {
  using namespace llvm::PatternMatch;
  Value* word = nullptr;
  uint64_t shift = 0;
  const bool shifted = match(code, m_Trunc(m_LShr(m_Value(word), m_ConstantInt(shift))));
  if (!shifted && !match(code, m_Trunc(m_Value(word)))) return {};
  return word->getType()->isIntegerTy(32) && shift % 8 == 0 ? Byte{word, shift / 8} : Byte{};
}

// A byte taken out of a word is converted with its neighbour, whose conversion then is the same instruction.
Value* decode_by_instruction(B& b, DType t, Value* code) {
  const auto [word, at] = byte_of_word(code);
  const uint64_t half = at % 2;
  Value* pair = word ? b.CreateTrunc(b.CreateLShr(word, at / 2 * 16), b.getInt16Ty())
                     : b.CreateZExt(code, b.getInt16Ty());
  const std::string text = std::string("cvt.rn.f16x2.") + pair_name(t) + " $0, $1;";
  Value* halves = instruction(b, b.getInt32Ty(), text, "=r,h", {pair});
  halves = b.CreateBitCast(halves, llvm::FixedVectorType::get(b.getHalfTy(), 2));
  return b.CreateFPExt(b.CreateExtractElement(halves, half), b.getFloatTy());
}

// e5m2 is the upper half of f16.
Value* decode_e5m2(B& b, Value* codes) {
  Value* wide = b.CreateShl(b.CreateZExt(codes, shaped_like(codes, b.getInt16Ty())), 8);
  return b.CreateFPExt(b.CreateBitCast(wide, shaped_like(codes, b.getHalfTy())),
                       shaped_like(codes, b.getFloatTy()));
}

// A code is the upper bits of an f32 whose exponent counts from another bias, least normal numbers and all.
// Products of numbers below the normal ones are slow on a host.
Value* decode_by_product(B& b, DType t, Value* codes) {
  const Form f = form(t);
  Value* code = b.CreateSExt(codes, shaped_like(codes, b.getInt32Ty()));
  Value* bits = b.CreateAnd(b.CreateShl(code, f.dropped()), 0x80000000u | 0x7fu << f.dropped());
  Value* floats = as_floats(b, bits);
  Value* value = b.CreateFMul(floats, float_like(floats, std::ldexp(1.0, kFloatBias - f.bias)));
  const double largest = static_cast<double>(std::bit_cast<float>(f.largest));
  Value* nan = ir::is_fnuz(t) ? b.CreateICmpEQ(bits, number_like(bits, 0x80000000))
                              : b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value),
                                                float_like(value, largest));
  return b.CreateSelect(nan, float_like(value, std::nan("")), value);
}

// All but e5m2.
Value* decode(B& b, DType t, Value* codes) {
  const Form f = form(t);
  Value* code = b.CreateZExt(codes, shaped_like(codes, b.getInt32Ty()));
  Value* magnitude = b.CreateAnd(code, 0x7f);
  Value* normal =
      b.CreateAdd(b.CreateShl(magnitude, f.dropped()),
                  number_like(code, static_cast<uint32_t>(kFloatBias - f.bias) << kFloatMantissa));
  Value* units = b.CreateUIToFP(magnitude, shaped_like(codes, b.getFloatTy()));
  Value* small = as_bits(b, b.CreateFMul(units, float_like(units, std::ldexp(1.0, f.smallest_exponent()))));
  Value* bits =
      b.CreateSelect(b.CreateICmpULT(magnitude, number_like(code, 1u << f.mantissa)), small, normal);
  Value* nan = ir::is_fnuz(t) ? b.CreateICmpEQ(code, number_like(code, 0x80))
                              : b.CreateICmpEQ(magnitude, number_like(code, 0x7f));
  bits = b.CreateSelect(nan, number_like(code, 0x7fc00000), bits);
  return as_floats(b, b.CreateOr(bits, b.CreateShl(b.CreateAnd(code, 0x80), 24)));
}

// Nearest even on the pattern, after saturation; a subnormal is what adding a number whose last place is its
// unit leaves in the mantissa.
Value* encode(B& b, DType t, Value* values) {
  const Form f = form(t);
  Value* bits = as_bits(b, values);
  Value* magnitude = b.CreateAnd(bits, 0x7fffffff);
  Value* nan = b.CreateICmpUGT(magnitude, number_like(bits, 0x7f800000));
  magnitude = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, magnitude, number_like(bits, f.largest));
  Value* even = b.CreateAnd(b.CreateLShr(magnitude, f.dropped()), 1);
  Value* rounded =
      b.CreateAdd(b.CreateAdd(magnitude, number_like(bits, (1u << (f.dropped() - 1)) - 1)), even);
  Value* normal = b.CreateSub(b.CreateLShr(rounded, f.dropped()),
                              number_like(bits, static_cast<uint32_t>(kFloatBias - f.bias) << f.mantissa));
  Value* floats = as_floats(b, magnitude);
  llvm::Constant* anchor = float_like(floats, std::ldexp(1.0, kFloatMantissa + f.smallest_exponent()));
  Value* small = b.CreateSub(as_bits(b, b.CreateFAdd(floats, anchor)), as_bits(b, anchor));
  Value* code =
      b.CreateSelect(b.CreateICmpULT(magnitude, number_like(bits, f.least_normal())), small, normal);
  Value* sign = b.CreateAnd(b.CreateLShr(bits, 24), 0x80);
  if (ir::is_fnuz(t))  // there is no negative zero
    sign = b.CreateSelect(b.CreateICmpEQ(code, number_like(bits, 0)), number_like(bits, 0), sign);
  code = b.CreateOr(code, sign);
  code = b.CreateSelect(nan, number_like(bits, ir::is_fnuz(t) ? 0x80 : 0x7f), code);
  return b.CreateTrunc(code, shaped_like(code, b.getInt8Ty()));
}

llvm::CallInst* conversion_of(Value* code) {
  auto* trunc = llvm::dyn_cast<llvm::TruncInst>(code);
  auto* call = trunc ? llvm::dyn_cast<llvm::CallInst>(trunc->getOperand(0)) : nullptr;
  auto* text = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  return text && text->getAsmString().starts_with("cvt.rn.satfinite.e") ? call : nullptr;
}

// ---- AMD's instructions for its own types; beyond the largest number they would make NaN ----

Value* decode_fnuz(B& b, DType t, Value* code) {
  const auto [word, at] = byte_of_word(code);
  const auto id =
      t == DType::e4m3fnuz ? llvm::Intrinsic::amdgcn_cvt_f32_fp8 : llvm::Intrinsic::amdgcn_cvt_f32_bf8;
  Value* from = word ? word : b.CreateZExt(code, b.getInt32Ty());
  return b.CreateIntrinsic(id, {}, {from, b.getInt32(static_cast<uint32_t>(at))});
}

// `low` and `high` into the lower half of a word, or the upper one of `others`.
Value* encode_fnuz(B& b, llvm::Intrinsic::ID id, Value* low, Value* high, Value* others) {
  Value* upper = b.getInt1(others != nullptr);
  return b.CreateIntrinsic(id, {}, {low, high, others ? others : b.getInt32(0), upper});
}

Value* encode_fnuz(B& b, DType t, Value* value) {
  const auto id =
      t == DType::e4m3fnuz ? llvm::Intrinsic::amdgcn_cvt_pk_fp8_f32 : llvm::Intrinsic::amdgcn_cvt_pk_bf8_f32;
  const double largest = static_cast<double>(std::bit_cast<float>(form(t).largest));
  Value* bounded = b.CreateIntrinsic(llvm::Intrinsic::amdgcn_fmed3, {value->getType()},
                                     {value, float_like(value, -largest), float_like(value, largest)});
  bounded = b.CreateSelect(b.CreateFCmpUNO(value, value), value, bounded);  // fmed3 loses a NaN
  return b.CreateTrunc(encode_fnuz(b, id, bounded, float_like(value, 0), nullptr), b.getInt8Ty());
}

llvm::IntrinsicInst* fnuz_conversion_of(Value* code) {
  auto* trunc = llvm::dyn_cast<llvm::TruncInst>(code);
  auto* call = trunc ? llvm::dyn_cast<llvm::IntrinsicInst>(trunc->getOperand(0)) : nullptr;
  const auto id = call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
  const bool converts =
      id == llvm::Intrinsic::amdgcn_cvt_pk_fp8_f32 || id == llvm::Intrinsic::amdgcn_cvt_pk_bf8_f32;
  return converts ? call : nullptr;
}

}  // namespace

Value* fp8_to_float(B& b, const MachineFeatures& f, DType t, Value* codes) {
  const bool scalar = !codes->getType()->isVectorTy();
  if (f.fp8_pairs && scalar && !ir::is_fnuz(t)) return decode_by_instruction(b, t, codes);
  if (f.fnuz && scalar && ir::is_fnuz(t)) return decode_fnuz(b, t, codes);
  if (t == DType::e5m2) return decode_e5m2(b, codes);
  return f.nvptx || f.amdgpu ? decode_by_product(b, t, codes) : decode(b, t, codes);
}

Value* float_to_fp8(B& b, const MachineFeatures& f, DType t, Value* values) {
  const bool scalar = !values->getType()->isVectorTy();
  if (f.fnuz && scalar && ir::is_fnuz(t)) return encode_fnuz(b, t, values);
  if (!f.fp8_pairs || !scalar || ir::is_fnuz(t)) return encode(b, t, values);
  const std::string text = std::string("cvt.rn.satfinite.") + pair_name(t) + ".f32 $0, $1, $2;";
  return b.CreateTrunc(encode_pair(b, text, float_like(values, 0), values), b.getInt8Ty());
}

Value* converted_pair(B& b, Value* low, Value* high) {
  llvm::CallInst *l = conversion_of(low), *h = conversion_of(high);
  if (!l || !h || l->getCalledOperand() != h->getCalledOperand()) return nullptr;
  const auto* text = llvm::cast<llvm::InlineAsm>(l->getCalledOperand());
  return encode_pair(b, text->getAsmString(), h->getArgOperand(1), l->getArgOperand(1));
}

Value* converted_word(B& b, std::span<Value* const> codes) {
  Value* word = nullptr;
  for (size_t i = 0; i < codes.size(); i += 2) {
    auto *l = fnuz_conversion_of(codes[i]), *h = fnuz_conversion_of(codes[i + 1]);
    if (!l || !h || l->getIntrinsicID() != h->getIntrinsicID()) return nullptr;
    word = encode_fnuz(b, l->getIntrinsicID(), l->getArgOperand(0), h->getArgOperand(0), word);
  }
  return word;
}

}  // namespace tilegen::codegen
