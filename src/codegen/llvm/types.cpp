#include "codegen/llvm/types.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/llvm/fp8.h"
#include "codegen/llvm/nvptx/assembly.h"

namespace tilegen::codegen {
namespace {

using ir::DType;
using llvm::Type;
using llvm::Value;
using B = llvm::IRBuilder<>;

Value* bits_of(B& b, Value* v) {
  Type* i = v->getType()->getScalarType()->isDoubleTy() ? b.getInt64Ty() : b.getInt32Ty();
  return b.CreateBitCast(v, shaped_like(v, i));
}
Value* floats_of(B& b, Value* bits) {
  Type* f = bits->getType()->getScalarType()->isIntegerTy(64) ? b.getDoubleTy() : b.getFloatTy();
  return b.CreateBitCast(bits, shaped_like(bits, f));
}

// Nearest-even on the upper half of the f32 pattern. Integer arithmetic on x86, where the native conversion
// flushes denormals, which the contract does not allow, and exists on few machines. NaN keeps its sign and
// turns quiet.
Value* round_to_bf16(B& b, const MachineFeatures& f, Value* v) {
  if (f.nvptx) return b.CreateFPExt(b.CreateFPTrunc(v, shaped_like(v, b.getBFloatTy())), v->getType());
  Value* bits = bits_of(b, v);
  Value* even = b.CreateAnd(b.CreateLShr(bits, 16), 1);
  Value* rounded = b.CreateAdd(b.CreateAdd(bits, llvm::ConstantInt::get(bits->getType(), 0x7fff)), even);
  Value* quiet = b.CreateOr(bits, 0x00400000);
  Value* out = b.CreateSelect(b.CreateFCmpUNO(v, v), quiet, rounded);
  return floats_of(b, b.CreateAnd(out, 0xffff0000));
}

// f64 -> f32 rounded to odd, so that a second rounding to a type at least two bits narrower is the correct
// one.
Value* narrow_to_odd(B& b, Value* v) {
  Value* near = b.CreateFPTrunc(v, shaped_like(v, b.getFloatTy()));
  Value* back = b.CreateFPExt(near, v->getType());
  Value* inexact = b.CreateFCmpONE(back, v);
  Value* above = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                 b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v));
  Value* bits = bits_of(b, near);
  Value* truncated =
      b.CreateSelect(above, b.CreateSub(bits, llvm::ConstantInt::get(bits->getType(), 1)), bits);
  return floats_of(b, b.CreateSelect(inexact, b.CreateOr(truncated, 1), bits));
}

bool held_as_double(Value* v) { return v->getType()->getScalarType()->isDoubleTy(); }
bool is_signed(DType t) { return ir::dtype_kind(t) == ir::DTypeKind::signed_int; }

Value* float_to_float(B& b, const MachineFeatures& f, DType to, Value* v) {
  if (to == DType::f64) return held_as_double(v) ? v : b.CreateFPExt(v, shaped_like(v, b.getDoubleTy()));
  if (!held_as_double(v)) return round_held(b, f, to, v);
  if (to == DType::f32) return b.CreateFPTrunc(v, shaped_like(v, b.getFloatTy()));
  return round_held(b, f, to, narrow_to_odd(b, v));
}

// More than the largest half, and odd.
constexpr int64_t kBeyondHalf = (1 << 17) - 1;

// LLVM takes the conversion of few significant bits to half, and on to float, for exact, however large the
// number is. Beyond the largest half it is infinite: any other such number has the same result.
Value* bounded_for_half(B& b, DType from, Value* v) {
  if (ir::dtype_bits(from) < 32) return v;
  const auto limit = [&](int64_t n) {
    return llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(n), true);
  };
  if (!is_signed(from)) return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, v, limit(kBeyondHalf));
  Value* above = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, limit(-kBeyondHalf));
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, above, limit(kBeyondHalf));
}

Value* int_to_float(B& b, const MachineFeatures& f, DType from, DType to, Value* v) {
  bool sign = is_signed(from);
  if (to == DType::f16) v = bounded_for_half(b, from, v);
  auto convert = [&](Type* t) {
    return sign ? b.CreateSIToFP(v, shaped_like(v, t)) : b.CreateUIToFP(v, shaped_like(v, t));
  };
  if (to == DType::f64) return convert(b.getDoubleTy());
  return round_held(b, f, to, convert(b.getFloatTy()));
}

// LLVM takes its intrinsics for cvt.rzi for fptosi and fptoui, of which what is out of range is poison: of
// f64 it is text. Those that flush denormals, which become 0 anyhow, it leaves alone.
Value* truncated_nvptx(B& b, bool wide, bool is_unsigned, Value* v) {
  using namespace llvm::Intrinsic;
  if (!held_as_double(v))
    return b.CreateIntrinsic(wide ? (is_unsigned ? nvvm_f2ull_rz_ftz : nvvm_f2ll_rz_ftz)
                                  : (is_unsigned ? nvvm_f2ui_rz_ftz : nvvm_f2i_rz_ftz),
                             {}, {v});
  llvm::CallInst* i = Assembly(b).instruction(
      wide ? b.getInt64Ty() : b.getInt32Ty(),
      std::string("cvt.rzi.") + (is_unsigned ? "u" : "s") + (wide ? "64" : "32") + ".f64 $0, $1;",
      wide ? "=l,d" : "=r,d", {v});
  i->setDoesNotAccessMemory();
  return i;
}

// The conversions of NVPTX saturate; narrower types saturate once more. From f32 to 32 bits they take NaN to
// 0, the others take it to the least integer (PTX ISA 9.7.9.21, seen on hardware).
Value* float_to_int_nvptx(B& b, DType to, Value* v) {
  using namespace llvm::Intrinsic;
  const bool wide = ir::dtype_bits(to) == 64, from_double = held_as_double(v);
  Value* i = truncated_nvptx(b, wide, ir::dtype_bits(to) >= 32 && !is_signed(to), v);
  if (wide || from_double)
    i = b.CreateSelect(b.CreateFCmpUNO(v, v), llvm::ConstantInt::get(i->getType(), 0), i);
  if (ir::dtype_bits(to) >= 32) return i;
  const int64_t bits = ir::dtype_bits(to), low = is_signed(to) ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = low + (int64_t{1} << bits) - 1;
  i = b.CreateBinaryIntrinsic(smax, i, llvm::ConstantInt::getSigned(i->getType(), low));
  i = b.CreateBinaryIntrinsic(smin, i, llvm::ConstantInt::getSigned(i->getType(), high));
  return b.CreateTrunc(i, held_type(b.getContext(), to));
}

Value* float_to_int(B& b, const MachineFeatures& f, DType to, Value* v) {
  if (f.nvptx && !llvm::isa<llvm::Constant>(v)) return float_to_int_nvptx(b, to, v);
  Type* t = shaped_like(v, held_type(b.getContext(), to));
  auto id = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return b.CreateIntrinsic(id, {t, v->getType()}, {v});
}

// The constant that all lanes share, if it is one.
const llvm::ConstantFP* float_constant(Value* v) {
  auto* c = llvm::dyn_cast<llvm::Constant>(v);
  if (c && v->getType()->isVectorTy()) c = c->getSplatValue();
  return llvm::dyn_cast_or_null<llvm::ConstantFP>(c);
}

bool never_nan(Value* v) {
  const llvm::ConstantFP* f = float_constant(v);
  return f && !f->isNaN();
}

// What is a half already, and a NaN that is written down, is not converted: that would lose bits of a NaN.
Value* half_of(B& b, Value* v) {
  Type* t = shaped_like(v, b.getHalfTy());
  if (auto* widened = llvm::dyn_cast<llvm::FPExtInst>(v); widened && widened->getSrcTy() == t)
    return widened->getOperand(0);
  if (const llvm::ConstantFP* c = float_constant(v); c && c->isNaN() && c->getType()->isFloatTy()) {
    const uint64_t bits = ir::float_to_bits(
        DType::f16, ir::float_from_bits(DType::f32, c->getValueAPF().bitcastToAPInt().getZExtValue()));
    return llvm::ConstantFP::get(t, llvm::APFloat(llvm::APFloat::IEEEhalf(), llvm::APInt(16, bits)));
  }
  return b.CreateFPTrunc(v, t);
}

// The compare picks y when either is NaN, so only a NaN y needs another look.
Value* select_float(B& b, llvm::CmpInst::Predicate wins, Value* x, Value* y) {
  if (never_nan(x)) std::swap(x, y);
  Value* v = b.CreateSelect(b.CreateFCmp(wins, x, y), x, y);
  return never_nan(y) ? v : b.CreateSelect(b.CreateFCmpUNO(y, y), x, v);
}

const llvm::IntrinsicInst* extremum(const Value* v) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(v);
  const auto id = call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
  return id == llvm::Intrinsic::minnum || id == llvm::Intrinsic::maxnum ? call : nullptr;
}

// LLVM 19.1.7 crashes on min(min(x, y), fma(x, y, z)): of two intrinsics with the same first operands, one of
// them a minimum, it takes the other for a minimum or maximum, and looks its opposite up beyond a table. That
// operands are the same may turn out later.
bool is_instruction(const MachineFeatures& f, const Value* x, const Value* y) {
  const auto other = [](const Value* a, const Value* b) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(b);
    return extremum(a) && call && !extremum(b) && call->arg_size() > 1;
  };
  return (f.nvptx || f.amdgpu) && !other(x, y) && !other(y, x);
}

}  // namespace

Value* float_min(B& b, const MachineFeatures& f, Value* x, Value* y) {
  if (is_instruction(f, x, y)) return b.CreateMinNum(x, y);
  return select_float(b, llvm::CmpInst::FCMP_OLT, x, y);
}
Value* float_max(B& b, const MachineFeatures& f, Value* x, Value* y) {
  if (is_instruction(f, x, y)) return b.CreateMaxNum(x, y);
  return select_float(b, llvm::CmpInst::FCMP_OGT, x, y);
}

Type* storage_type(llvm::LLVMContext& c, DType t) {
  switch (t) {
    case DType::f16:
      return Type::getHalfTy(c);
    case DType::f32:
      return Type::getFloatTy(c);
    case DType::f64:
      return Type::getDoubleTy(c);
    default:
      return Type::getIntNTy(c, ir::dtype_bits(t));
  }
}

Type* held_type(llvm::LLVMContext& c, DType t) {
  if (ir::is_bool(t)) return Type::getInt1Ty(c);
  if (t == DType::f64) return Type::getDoubleTy(c);
  if (ir::is_float(t) && !ir::is_storage_only(t)) return Type::getFloatTy(c);
  return Type::getIntNTy(c, ir::dtype_bits(t));
}

Value* from_storage(B& b, DType t, Value* v) {
  switch (t) {
    case DType::f16:
      return b.CreateFPExt(v, shaped_like(v, b.getFloatTy()));
    case DType::bf16:
      return floats_of(b, b.CreateShl(b.CreateZExt(v, shaped_like(v, b.getInt32Ty())), 16));
    case DType::boolean:
      return b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
    default:
      return v;
  }
}

Value* to_storage(B& b, DType t, Value* v) {
  switch (t) {
    case DType::f16:
      return half_of(b, v);
    case DType::bf16:
      return b.CreateTrunc(b.CreateLShr(bits_of(b, v), 16), shaped_like(v, b.getInt16Ty()));
    case DType::boolean:
      return b.CreateZExt(v, shaped_like(v, b.getInt8Ty()));
    default:
      return v;
  }
}

Value* bitcast_held(B& b, DType from, DType to, Value* v) {
  Value* stored = to_storage(b, from, v);
  return from_storage(b, to, b.CreateBitCast(stored, shaped_like(stored, storage_type(b.getContext(), to))));
}

Value* round_held(B& b, const MachineFeatures& f, DType t, Value* v) {
  if (t == DType::bf16) return round_to_bf16(b, f, v);
  if (t == DType::f16) return b.CreateFPExt(b.CreateFPTrunc(v, shaped_like(v, b.getHalfTy())), v->getType());
  return v;
}

Value* cast_held(B& b, const MachineFeatures& f, DType from, DType to, Value* v) {
  if (from == to) return v;
  if (ir::is_storage_only(from)) return cast_held(b, f, DType::f32, to, fp8_to_float(b, f, from, v));
  if (ir::is_storage_only(to)) {
    Value* narrow = from == DType::f64 ? narrow_to_odd(b, v) : cast_held(b, f, from, DType::f32, v);
    return float_to_fp8(b, f, to, narrow);
  }
  if (ir::is_bool(to)) {
    Value* zero = llvm::Constant::getNullValue(v->getType());
    return ir::is_float(from) ? b.CreateFCmpUNE(v, zero) : b.CreateICmpNE(v, zero);
  }
  if (ir::is_bool(from)) {
    Type* t = shaped_like(v, held_type(b.getContext(), to));
    return ir::is_float(to) ? b.CreateUIToFP(v, t) : b.CreateZExt(v, t);
  }
  if (ir::is_float(from)) return ir::is_float(to) ? float_to_float(b, f, to, v) : float_to_int(b, f, to, v);
  if (ir::is_float(to)) return int_to_float(b, f, from, to, v);
  return b.CreateIntCast(v, shaped_like(v, held_type(b.getContext(), to)), is_signed(from));
}

}  // namespace tilegen::codegen
