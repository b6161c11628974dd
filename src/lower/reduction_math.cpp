#include "lower/reduction_math.h"

#include <cmath>

namespace tilegen::lower {

using ir::DType;
using ir::ExprId;
using ir::ExprOp;
using ir::ReduceKind;

ExprId reduction_identity(ir::ExprPool& e, ReduceKind kind, DType t) {
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::absmax:
    case ReduceKind::abssum:
    case ReduceKind::bit_or:
    case ReduceKind::bit_xor:
      return e.const_number(0, t);
    case ReduceKind::product:
      return e.const_number(1, t);
    case ReduceKind::bit_and:
      return e.const_int(ir::is_bool(t) ? 1 : ir::wrap_to(t, -1), t);
    case ReduceKind::max:
    case ReduceKind::min:
      break;
  }
  bool lowest = kind == ReduceKind::max;
  if (ir::is_float(t)) return e.const_float(lowest ? -INFINITY : INFINITY, t);
  if (ir::dtype_kind(t) == ir::DTypeKind::unsigned_int || ir::is_bool(t))
    return e.const_int(lowest ? 0 : (ir::is_bool(t) ? 1 : ir::wrap_to(t, -1)), t);
  int bits = ir::dtype_bits(t);
  int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
  return e.const_int(lowest ? -high - 1 : high, t);
}

ExprId scan_identity(ir::ExprPool& e, ReduceKind kind, DType t) {
  if (kind == ReduceKind::sum && ir::is_float(t)) return e.const_float(-0.0, t);
  return reduction_identity(e, kind, t);
}

ExprId reduction_combine(ir::ExprPool& e, ReduceKind kind, ExprId a, ExprId b) {
  if (ir::is_bool(e.type(a))) {
    if (kind == ReduceKind::bit_xor) return e.binary(ExprOp::ne, a, b);
    const bool all = kind == ReduceKind::min || kind == ReduceKind::bit_and;
    return e.binary(all ? ExprOp::logical_and : ExprOp::logical_or, a, b);
  }
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::abssum:
      return e.binary(ExprOp::add, a, b);
    case ReduceKind::product:
      return e.binary(ExprOp::mul, a, b);
    case ReduceKind::bit_and:
      return e.binary(ExprOp::bit_and, a, b);
    case ReduceKind::bit_or:
      return e.binary(ExprOp::bit_or, a, b);
    case ReduceKind::bit_xor:
      return e.binary(ExprOp::bit_xor, a, b);
    case ReduceKind::min:
      return e.binary(ExprOp::min, a, b);
    case ReduceKind::max:
    case ReduceKind::absmax:
      return e.binary(ExprOp::max, a, b);
  }
  return a;
}

ExprId reduction_term(ir::ExprPool& e, ReduceKind kind, ExprId element) {
  return kind == ReduceKind::absmax || kind == ReduceKind::abssum ? e.unary(ExprOp::abs, element) : element;
}

}  // namespace tilegen::lower
