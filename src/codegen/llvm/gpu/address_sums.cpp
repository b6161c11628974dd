#include "codegen/llvm/gpu/address_sums.h"

namespace tilegen::codegen {

using arith::Interval;
using llvm::Value;

namespace {

constexpr Interval kI32{INT32_MIN, INT32_MAX};

}  // namespace

Value* with_bits(llvm::IRBuilder<>& b, Value* v, unsigned bits, bool non_negative) {
  llvm::Type* type = b.getIntNTy(bits);
  unsigned have = v->getType()->getIntegerBitWidth();
  if (have == bits) return v;
  if (have > bits) return b.CreateTrunc(v, type);
  return non_negative ? b.CreateZExt(v, type, "", /*IsNonNeg=*/true) : b.CreateSExt(v, type);
}

Interval range_of_sum(const std::vector<Summand>& parts) {
  Interval r = Interval::point(0);
  for (const Summand& s : parts) r = arith::interval_add(r, arith::interval_scale(s.range, s.scale));
  return r;
}

Value* sum_narrow(llvm::IRBuilder<>& b, const std::vector<Summand>& parts) {
  Value* sum = nullptr;
  for (const Summand& s : parts) {
    Value* v = with_bits(b, s.value, 32, s.range.lo >= 0);
    if (s.scale != 1) v = b.CreateMul(v, b.getInt32(static_cast<uint32_t>(s.scale)));
    sum = sum ? b.CreateAdd(sum, v) : v;
  }
  return sum;
}

Summand sum_level(llvm::IRBuilder<>& b, const std::vector<Summand>& parts) {
  std::vector<Summand> narrow;
  Interval narrow_range = Interval::point(0);
  Summand sum;
  sum.level = parts.front().level;
  sum.range = range_of_sum(parts);
  Value* wide = nullptr;
  for (const Summand& s : parts) {
    Interval r = arith::interval_add(narrow_range, arith::interval_scale(s.range, s.scale));
    if (s.range.within(kI32) && s.scale >= INT32_MIN && s.scale <= INT32_MAX && r.within(kI32)) {
      narrow.push_back(s);
      narrow_range = r;
      continue;
    }
    Value* v = with_bits(b, s.value, 64, s.range.lo >= 0);
    if (s.scale != 1) v = b.CreateMul(v, b.getInt64(static_cast<uint64_t>(s.scale)));
    wide = wide ? b.CreateAdd(wide, v) : v;
  }
  Value* small = sum_narrow(b, narrow);
  if (!wide) {
    sum.value = small;
    return sum;
  }
  sum.value = small ? b.CreateAdd(wide, with_bits(b, small, 64, narrow_range.lo >= 0)) : wide;
  return sum;
}

}  // namespace tilegen::codegen
