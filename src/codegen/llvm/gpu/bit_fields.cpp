#include "codegen/llvm/gpu/bit_fields.h"

#include <bit>
#include <cmath>
#include <optional>

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

namespace tilegen::codegen {

using llvm::Value;

namespace {

// The integer (((word >> lanes) >> shift) % 2^width ^ flip) + plus.
struct Field {
  Value* word = nullptr;
  unsigned shift = 0, width = 0;
  uint32_t flip = 0;
  int64_t plus = 0;
  Value* lanes = nullptr;  // an amount that only the machine knows; null: none

  bool same_word(const Field& o) const { return word == o.word && lanes == o.lanes; }
};

constexpr int kMaxSteps = 12;       // of shifts, masks and casts that a field is made of
constexpr int64_t kMaxPlus = 1024;  // sums with it do not wrap in types of at least 16 bits

unsigned bits_of(const Value* v) { return v->getType()->getIntegerBitWidth(); }

std::optional<uint64_t> number(const Value* v) {
  const auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
  if (!c || c->getBitWidth() > 64) return std::nullopt;
  return c->getZExtValue();
}

Field shifted(Field f, unsigned by) {
  f.shift += by;
  f.width -= by;
  return f;
}

// An amount to shift by: `lanes`, which may be null, + by, at most `most`.
struct Amount {
  Value* lanes = nullptr;
  unsigned by = 0, most = 0;
};

std::optional<Amount> amount_of(Value* v) {
  const auto known = [&](Value* x) {
    const auto* at = llvm::dyn_cast<llvm::Instruction>(x);
    return at && at->getModule()
               ? llvm::computeKnownBits(x, at->getModule()->getDataLayout()).getMaxValue().getLimitedValue()
               : UINT64_MAX;
  };
  const uint64_t most = known(v);
  if (most >= bits_of(v)) return std::nullopt;
  Amount amount{v, 0, static_cast<unsigned>(most)};
  for (int steps = kMaxSteps; steps > 0; --steps) {
    auto* made = llvm::dyn_cast<llvm::BinaryOperator>(amount.lanes);
    const std::optional<uint64_t> by = made ? number(made->getOperand(1)) : std::nullopt;
    if (!by) break;
    const uint64_t below = known(made->getOperand(0));
    const bool sum = made->getOpcode() == llvm::Instruction::Add && *by <= most && below < bits_of(v);
    const bool same = made->getOpcode() == llvm::Instruction::And && (*by & (*by + 1)) == 0 && below <= *by;
    if (!sum && !same) break;
    if (sum) amount.by += static_cast<unsigned>(*by);
    amount.lanes = made->getOperand(0);
  }
  return amount;
}

Field lowest_bits(Value* v, unsigned count, int steps);

// The bits that `v` is made of; `plus` and `flip` are not looked for.
Field bits_below(Value* v, int steps) {
  const Field whole{v, 0, bits_of(v), 0, 0};
  auto* made = llvm::dyn_cast<llvm::Instruction>(v);
  if (!made || steps == 0) return whole;
  if (llvm::isa<llvm::ZExtInst>(made)) return bits_below(made->getOperand(0), steps - 1);
  if (llvm::isa<llvm::TruncInst>(made)) {
    Field f = bits_below(made->getOperand(0), steps - 1);
    f.width = std::min(f.width, bits_of(v));
    return f;
  }
  const auto op = made->getOpcode();
  if (op != llvm::Instruction::And && op != llvm::Instruction::LShr && op != llvm::Instruction::AShr)
    return whole;
  const std::optional<uint64_t> by = number(made->getOperand(1));
  if (!by) {
    const auto amount = op == llvm::Instruction::LShr ? amount_of(made->getOperand(1)) : std::nullopt;
    if (!amount) return whole;
    return {made->getOperand(0), amount->by, bits_of(v) - amount->by, 0, 0, amount->lanes};
  }
  if (op == llvm::Instruction::And) {
    if ((*by & (*by + 1)) != 0) return whole;  // no mask of the lowest bits
    return lowest_bits(made->getOperand(0), static_cast<unsigned>(std::popcount(*by)), steps - 1);
  }
  const Field f = bits_below(made->getOperand(0), steps - 1);
  if (op == llvm::Instruction::AShr && f.width == bits_of(v)) return whole;
  return *by < f.width ? shifted(f, static_cast<unsigned>(*by)) : whole;
}

// A shift that repeats the sign has the same lowest bits as one that does not, as long as these are of the
// word.
Field lowest_bits(Value* v, unsigned count, int steps) {
  Field f = bits_below(v, steps);
  auto* made = llvm::dyn_cast<llvm::Instruction>(v);
  if (f.word == v && made && made->getOpcode() == llvm::Instruction::AShr) {
    const std::optional<uint64_t> by = number(made->getOperand(1));
    const auto amount = by ? std::nullopt : amount_of(made->getOperand(1));
    if (by && *by + count <= bits_of(v))
      f = shifted(bits_below(made->getOperand(0), steps), static_cast<unsigned>(*by));
    else if (amount && amount->most + count <= bits_of(v))
      f = {made->getOperand(0), amount->by, count, 0, 0, amount->lanes};
  }
  f.width = std::min(f.width, count);
  return f;
}

// What is clamped to bounds that no field reaches.
Value* clamped(Value* v) {
  for (int steps = 2; steps > 0; --steps) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(v);
    if (!call) break;
    const auto id = call->getIntrinsicID();
    if (id != llvm::Intrinsic::smin && id != llvm::Intrinsic::smax && id != llvm::Intrinsic::umin) break;
    const auto* bound = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(1));
    if (!bound || bound->getBitWidth() > 64) break;
    const int64_t at = bound->getSExtValue();
    if (id == llvm::Intrinsic::smax ? at > -2 * kMaxPlus : at < 2 * kMaxPlus) break;
    v = call->getArgOperand(0);
  }
  return v;
}

// As a signed number of its type, or an unsigned one.
std::optional<Field> field_of(Value* v, bool is_signed) {
  int64_t plus = 0;
  v = clamped(v);
  for (int steps = kMaxSteps; steps > 0; --steps) {
    auto* made = llvm::dyn_cast<llvm::BinaryOperator>(v);
    const bool sum = made && made->getOpcode() == llvm::Instruction::Add;
    if (!sum && !(made && made->getOpcode() == llvm::Instruction::Sub)) break;
    const auto* c = llvm::dyn_cast<llvm::ConstantInt>(made->getOperand(1));
    if (!c || bits_of(v) < 16 || bits_of(v) > 64) break;
    plus += sum ? c->getSExtValue() : -c->getSExtValue();
    if (std::abs(plus) > kMaxPlus) return std::nullopt;
    v = made->getOperand(0);
  }
  if (plus != 0 && !is_signed) return std::nullopt;  // may be a large number
  if (auto* widened = llvm::dyn_cast<llvm::SExtInst>(v)) {
    v = widened->getOperand(0);
    is_signed = true;
  }
  Field f = bits_below(v, kMaxSteps);
  f.plus = plus;
  if (is_signed && f.width == bits_of(v)) {
    f.flip = uint32_t{1} << (f.width - 1);
    f.plus -= int64_t{1} << (f.width - 1);
  }
  if (bits_of(f.word) > 32) return std::nullopt;
  return f;
}

// The integer that a float was made of, but for `plus`, which was added since; sums are rounded to `type`,
// and are exact, of numbers below 2^(room + 1).
Value* integer_behind(Value* held, llvm::Type* type, unsigned room, bool& is_signed, int64_t& plus) {
  for (int steps = kMaxSteps; steps > 0; --steps) {
    auto* made = llvm::dyn_cast<llvm::BinaryOperator>(held);
    const auto* c = made ? llvm::dyn_cast<llvm::ConstantFP>(made->getOperand(1)) : nullptr;
    const bool sum = made && made->getOpcode() == llvm::Instruction::FAdd;
    if (!c || !(sum || made->getOpcode() == llvm::Instruction::FSub)) break;
    const double by = c->getValueAPF().convertToDouble();
    if (!(std::abs(by) <= std::ldexp(1.0, static_cast<int>(room))) || by != std::floor(by)) break;
    plus += static_cast<int64_t>(sum ? by : -by);
    if (std::abs(plus) > int64_t{1} << room) return nullptr;
    held = made->getOperand(0);
    if (auto* widened = llvm::dyn_cast<llvm::FPExtInst>(held)) held = widened->getOperand(0);
    if (auto* rounded = llvm::dyn_cast<llvm::FPTruncInst>(held)) {
      if (rounded->getDestTy() != type) return nullptr;
      held = rounded->getOperand(0);
    }
  }
  auto* cast = llvm::dyn_cast<llvm::CastInst>(held);
  if (!cast || !cast->getSrcTy()->isIntegerTy()) return nullptr;
  is_signed = cast->getOpcode() == llvm::Instruction::SIToFP;
  return is_signed || cast->getOpcode() == llvm::Instruction::UIToFP ? cast->getOperand(0) : nullptr;
}

// A 16-bit float of `t` that is exactly x; null: there is none.
llvm::Constant* exactly(llvm::Type* t, double x) {
  llvm::APFloat value(x);
  bool inexact = false;
  value.convert(t->getFltSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return inexact ? nullptr : llvm::ConstantFP::get(t->getContext(), value);
}

// Where a field lies in the 16 bits that are taken for it, from byte `byte` of `word` on.
struct Taken {
  Value* word = nullptr;
  unsigned byte = 0, shift = 0;
};

// `room`: bits below the power of two. Shifts by less than a byte are left to the multiply-add where they
// fit.
Taken take(llvm::IRBuilder<>& b, const Field& f, Value* word, unsigned room) {
  const unsigned inside = f.shift % 8;
  if (inside + f.width <= std::min(room, 8U)) return {word, f.shift / 8, inside};
  if (inside + f.width <= 8) return {b.CreateLShr(word, inside), f.shift / 8, 0};
  return {b.CreateLShr(word, f.shift), 0, 0};
}

// The lowest byte of a word shifted by whole bytes, of which only the machine knows how many.
Value* lane_byte(const Field& f) {
  auto* bits = f.lanes ? llvm::dyn_cast<llvm::BinaryOperator>(f.lanes) : nullptr;
  if (!bits || f.shift + f.width > 8) return nullptr;
  const bool eights = (bits->getOpcode() == llvm::Instruction::Shl && number(bits->getOperand(1)) == 3) ||
                      (bits->getOpcode() == llvm::Instruction::Mul && number(bits->getOperand(1)) == 8);
  return eights ? bits->getOperand(0) : nullptr;
}

}  // namespace

Value* converted_fields(llvm::IRBuilder<>& b, ir::DType t, Value* low, Value* high) {
  llvm::Type* type = t == ir::DType::f16 ? b.getHalfTy() : b.getBFloatTy();
  const unsigned room = t == ir::DType::f16 ? 10 : 7;
  std::optional<Field> fields[2];
  for (int side = 0; side < 2; ++side) {
    bool is_signed = false;
    int64_t plus = 0;
    Value* v = integer_behind(side == 0 ? low : high, type, room, is_signed, plus);
    if (v) fields[side] = field_of(v, is_signed);
    if (!fields[side] || fields[side]->width > room) return nullptr;
    if (std::abs(fields[side]->plus) > int64_t{1} << room) return nullptr;
    fields[side]->plus += plus;
  }
  // 2^room with the field in its last digits, times `scales`, plus `offsets`.
  Taken taken[2];
  llvm::Constant *scales[2], *offsets[2];
  uint32_t mask = 0, flip = 0, selector = 0;
  bool multiplied = false;
  const bool same_word = fields[0]->same_word(*fields[1]);
  // Of one byte of the word, which is chosen where it is brought to its place.
  Value* byte = same_word && fields[1]->shift + fields[1]->width <= 8 ? lane_byte(*fields[0]) : nullptr;
  const auto word_of = [&](const Field& f) {
    Value* word = b.CreateZExt(f.word, b.getInt32Ty());
    return f.lanes && !byte ? b.CreateLShr(word, b.CreateZExtOrTrunc(f.lanes, b.getInt32Ty())) : word;
  };
  Value* words[2] = {word_of(*fields[0]), nullptr};
  words[1] = same_word ? words[0] : word_of(*fields[1]);
  for (unsigned side = 0; side < 2; ++side) {
    const Field& f = *fields[side];
    taken[side] = take(b, f, words[side], room);
    const unsigned shift = taken[side].shift, place = 16 * side + shift;
    const double scale = std::ldexp(1.0, -static_cast<int>(shift));
    scales[side] = exactly(type, scale);
    offsets[side] = exactly(type, static_cast<double>(f.plus) - std::ldexp(scale, static_cast<int>(room)));
    const int64_t most = std::max(std::abs(f.plus), std::abs(f.plus + (int64_t{1} << f.width) - 1));
    if (!scales[side] || !offsets[side] || most > int64_t{2} << room) return nullptr;
    mask |= ((uint32_t{1} << f.width) - 1) << place;
    flip |= f.flip << place;
    multiplied |= shift != 0;
    const unsigned from = taken[side].byte + (side == 1 && taken[1].word != taken[0].word ? 4 : 0);
    selector |= (from | std::min(from + 1, from / 4 * 4 + 3) << 4) << (8 * side);
  }
  const llvm::APFloat base =
      llvm::cast<llvm::ConstantFP>(exactly(type, std::ldexp(1.0, static_cast<int>(room))))->getValueAPF();
  const auto power = static_cast<uint32_t>(base.bitcastToAPInt().getZExtValue()) * 0x10001;
  // Of one word, the power's upper byte comes with the field's.
  const bool one_word = taken[0].word == taken[1].word && (mask & 0xff00ff00) == 0;
  Value* other = taken[1].word;
  if (one_word) {
    selector = (selector & 0x0f0f) | 0x5050;
    other = b.getInt32(power);
    mask |= 0xff00ff00;
  }
  Value* bytes = b.getInt32(selector);
  if (byte)
    bytes = b.CreateAdd(b.CreateMul(b.CreateZExtOrTrunc(byte, b.getInt32Ty()), b.getInt32(0x101)), bytes);
  Value* bits = b.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {}, {taken[0].word, other, bytes});
  bits = b.CreateXor(b.CreateAnd(bits, mask), one_word ? flip : flip | power);
  llvm::Type* pair = llvm::FixedVectorType::get(type, 2);
  Value* sum = b.CreateBitCast(bits, pair);
  Value* offset = llvm::ConstantVector::get({offsets[0], offsets[1]});
  if (!multiplied && t == ir::DType::f16) return b.CreateFAdd(sum, offset);
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {pair},
                           {sum, llvm::ConstantVector::get({scales[0], scales[1]}), offset});
}

}  // namespace tilegen::codegen
