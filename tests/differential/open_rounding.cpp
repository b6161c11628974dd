#include "open_rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../unit/codegen/rounded_functions.h"
#include "ir/compress.h"
#include "ir/op_kinds.h"
#include "launch_memory.h"
#include "ops/index_space.h"
#include "ops/op.h"

namespace tilegen::differential {

using ir::DType;
using ir::ExprOp;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double largest_of(DType t) {
  return t == DType::f16 ? 65504.0 : t == DType::f64 ? std::numeric_limits<double>::max() : 3.3895e38;
}

// Whether `result` is a op b without rounding.
bool is_exact(ExprOp op, DType type, double a, double b, double result) {
  if (type != DType::f64) return (op == ExprOp::mul ? a * b : op == ExprOp::add ? a + b : a - b) == result;
  if (op == ExprOp::mul) return std::fma(a, b, -result) == 0;
  const double c = op == ExprOp::add ? b : -b;
  const double other = result - a;
  return (a - (result - other)) + (c - other) == 0;
}

// In units of the last place; the table of docs/numerics.md, on any executor.
double function_error(ExprOp op, DType type) {
  if (op == ExprOp::erfc && ir::dtype_bits(type) > 16) return 4.5;
  return type == DType::f32 ? 4 : type == DType::f64 ? 2.5 : 1;
}

}  // namespace

double OpenRounding::either_zero(double value) {
  return rounding_ == Rounding::up     ? 0.0
         : rounding_ == Rounding::down ? -0.0
         : random_.chance(2)           ? -value
                                       : value;
}

double OpenRounding::moved(DType type, double value, double distance) {
  if (value == 0 && distance == 0) return either_zero(value);
  if (std::isinf(distance))
    return random_.pick({value, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(),
                         std::copysign(largest_of(type), value)});
  if (!std::isfinite(value) || distance == 0) return value;
  const double part = rounding_ == Rounding::up ? 1
                      : rounding_ == Rounding::down
                          ? -1
                          : (0.5 + random_.unit() / 2) * (random_.chance(2) ? 1 : -1);
  return ir::round_to(type, value + part * distance);
}

double OpenRounding::unary(ExprOp op, DType type, double a, double result) {
  if (!codegen::test::is_rounded_function(op) || !std::isfinite(result) || result == 0 || !std::isfinite(a))
    return result;
  // f32 on GPUs: what is below the normal numbers may count as 0.
  if (op == ExprOp::exp2 && type == DType::f32 && std::fabs(result) < 0x1p-126)
    return random_.chance(2) ? 0.0 : result;
  return moved(type, result, function_error(op, type) * unit_in_last_place(type, result));
}

double OpenRounding::binary(ExprOp op, DType type, double a, double b, double result) {
  if ((op == ExprOp::min || op == ExprOp::max) && a == 0 && b == 0) return either_zero(result);
  if (codegen::test::is_rounded_function(op)) {
    if (!std::isfinite(result) || result == 0 || !std::isfinite(a) || !std::isfinite(b)) return result;
    return moved(type, result, function_error(op, type) * unit_in_last_place(type, result));
  }
  if (op != ExprOp::add && op != ExprOp::sub && op != ExprOp::mul) return result;
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))  // a contraction does not round in between
    return random_.chance(2) ? result : std::copysign(largest_of(type), result);
  if (!std::isfinite(result) || is_exact(op, type, a, b, result)) return result;
  return moved(type, result, unit_in_last_place(type, result));
}

double OpenRounding::fast_form(DType type, std::span<const double> arguments, double result) {
  const bool bounded = std::all_of(arguments.begin(), arguments.end(),
                                   [](double a) { return std::fabs(a) >= 0x1p-16 && std::fabs(a) <= 64; });
  return moved(type, result, bounded ? 0x1p-10 * std::fabs(result) + 0x1p-20 : kInfinity);
}

void Terms::add(double value) {
  if (!std::isfinite(value)) return;
  largest = std::max(largest, std::fabs(value));
  whole = whole && value == std::trunc(value);
  tf32 = tf32 && ir::truncate_to_tf32(value) == value;
}

double gemm_error(DType operand, DType result, bool tf32, double k, const Terms& a, const Terms& b,
                  const Terms& old) {
  if (!ir::is_float(result)) return 0;
  const DType sum = result == DType::f64 ? result : DType::f32;
  const double product = a.largest * b.largest, most = k * product + old.largest;
  if (most > largest_of(sum)) return kInfinity;
  double error = 0;
  if (!(a.whole && b.whole && old.whole && most <= 2 / epsilon(sum)))
    error += std::sqrt(k) * epsilon(sum) * most;
  if (result == DType::f16 && !(a.whole && b.whole && old.whole && most <= 2048))
    error += (k / 16 + 1) * epsilon(result) * std::min(most, largest_of(result));
  if (tf32 && !(a.tf32 && b.tf32)) error += k * 0x1p-9 * product;
  if (operand == DType::bf16) error += k * 0x1p-126 * (a.largest + b.largest);
  if (ir::is_storage_only(operand) && !(a.whole && b.whole && old.whole && most <= 0x1p12))
    error += k * 0x1p-13 * most;
  return error;
}

double sum_error(DType type, double count, const Terms& terms) {
  const double most = count * terms.largest;
  if (!ir::is_float(type) || (terms.whole && most <= 2 / epsilon(type))) return 0;
  if (most > largest_of(type)) return kInfinity;
  return std::sqrt(count) * epsilon(type) * most;
}

std::string open_sparse_terms(const ir::TileOp& op, ops::ReferenceSink& sink) {
  enum : int { kA, kB, kMeta = 3 };
  const bool transposed = op.flag(ir::gemm_sparse_attr::transpose_a);
  const std::vector<int> dims = ops::matched_dims(op.operands[kA], 2),
                         words = ops::matched_dims(op.operands[kMeta], 2);
  const auto m_dim = static_cast<size_t>(dims[transposed ? 1 : 0]),
             k_dim = static_cast<size_t>(dims[transposed ? 0 : 1]);
  const int64_t bits = ir::dtype_bits(sink.type(kMeta)), rows = sink.extents(kA)[m_dim],
                values = sink.extents(kA)[k_dim];
  std::vector<int64_t> at(sink.extents(kA).size(), 0), word(sink.extents(kMeta).size(), 0);
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t first = 0; first < values && !sink.stopped(); first += ir::kSparseKept) {
      const int64_t k = first / ir::kSparseKept * ir::kSparseGroup;
      word[static_cast<size_t>(words[0])] = m, word[static_cast<size_t>(words[1])] = k / bits;
      const ir::SparsePlaces places = ir::sparse_places(sink.read(kMeta, word).i, k % bits);
      for (int64_t v = 0; v < ir::kSparseKept && places.first == places.second; ++v) {
        at[m_dim] = m, at[k_dim] = first + v;
        if (const ir::ScalarValue value = sink.read(kA, at); value.i != 0 || value.f != 0)
          return "places of one group are equal";
      }
    }
  bool finite = true;
  ops::for_each_index(sink.extents(kB), [&](std::span<const int64_t> index) {
    finite = finite && std::isfinite(sink.read(kB, index).f);
    return finite && !sink.stopped();
  });
  return finite ? "" : "an infinity or NaN may meet zeros of a sparse operand";
}

}  // namespace tilegen::differential
