// gemm_sparse: gemm of an A that is given by two values of each four neighbours along k, and their places.
#include <algorithm>
#include <vector>

#include "ir/compress.h"
#include "ir/op_kinds.h"
#include "ops/describe.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::ops {
namespace {

using ir::kSparseGroup;
using ir::kSparseKept;
using ir::Region;
enum : int { kA, kB, kC, kMeta };

static_assert(ir::gemm_sparse_attr::transpose_a == static_cast<int>(ir::gemm_attr::transpose_a) &&
                  ir::gemm_sparse_attr::transpose_b == static_cast<int>(ir::gemm_attr::transpose_b) &&
                  ir::gemm_sparse_attr::policy == static_cast<int>(ir::gemm_attr::policy) &&
                  ir::gemm_sparse_attr::clear == static_cast<int>(ir::gemm_attr::clear),
              "attributes stand where gemm has them");

// Dimensions of A's region along m and k.
struct ValueDims {
  int m = 0, k = 0;
};
ValueDims value_dims(const ir::TileOp& op) {
  const std::vector<int> dims = matched_dims(op.operands[kA], 2);
  return op.flag(ir::gemm_sparse_attr::transpose_a) ? ValueDims{dims[1], dims[0]}
                                                    : ValueDims{dims[0], dims[1]};
}

// The gemm of the expanded A.
ir::TileOp expanded(const ir::TileOp& op) {
  ir::TileOp dense;
  dense.kind = ir::OpKind::gemm;
  dense.operands.assign(op.operands.begin(), op.operands.begin() + kMeta);
  dense.attrs = op.attrs;
  dense.operands[kA].extents[static_cast<size_t>(value_dims(op).k)] *= kSparseGroup / kSparseKept;
  return dense;
}

// ---- signature check ----

bool check_operands(const ir::Program& p, const ir::TileOp& op, const Reporter& report) {
  bool on_chip = true;
  for (int i : {kA, kMeta}) {
    const Region& r = op.operands[static_cast<size_t>(i)];
    const ir::MemScope scope = p.buffer(r.buffer).scope;
    if (scope == ir::MemScope::shared || scope == ir::MemScope::fragment) continue;
    on_chip = false;
    report.error(
        DiagCode::scope_not_allowed,
        std::string(i == kA ? "a " : "meta ") + operand_text(p, r) + ": expected a shared or fragment buffer",
        "copy it into a shared buffer first");
  }
  const Region& meta = op.operands[kMeta];
  const ir::Buffer& b = p.buffer(meta.buffer);
  if (ir::is_sparse_word(b.type)) return on_chip;
  report.error(DiagCode::dtype_mismatch,
               "meta " + operand_text(p, meta) + " is " + ir::dtype_name(b.type) +
                   ", expected words of u8, u16 or u32",
               "compress writes them; two bits of each word tell the place of one value");
  return false;
}

bool check_shapes(const ir::Program& p, const ir::TileOp& op, const Reporter& report) {
  for (int i : {kA, kB, kC, kMeta}) {
    if (matched_dims(op.operands[static_cast<size_t>(i)], 2).size() == 2) continue;
    report.error(DiagCode::rank_mismatch,
                 std::string(ir::op_row(op.kind).operands[static_cast<size_t>(i)].name) + " " +
                     operand_text(p, op.operands[static_cast<size_t>(i)]) + " is not a matrix",
                 "pass a region with two dimensions, all others of extent 1");
    return false;
  }
  const auto extent = [&](int operand, bool second) {
    const Region& r = op.operands[static_cast<size_t>(operand)];
    return r.extents[static_cast<size_t>(matched_dims(r, 2)[second ? 1 : 0])];
  };
  const bool transpose_a = op.flag(ir::gemm_sparse_attr::transpose_a),
             transpose_b = op.flag(ir::gemm_sparse_attr::transpose_b);
  const int64_t m = extent(kA, transpose_a), kept = extent(kA, !transpose_a);
  const int64_t k = extent(kB, transpose_b), n = extent(kB, !transpose_b);
  const int64_t bits = ir::dtype_bits(p.buffer(op.operands[kMeta].buffer).type);
  std::string wrong;
  const auto differ = [&](const std::string& what, int64_t got, const std::string& of, int64_t expected) {
    if (wrong.empty() && got != expected)
      wrong = what + " is " + std::to_string(got) + ", " + of + " " + std::to_string(expected);
  };
  const int64_t words = k / bits;
  differ("k in a, two values of each four,", kept * kSparseGroup / kSparseKept, "in b", k);
  if (wrong.empty() && (kept % kSparseKept != 0 || k % bits != 0))
    wrong = "k is " + std::to_string(k) + ", no multiple of the " + std::to_string(bits) +
            " that a word of meta tells of";
  differ("m in meta", extent(kMeta, false), "in a", m);
  differ("words of meta along k", extent(kMeta, true), "expected", words);
  differ("m in c", extent(kC, false), "in a", m);
  differ("n in c", extent(kC, true), "in b", n);
  if (wrong.empty()) return true;
  report.error(
      DiagCode::shape_mismatch,
      "a " + region_text(p, op.operands[kA]) + ", b " + region_text(p, op.operands[kB]) + ", c " +
          region_text(p, op.operands[kC]) + ", meta " + region_text(p, op.operands[kMeta]) + ": " + wrong,
      "a is m x k / 2, b is k x n, c is m x n, meta is m x k / w in words of w bits; transpose_a and "
      "transpose_b say that a or b is stored transposed");
  return false;
}

void check(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
           std::vector<Diagnostic>& out) {
  const Reporter report{path, loc, out};
  if (!check_operands(p, op, report) || !check_shapes(p, op, report)) return;
  op_def(ir::OpKind::gemm).check(p, expanded(op), path, loc, out);
}

// ---- access regions ----

std::vector<OperandAccess> accesses(const ir::TileOp& op) {
  return {{kA, ir::Access::read},
          {kB, ir::Access::read},
          {kC, op.flag(ir::gemm_sparse_attr::clear) ? ir::Access::write : ir::Access::update,
           "fill it with 0 first, or set clear"},
          {kMeta, ir::Access::read}};
}

// ---- layout rule ----

LayoutRule rule(const ir::TileOp&) { return {.form = OpForm::contraction}; }

// ---- lowering ----

// Planning has put a gemm in its place (schedule/form/decode_sparse.h), or chosen an instruction that reads
// the places.
void lower(const ir::TileOp& op, LowerSink& sink) {
  sink.contract(kA, kB, kC, op.flag(ir::gemm_sparse_attr::clear));
}

// ---- reference meaning ----

// Operands of the gemm of the expanded A.
class ExpandedSink final : public ReferenceSink {
 public:
  ExpandedSink(const ir::TileOp& op, ReferenceSink& sink)
      : sink_(sink),
        dims_(value_dims(op)),
        meta_dims_(matched_dims(op.operands[kMeta], 2)),
        bits_(ir::dtype_bits(sink.type(kMeta))),
        extents_(sink.extents(kA).begin(), sink.extents(kA).end()),
        meta_at_(sink.extents(kMeta).size(), 0) {
    extents_[static_cast<size_t>(dims_.k)] *= kSparseGroup / kSparseKept;
  }

  ir::ScalarValue read(int operand, std::span<const int64_t> index) override {
    if (operand != kA) return sink_.read(operand, index);
    const int64_t k = index[static_cast<size_t>(dims_.k)], at = k % kSparseGroup;
    meta_at_[static_cast<size_t>(meta_dims_[0])] = index[static_cast<size_t>(dims_.m)];
    meta_at_[static_cast<size_t>(meta_dims_[1])] = k / bits_;
    const ir::SparsePlaces places = ir::sparse_places(sink_.read(kMeta, meta_at_).i, k % bits_);
    if (places.first != at && places.second != at) return {sink_.type(kA), 0, 0};
    value_at_.assign(index.begin(), index.end());
    value_at_[static_cast<size_t>(dims_.k)] =
        k / kSparseGroup * kSparseKept + static_cast<int64_t>(places.second == at);
    return sink_.read(kA, value_at_);
  }
  void write(int operand, std::span<const int64_t> index, ir::ScalarValue value) override {
    sink_.write(operand, index, value);
  }
  std::span<const int64_t> extents(int operand) const override {
    return operand == kA ? std::span<const int64_t>(extents_) : sink_.extents(operand);
  }
  ir::DType type(int operand) const override { return sink_.type(operand); }
  ir::ScalarValue value() override { return sink_.value(); }
  bool stopped() const override { return sink_.stopped(); }

 private:
  ReferenceSink& sink_;
  const ValueDims dims_;
  const std::vector<int> meta_dims_;
  const int64_t bits_;
  std::vector<int64_t> extents_, meta_at_, value_at_;
};

void reference(const ir::TileOp& op, ReferenceSink& sink) {
  ExpandedSink dense(op, sink);
  op_def(ir::OpKind::gemm).reference(expanded(op), dense);
}

}  // namespace

extern const TileOpDef gemm_sparse_op;
const TileOpDef gemm_sparse_op = {ir::OpKind::gemm_sparse, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
