#include "codegen/llvm/mma_steps.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using ir::DType;
using llvm::Value;

namespace {
constexpr uint32_t kSignBits = 0x80808080;
}

std::optional<std::string> mma_refusal(const MmaTypes& t) {
  bool floats = ir::is_float(t.a) && ir::is_float(t.b) && ir::is_float(t.c);
  bool integers = ir::is_integer(t.a) && ir::is_integer(t.b) && (t.c == DType::i32 || t.c == DType::i64);
  bool narrowing = ir::dtype_bits(t.c) < ir::dtype_bits(t.a) || ir::dtype_bits(t.c) < ir::dtype_bits(t.b);
  if ((floats || integers) && !narrowing) return std::nullopt;
  return std::string("no matrix atom multiplies ") + ir::dtype_name(t.a) + " by " + ir::dtype_name(t.b) +
         " into " + ir::dtype_name(t.c);
}

MmaSteps::MmaSteps(llvm::IRBuilder<>& b, const MachineFeatures& f, MmaTypes types, int64_t lanes, int pack)
    : b_(b), features_(f), types_(types), lanes_(lanes), pack_(pack) {
  bool full = lanes == 16 || lanes == 8 || lanes == 4;
  if (types.a == DType::bf16 && types.b == DType::bf16 && types.c == DType::f32 && pack == 2 &&
      f.avx512_bf16 && full)
    form_ = Form::bf16_dot;
  bool bytes =
      ir::dtype_bits(types.a) == 8 && ir::dtype_bits(types.b) == 8 && types.c == DType::i32 && pack == 4;
  bool have_dot = f.avx512_vnni || (f.avx_vnni && lanes <= 8);
  if (bytes && have_dot && full) {
    form_ = Form::byte_dot;
    swap_ = types.a == DType::i8;
    offset_ = types.a == types.b;
  }
}

Value* MmaSteps::zero() {
  llvm::Type* t = held_type(b_.getContext(), types_.c);
  if (lanes_ > 1) t = llvm::FixedVectorType::get(t, static_cast<unsigned>(lanes_));
  return llvm::Constant::getNullValue(t);
}

Value* MmaSteps::spread(Value* scalar) {
  return lanes_ > 1 ? b_.CreateVectorSplat(static_cast<unsigned>(lanes_), scalar) : scalar;
}

Value* MmaSteps::widen(Value* v, DType t) {
  return cast_held(b_, features_, t, types_.c, from_storage(b_, t, v));
}

// `count` groups of pack elements -> pack values of `count` elements in C's type.
MmaSteps::Operand MmaSteps::widened(Value* loaded, DType t, int64_t count) {
  if (pack_ == 1) return {widen(loaded, t)};
  Operand out;
  if (t == DType::bf16 && pack_ == 2 && types_.c == DType::f32) {  // halves of a 32-bit word are f32 patterns
    llvm::Type* word = b_.getInt32Ty();
    llvm::Type* f32 = b_.getFloatTy();
    if (count > 1) {
      word = llvm::FixedVectorType::get(word, static_cast<unsigned>(count));
      f32 = llvm::FixedVectorType::get(f32, static_cast<unsigned>(count));
    }
    Value* words = b_.CreateBitCast(loaded, word);
    out.push_back(b_.CreateBitCast(b_.CreateShl(words, 16), f32));
    out.push_back(b_.CreateBitCast(b_.CreateAnd(words, 0xffff0000), f32));
    return out;
  }
  for (int q = 0; q < pack_; ++q) {
    if (count == 1) {
      out.push_back(widen(b_.CreateExtractElement(loaded, static_cast<uint64_t>(q)), t));
      continue;
    }
    std::vector<int> pick;
    for (int64_t j = 0; j < count; ++j) pick.push_back(static_cast<int>(j * pack_ + q));
    out.push_back(widen(b_.CreateShuffleVector(loaded, pick), t));
  }
  return out;
}

MmaSteps::Operand MmaSteps::column(Value* loaded) {
  if (form_ == Form::widened) return widened(loaded, types_.b, lanes_);
  llvm::Type* word = llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(lanes_));
  Value* words = b_.CreateBitCast(loaded, word);
  return {offset_ ? b_.CreateXor(words, kSignBits) : words};
}

MmaSteps::Operand MmaSteps::row(Value* loaded) {
  if (form_ == Form::widened) {
    Operand out = widened(loaded, types_.a, 1);
    for (Value*& v : out) v = spread(v);
    return out;
  }
  return {spread(b_.CreateBitCast(loaded, b_.getInt32Ty()))};
}

Value* MmaSteps::dot_bytes(Value* acc, Value* unsigned_bytes, Value* signed_bytes) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(acc->getType())->getNumElements();
  auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
            : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                         : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
  return b_.CreateIntrinsic(id, {}, {acc, unsigned_bytes, signed_bytes});
}

Value* MmaSteps::multiply_add(const Operand& row, const Operand& column, Value* acc) {
  if (form_ == Form::byte_dot)
    return swap_ ? dot_bytes(acc, column[0], row[0]) : dot_bytes(acc, row[0], column[0]);
  if (form_ == Form::bf16_dot) {
    auto id = lanes_ == 16  ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512
              : lanes_ == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                            : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
    llvm::Type* pairs = llvm::FixedVectorType::get(b_.getBFloatTy(), static_cast<unsigned>(lanes_ * 2));
    return b_.CreateIntrinsic(id, {},
                              {acc, b_.CreateBitCast(row[0], pairs), b_.CreateBitCast(column[0], pairs)});
  }
  for (size_t q = 0; q < row.size(); ++q) {
    if (!ir::is_float(types_.c))
      acc = b_.CreateAdd(acc, b_.CreateMul(row[q], column[q]));
    else if (features_.fma)
      acc = b_.CreateIntrinsic(llvm::Intrinsic::fma, {acc->getType()}, {row[q], column[q], acc});
    else
      acc = b_.CreateFAdd(acc, b_.CreateFMul(row[q], column[q]));
  }
  return acc;
}

Value* MmaSteps::no_bias(int64_t words) {
  return llvm::Constant::getNullValue(
      llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(words)));
}

Value* MmaSteps::add_bias(Value* sum, Value* loaded) {
  llvm::Type* words = sum->getType();
  Value* a = loaded->getType()->getPrimitiveSizeInBits() == words->getPrimitiveSizeInBits()
                 ? b_.CreateBitCast(loaded, words)
                 : b_.CreateInsertElement(llvm::Constant::getNullValue(words),
                                          b_.CreateBitCast(loaded, b_.getInt32Ty()), uint64_t{0});
  if (swap_) return dot_bytes(sum, llvm::ConstantInt::get(words, kSignBits), a);
  return dot_bytes(sum, a, llvm::ConstantInt::get(words, 0x01010101));
}

// i8: A * (B + 128) - 128 * A. u8: A * (B - 128) + 128 * A.
Value* MmaSteps::bias(Value* sum) {
  Value* total = b_.CreateAddReduce(sum);
  return spread(swap_ ? b_.CreateNeg(total) : b_.CreateShl(total, 7));
}

}  // namespace tilegen::codegen
