#include "codegen/llvm/fp8.h"

#include <cmath>

#include <llvm/IR/InlineAsm.h>
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
Form form(DType t) { return t == DType::e4m3 ? Form{3, 7, 0x43e00000} : Form{2, 15, 0x47600000}; }

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

// A byte taken out of a word is converted with its neighbour, whose conversion then is the same instruction.
Value* decode_by_instruction(B& b, DType t, Value* code) {
  using namespace llvm::PatternMatch;
  Value* word = nullptr;
  uint64_t shift = 0;
  const bool shifted = match(code, m_Trunc(m_LShr(m_Value(word), m_ConstantInt(shift))));
  if (!shifted && !match(code, m_Trunc(m_Value(word)))) word = nullptr;
  Value* pair = nullptr;
  uint64_t half = 0;
  if (word && word->getType()->isIntegerTy(32) && shift % 8 == 0) {
    half = shift / 8 % 2;
    pair = b.CreateTrunc(b.CreateLShr(word, shift / 16 * 16), b.getInt16Ty());
  } else {
    pair = b.CreateZExt(code, b.getInt16Ty());
  }
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

Value* decode_e4m3(B& b, Value* codes) {
  const Form f = form(DType::e4m3);
  Value* code = b.CreateZExt(codes, shaped_like(codes, b.getInt32Ty()));
  Value* magnitude = b.CreateAnd(code, 0x7f);
  Value* normal =
      b.CreateAdd(b.CreateShl(magnitude, f.dropped()),
                  number_like(code, static_cast<uint32_t>(kFloatBias - f.bias) << kFloatMantissa));
  Value* units = b.CreateUIToFP(magnitude, shaped_like(codes, b.getFloatTy()));
  Value* small = as_bits(b, b.CreateFMul(units, float_like(units, std::ldexp(1.0, f.smallest_exponent()))));
  Value* bits = b.CreateSelect(b.CreateICmpULT(magnitude, number_like(code, 8)), small, normal);
  bits =
      b.CreateSelect(b.CreateICmpEQ(magnitude, number_like(code, 0x7f)), number_like(code, 0x7fc00000), bits);
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
  code = b.CreateOr(code, b.CreateAnd(b.CreateLShr(bits, 24), 0x80));
  code = b.CreateSelect(nan, number_like(bits, 0x7f), code);
  return b.CreateTrunc(code, shaped_like(code, b.getInt8Ty()));
}

llvm::CallInst* conversion_of(Value* code) {
  auto* trunc = llvm::dyn_cast<llvm::TruncInst>(code);
  auto* call = trunc ? llvm::dyn_cast<llvm::CallInst>(trunc->getOperand(0)) : nullptr;
  auto* text = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  return text && text->getAsmString().starts_with("cvt.rn.satfinite.e") ? call : nullptr;
}

}  // namespace

Value* fp8_to_float(B& b, const MachineFeatures& f, DType t, Value* codes) {
  if (f.fp8_pairs && !codes->getType()->isVectorTy()) return decode_by_instruction(b, t, codes);
  return t == DType::e5m2 ? decode_e5m2(b, codes) : decode_e4m3(b, codes);
}

Value* float_to_fp8(B& b, const MachineFeatures& f, DType t, Value* values) {
  if (!f.fp8_pairs || values->getType()->isVectorTy()) return encode(b, t, values);
  const std::string text = std::string("cvt.rn.satfinite.") + pair_name(t) + ".f32 $0, $1, $2;";
  return b.CreateTrunc(encode_pair(b, text, float_like(values, 0), values), b.getInt8Ty());
}

Value* converted_pair(B& b, Value* low, Value* high) {
  llvm::CallInst *l = conversion_of(low), *h = conversion_of(high);
  if (!l || !h || l->getCalledOperand() != h->getCalledOperand()) return nullptr;
  const auto* text = llvm::cast<llvm::InlineAsm>(l->getCalledOperand());
  return encode_pair(b, text->getAsmString(), h->getArgOperand(1), l->getArgOperand(1));
}

}  // namespace tilegen::codegen
