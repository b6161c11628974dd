#include "ops/reduction_meaning.h"

#include <limits>

namespace tilegen::ops {

using ir::DType;
using ir::ReduceKind;

namespace {

int64_t lowest_integer(DType type) {
  if (ir::dtype_kind(type) != ir::DTypeKind::signed_int) return 0;
  return ir::dtype_bits(type) == 64 ? INT64_MIN : -(int64_t(1) << (ir::dtype_bits(type) - 1));
}

int64_t highest_integer(DType type) {
  if (ir::is_bool(type)) return 1;
  if (ir::dtype_kind(type) == ir::DTypeKind::unsigned_int) return ir::wrap_to(type, -1);
  const int bits = ir::dtype_bits(type) - 1;
  return bits >= 63 ? INT64_MAX : (int64_t(1) << bits) - 1;
}

}  // namespace

ir::ScalarValue reduction_start(ReduceKind kind, DType type) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (kind == ReduceKind::max) return {type, lowest_integer(type), ir::is_float(type) ? -kInfinity : 0};
  if (kind == ReduceKind::min) return {type, highest_integer(type), ir::is_float(type) ? kInfinity : 0};
  if (kind == ReduceKind::product) return {type, 1, 1};
  if (kind == ReduceKind::bit_and) return {type, ir::is_bool(type) ? 1 : ir::wrap_to(type, -1), 0};
  return {type, 0, 0};
}

ir::ScalarValue combined(ReduceKind kind, DType type, ir::ScalarValue acc, ir::ScalarValue v) {
  const auto of_two = [&](ir::ExprOp op, ir::ScalarValue term) {
    return ir::eval_binary(op, type, acc, term);
  };
  if (ir::is_bool(type)) {
    if (kind == ReduceKind::bit_xor) return {type, acc.i ^ v.i, 0};
    const bool all = kind == ReduceKind::min || kind == ReduceKind::bit_and;
    return {type, all ? (acc.i & v.i) : (acc.i | v.i), 0};
  }
  switch (kind) {
    case ReduceKind::sum:
      return of_two(ir::ExprOp::add, v);
    case ReduceKind::abssum:
      return of_two(ir::ExprOp::add, ir::eval_unary(ir::ExprOp::abs, type, v));
    case ReduceKind::product:
      return of_two(ir::ExprOp::mul, v);
    case ReduceKind::min:
      return of_two(ir::ExprOp::min, v);
    case ReduceKind::max:
      return of_two(ir::ExprOp::max, v);
    case ReduceKind::absmax:
      return of_two(ir::ExprOp::max, ir::eval_unary(ir::ExprOp::abs, type, v));
    case ReduceKind::bit_and:
      return of_two(ir::ExprOp::bit_and, v);
    case ReduceKind::bit_or:
      return of_two(ir::ExprOp::bit_or, v);
    case ReduceKind::bit_xor:
      return of_two(ir::ExprOp::bit_xor, v);
  }
  return acc;
}

}  // namespace tilegen::ops
