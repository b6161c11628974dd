// gemm: C = A * B (+ C) on tiles: A and B in shared memory or fragments, C in a fragment.
#include <algorithm>
#include <iterator>

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
    {DType::f16, DType::f16, DType::f16},   {DType::f16, DType::f16, DType::f32},
    {DType::bf16, DType::bf16, DType::f32}, {DType::f32, DType::f32, DType::f32},
    {DType::f64, DType::f64, DType::f64},   {DType::i8, DType::i8, DType::i32},
    {DType::i8, DType::u8, DType::i32},     {DType::u8, DType::i8, DType::i32},
    {DType::u8, DType::u8, DType::i32},     {DType::e4m3, DType::e4m3, DType::f32},
    {DType::e4m3, DType::e5m2, DType::f32}, {DType::e5m2, DType::e4m3, DType::f32},
    {DType::e5m2, DType::e5m2, DType::f32},
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
                   "promote says how products of e4m3 and e5m2 are summed; leave it out");
    return;
  }
  report.error(
      DiagCode::dtype_mismatch,
      std::string("no gemm of ") + ir::dtype_name(a) + " x " + ir::dtype_name(b) + " into " +
          ir::dtype_name(c),
      "legal: f16 x f16 into f16 or f32, bf16 x bf16 into f32, f32 x f32 into f32, f64 x f64 into f64, "
      "i8 or u8 x i8 or u8 into i32, e4m3 or e5m2 x e4m3 or e5m2 into f32");
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
// k ascends. f16, bf16, e4m3 and e5m2 operands: products and sums in f32, starting from the old C, one
// rounding to C's type at the end of the op. f32, f64: products and sums in that type; with tf32 both
// operands are rounded first. i8, u8: products and sums in i32, which wraps.

struct Matrix {
  std::vector<double> f;
  std::vector<int64_t> i;
  int64_t rows = 0, cols = 0;
};

// Row-major copy of an operand, transposed on the way when asked, so that the inner loop touches plain
// arrays.
Matrix read_matrix(const ir::TileOp& op, int operand, bool transpose, ReferenceSink& sink) {
  const MatrixDims d = matrix_dims(op.operands[operand]);
  const std::span<const int64_t> extents = sink.extents(operand);
  const bool tf32 = op.flag(ir::gemm_attr::tf32);
  Matrix m;
  m.rows = transpose ? extents[d.cols] : extents[d.rows];
  m.cols = transpose ? extents[d.rows] : extents[d.cols];
  m.f.resize(m.rows * m.cols);
  m.i.resize(m.rows * m.cols);
  std::vector<int64_t> index(extents.size(), 0);
  for (int64_t r = 0; r < m.rows && !sink.stopped(); ++r) {
    for (int64_t c = 0; c < m.cols; ++c) {
      index[d.rows] = transpose ? c : r;
      index[d.cols] = transpose ? r : c;
      const ir::ScalarValue v = sink.read(operand, index);
      m.f[r * m.cols + c] = tf32 ? ir::round_to_tf32(v.f) : v.f;
      m.i[r * m.cols + c] = v.i;
    }
  }
  return m;
}

// row += a * b[.], in Real; the casts are what keeps every step in the accumulator's type.
template <class Real>
void multiply_add(double* row, double a, const double* b, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    const Real product = static_cast<Real>(a) * static_cast<Real>(b[j]);
    row[j] = static_cast<Real>(row[j]) + product;
  }
}

void multiply_add(int64_t* row, int64_t a, const int64_t* b, int64_t n) {
  for (int64_t j = 0; j < n; ++j)
    row[j] = static_cast<int32_t>(static_cast<uint32_t>(row[j]) + static_cast<uint32_t>(a * b[j]));
}

void reference(const ir::TileOp& op, ReferenceSink& sink) {
  const Matrix a = read_matrix(op, kA, op.flag(ir::gemm_attr::transpose_a), sink);
  const Matrix b = read_matrix(op, kB, op.flag(ir::gemm_attr::transpose_b), sink);
  const MatrixDims d = matrix_dims(op.operands[kC]);
  const DType type = sink.type(kC);
  const bool clear = op.flag(ir::gemm_attr::clear);
  std::vector<int64_t> index(op.operands[kC].extents.size(), 0);
  std::vector<double> row_f(b.cols);
  std::vector<int64_t> row_i(b.cols);
  for (int64_t m = 0; m < a.rows && !sink.stopped(); ++m) {
    index[d.rows] = m;
    for (int64_t n = 0; n < b.cols; ++n) {
      index[d.cols] = n;
      const ir::ScalarValue old = clear ? ir::ScalarValue{} : sink.read(kC, index);
      row_f[n] = old.f;
      row_i[n] = old.i;
    }
    for (int64_t k = 0; k < a.cols; ++k) {
      if (type == DType::i32)
        multiply_add(row_i.data(), a.i[m * a.cols + k], &b.i[k * b.cols], b.cols);
      else if (type == DType::f64)
        multiply_add<double>(row_f.data(), a.f[m * a.cols + k], &b.f[k * b.cols], b.cols);
      else
        multiply_add<float>(row_f.data(), a.f[m * a.cols + k], &b.f[k * b.cols], b.cols);
    }
    for (int64_t n = 0; n < b.cols; ++n) {
      index[d.cols] = n;
      const double f = ir::is_float(type) ? ir::round_to(type, row_f[n]) : 0;
      sink.write(kC, index, {type, row_i[n], f});
    }
  }
}

}  // namespace

extern const TileOpDef gemm_op;
const TileOpDef gemm_op = {ir::OpKind::gemm, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
