// gemm: C = A * B (+ C) on tiles: A and B in shared memory or fragments, C in a fragment.
#include <algorithm>
#include <iterator>
#include <type_traits>
#include <vector>

#include "ir/op_kinds.h"
#include "ops/describe.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::ops {
namespace {

using ir::DType;
using ir::MemScope;
using ir::Region;
enum : int { kA, kB, kC };

struct TypeRow {
  DType a, b, c;
};
constexpr TypeRow kTypes[] = {
    {DType::f16, DType::f16, DType::f16},
    {DType::f16, DType::f16, DType::f32},
    {DType::bf16, DType::bf16, DType::f32},
    {DType::f32, DType::f32, DType::f32},
    {DType::f64, DType::f64, DType::f64},
    {DType::i8, DType::i8, DType::i32},
    {DType::i8, DType::u8, DType::i32},
    {DType::u8, DType::i8, DType::i32},
    {DType::u8, DType::u8, DType::i32},
    {DType::e4m3, DType::e4m3, DType::f32},
    {DType::e4m3, DType::e5m2, DType::f32},
    {DType::e5m2, DType::e4m3, DType::f32},
    {DType::e5m2, DType::e5m2, DType::f32},
    {DType::e4m3fnuz, DType::e4m3fnuz, DType::f32},
    {DType::e4m3fnuz, DType::e5m2fnuz, DType::f32},
    {DType::e5m2fnuz, DType::e4m3fnuz, DType::f32},
    {DType::e5m2fnuz, DType::e5m2fnuz, DType::f32},
};

// The dimensions of one operand's region that hold its rows and columns, as stored.
struct MatrixDims {
  int rows = 0, cols = 0;
};
MatrixDims matrix_dims(const Region& r) {
  const std::vector<int> dims = matched_dims(r, 2);
  return {dims[0], dims[1]};
}

// ---- signature check ----

void check_scopes(const ir::Program& p, const ir::TileOp& op, const Reporter& report) {
  for (int i : {kA, kB}) {
    const MemScope scope = p.buffer(op.operands[i].buffer).scope;
    if (scope == MemScope::shared || scope == MemScope::fragment) continue;
    report.error(DiagCode::scope_not_allowed,
                 std::string(i == kA ? "a " : "b ") + operand_text(p, op.operands[i]) +
                     ": expected a shared or fragment buffer",
                 "copy it into a shared buffer first");
  }
  if (p.buffer(op.operands[kC].buffer).scope != MemScope::fragment)
    report.error(DiagCode::scope_not_allowed,
                 "c " + operand_text(p, op.operands[kC]) + ": expected a fragment buffer",
                 "accumulate in a fragment and copy it out after the loop");
}

void check_types(const ir::Program& p, const ir::TileOp& op, const Reporter& report) {
  const DType a = p.buffer(op.operands[kA].buffer).type;
  const DType b = p.buffer(op.operands[kB].buffer).type;
  const DType c = p.buffer(op.operands[kC].buffer).type;
  const auto fits = [&](const TypeRow& row) { return row.a == a && row.b == b && row.c == c; };
  if (std::any_of(std::begin(kTypes), std::end(kTypes), fits)) {
    if (op.flag(ir::gemm_attr::tf32) && a != DType::f32)
      report.error(DiagCode::dtype_mismatch,
                   std::string("a tf32 gemm of ") + ir::dtype_name(a) + " x " + ir::dtype_name(b) + " into " +
                       ir::dtype_name(c),
                   "tf32 says how f32 x f32 into f32 is multiplied; leave it out");
    if (op.flag(ir::gemm_attr::promote) && !(ir::is_float(a) && ir::dtype_bits(a) == 8))
      report.error(DiagCode::dtype_mismatch,
                   std::string("a promoting gemm of ") + ir::dtype_name(a) + " x " + ir::dtype_name(b) +
                       " into " + ir::dtype_name(c),
                   "promote says how products of 8-bit floats are summed; leave it out");
    return;
  }
  report.error(
      DiagCode::dtype_mismatch,
      std::string("no gemm of ") + ir::dtype_name(a) + " x " + ir::dtype_name(b) + " into " +
          ir::dtype_name(c),
      "legal: f16 x f16 into f16 or f32, bf16 x bf16 into f32, f32 x f32 into f32, f64 x f64 into f64, "
      "i8 or u8 x i8 or u8 into i32, e4m3 or e5m2 x e4m3 or e5m2 into f32, "
      "e4m3fnuz or e5m2fnuz x e4m3fnuz or e5m2fnuz into f32");
}

void check_shapes(const ir::Program& p, const ir::TileOp& op, const Reporter& report) {
  for (int i : {kA, kB, kC}) {
    if (matched_dims(op.operands[i], 2).size() == 2) continue;
    report.error(DiagCode::rank_mismatch,
                 std::string(ir::op_row(op.kind).operands[i].name) + " " + operand_text(p, op.operands[i]) +
                     " is not a matrix",
                 "pass a region with two dimensions, all others of extent 1");
    return;
  }
  const auto extents = [&](int i) {
    const MatrixDims d = matrix_dims(op.operands[i]);
    return std::pair(op.operands[i].extents[d.rows], op.operands[i].extents[d.cols]);
  };
  auto [m, ka] = extents(kA);
  auto [kb, n] = extents(kB);
  if (op.flag(ir::gemm_attr::transpose_a)) std::swap(m, ka);
  if (op.flag(ir::gemm_attr::transpose_b)) std::swap(kb, n);
  const auto [cm, cn] = extents(kC);
  const auto differ = [&](const char* dim, const char* x, int64_t ex, const char* y, int64_t ey) {
    if (ex == ey) return;
    report.error(DiagCode::shape_mismatch,
                 std::string("a ") + region_text(p, op.operands[kA]) + ", b " +
                     region_text(p, op.operands[kB]) + ", c " + region_text(p, op.operands[kC]) + ": " + dim +
                     " is " + std::to_string(ex) + " in " + x + " and " + std::to_string(ey) + " in " + y,
                 "a is m x k, b is k x n, c is m x n; transpose_a and transpose_b say that a or b is stored "
                 "transposed");
  };
  differ("k", "a", ka, "b", kb);
  differ("m", "a", m, "c", cm);
  differ("n", "b", n, "c", cn);
}

void check(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
           std::vector<Diagnostic>& out) {
  const Reporter report{path, loc, out};
  check_scopes(p, op, report);
  check_types(p, op, report);
  check_shapes(p, op, report);
  check_no_overlap(p, op, report);
}

// ---- access regions ----

std::vector<OperandAccess> accesses(const ir::TileOp& op) {
  return {{kA, ir::Access::read},
          {kB, ir::Access::read},
          {kC, op.flag(ir::gemm_attr::clear) ? ir::Access::write : ir::Access::update,
           "fill it with 0 first, or set clear"}};
}

// ---- layout rule ----

LayoutRule rule(const ir::TileOp&) { return {.form = OpForm::contraction}; }

// ---- lowering ----

void lower(const ir::TileOp& op, LowerSink& sink) {
  sink.contract(kA, kB, kC, op.flag(ir::gemm_attr::clear));
}

// ---- reference meaning ----
//
// k ascends. f16, bf16 and 8-bit float operands: products and sums in f32, starting from the old C, one
// rounding to C's type at the end of the op. f32, f64: products and sums in that type; with tf32 both
// operands are rounded first. i8, u8: products and sums in i32, which wraps.

// T: float, double, or uint32_t for i32.
template <class T>
struct Matrix {
  std::vector<T> values;
  int64_t rows = 0, cols = 0;
};

template <class T>
T value_of(const ir::ScalarValue& v) {
  return std::is_integral_v<T> ? static_cast<T>(v.i) : static_cast<T>(v.f);
}

// Row-major copy of an operand, transposed on the way when asked, so that the inner loop touches plain
// arrays.
template <class T>
Matrix<T> read_matrix(const ir::TileOp& op, int operand, bool transpose, ReferenceSink& sink) {
  const MatrixDims d = matrix_dims(op.operands[operand]);
  const std::span<const int64_t> extents = sink.extents(operand);
  const bool tf32 = op.flag(ir::gemm_attr::tf32);
  Matrix<T> m;
  m.rows = transpose ? extents[d.cols] : extents[d.rows];
  m.cols = transpose ? extents[d.rows] : extents[d.cols];
  m.values.resize(m.rows * m.cols);
  std::vector<int64_t> index(extents.size(), 0);
  for (int64_t r = 0; r < m.rows && !sink.stopped(); ++r) {
    for (int64_t c = 0; c < m.cols; ++c) {
      index[d.rows] = transpose ? c : r;
      index[d.cols] = transpose ? r : c;
      ir::ScalarValue v = sink.read(operand, index);
      if (tf32) v.f = ir::round_to_tf32(v.f);
      m.values[r * m.cols + c] = value_of<T>(v);
    }
  }
  return m;
}

// row += a * B. Sums of a constant number of columns stay in vector registers for all k.
template <class T>
void multiply_add(std::vector<T>& row, const T* a, const Matrix<T>& b) {
  constexpr int64_t kColumns = 16;
  int64_t first = 0;
  for (; first + kColumns <= b.cols; first += kColumns) {
    T sum[kColumns];
    std::copy_n(&row[first], kColumns, sum);
    for (int64_t k = 0; k < b.rows; ++k)
      for (int64_t j = 0; j < kColumns; ++j) sum[j] = sum[j] + a[k] * b.values[k * b.cols + first + j];
    std::copy_n(sum, kColumns, &row[first]);
  }
  for (int64_t j = first; j < b.cols; ++j)
    for (int64_t k = 0; k < b.rows; ++k) row[j] = row[j] + a[k] * b.values[k * b.cols + j];
}

template <class T>
void reference_in(const ir::TileOp& op, ReferenceSink& sink) {
  const Matrix<T> a = read_matrix<T>(op, kA, op.flag(ir::gemm_attr::transpose_a), sink);
  const Matrix<T> b = read_matrix<T>(op, kB, op.flag(ir::gemm_attr::transpose_b), sink);
  const MatrixDims d = matrix_dims(op.operands[kC]);
  const DType type = sink.type(kC);
  const bool clear = op.flag(ir::gemm_attr::clear);
  std::vector<int64_t> index(op.operands[kC].extents.size(), 0);
  std::vector<T> row(b.cols);
  for (int64_t m = 0; m < a.rows && !sink.stopped(); ++m) {
    index[d.rows] = m;
    for (int64_t n = 0; n < b.cols; ++n) {
      index[d.cols] = n;
      row[n] = clear ? T{} : value_of<T>(sink.read(kC, index));
    }
    multiply_add(row, &a.values[m * a.cols], b);
    for (int64_t n = 0; n < b.cols; ++n) {
      index[d.cols] = n;
      if constexpr (std::is_integral_v<T>)
        sink.write(kC, index, {type, static_cast<int32_t>(row[n]), 0});
      else
        sink.write(kC, index, {type, 0, ir::round_to(type, row[n])});
    }
  }
}

void reference(const ir::TileOp& op, ReferenceSink& sink) {
  const DType type = sink.type(kC);
  type == DType::i32   ? reference_in<uint32_t>(op, sink)
  : type == DType::f64 ? reference_in<double>(op, sink)
                       : reference_in<float>(op, sink);
}

}  // namespace

extern const TileOpDef gemm_op;
const TileOpDef gemm_op = {ir::OpKind::gemm, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
