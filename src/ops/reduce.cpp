// reduce: dst = sum, product, max, min, and, or, xor, or the sum or the largest of absolute values
// over one axis of src, in dst's type.
#include "ir/op_kinds.h"
#include "ops/describe.h"
#include "ops/index_space.h"
#include "ops/op.h"
#include "ops/reduction_meaning.h"
#include "support/diag_codes.h"

namespace tilegen::ops {

namespace {

using ir::DType;
using ir::ReduceKind;
enum : int { kSrc, kDst };

ReduceKind reduce_kind(const ir::TileOp& op) {
  return static_cast<ReduceKind>(op.attrs[ir::reduce_attr::kind]);
}

// Dimensions other than the axis keep their order. With src's rank dst has extent 1 at the axis; with one
// less the axis is gone; with any other rank dimensions of extent 1 are left out on both sides.
std::vector<int> dst_dims(const ir::TileOp& op) {
  const std::vector<int64_t>& src = op.operands[0].extents;
  const std::vector<int64_t>& dst = op.operands[1].extents;
  const size_t axis = static_cast<size_t>(op.attrs[ir::reduce_attr::axis]);
  std::vector<int> map(src.size(), -1);
  if (axis >= src.size()) return {};
  if (dst.size() == src.size() || dst.size() + 1 == src.size()) {
    const bool keeps_axis = dst.size() == src.size();
    if (keeps_axis && dst[axis] != 1) return {};
    for (size_t d = 0; d < src.size(); ++d) {
      if (d == axis) continue;
      map[d] = static_cast<int>(keeps_axis || d < axis ? d : d - 1);
      if (dst[map[d]] != src[d]) return {};
    }
    return map;
  }
  size_t next = 0;
  const auto skip_ones = [&] {
    while (next < dst.size() && dst[next] == 1) ++next;
  };
  for (size_t d = 0; d < src.size(); ++d) {
    if (d == axis || src[d] == 1) continue;
    skip_ones();
    if (next == dst.size() || dst[next] != src[d]) return {};
    map[d] = static_cast<int>(next++);
  }
  skip_ones();
  return next == dst.size() ? map : std::vector<int>{};
}

// ---- signature check ----

void check_types(const ir::Program& p, const ir::TileOp& op, const Reporter& report) {
  const DType src = p.buffer(op.operands[kSrc].buffer).type;
  const DType dst = p.buffer(op.operands[kDst].buffer).type;
  const ReduceKind kind = reduce_kind(op);
  const std::string from = "src " + operand_text(p, op.operands[kSrc]) + ": ";
  const bool adds = kind == ReduceKind::sum || kind == ReduceKind::product;
  const bool of_bits =
      kind == ReduceKind::bit_and || kind == ReduceKind::bit_or || kind == ReduceKind::bit_xor;
  const bool absolute = kind == ReduceKind::absmax || kind == ReduceKind::abssum;
  if (adds && ir::is_bool(src))
    report.error(DiagCode::dtype_mismatch,
                 from + "a bool has no " + (kind == ReduceKind::sum ? "sum" : "product"),
                 "copy it into an i32 buffer first, or use max (any) or min (all)");
  if (of_bits && !ir::is_integer(src) && !ir::is_bool(src))
    report.error(DiagCode::dtype_mismatch, from + "and, or and xor are of the bits of integers, or of bools",
                 "compare it with something into a bool tile first");
  if (absolute && !ir::is_float(src) && ir::dtype_kind(src) != ir::DTypeKind::signed_int)
    report.error(
        DiagCode::dtype_mismatch,
        from + (kind == ReduceKind::absmax ? "absmax" : "abssum") + " is of signed or floating elements",
        kind == ReduceKind::absmax ? "use max for unsigned and bool elements"
                                   : "use sum for unsigned elements");
  if (!accumulates_in(src, dst))
    report.error(DiagCode::dtype_mismatch,
                 "src " + operand_text(p, op.operands[kSrc]) + " cannot be reduced into dst " +
                     operand_text(p, op.operands[kDst]),
                 ir::is_storage_only(src)
                     ? "copy it into an f32 buffer first"
                     : "dst has src's type, or f32 for f16 and bf16, or i32 for i8 and u8");
}

void check(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
           std::vector<Diagnostic>& out) {
  const Reporter report{path, loc, out};
  const ir::Region& src = op.operands[kSrc];
  const ir::Region& dst = op.operands[kDst];
  for (int i : {kSrc, kDst})
    if (p.buffer(op.operands[i].buffer).scope == ir::MemScope::global)
      report.error(DiagCode::scope_not_allowed,
                   std::string(i == kSrc ? "src " : "dst ") + operand_text(p, op.operands[i]) +
                       ": expected an on-chip buffer",
                   "reduce in a fragment and copy from or to global memory");
  check_types(p, op, report);
  const int64_t axis = op.attrs[ir::reduce_attr::axis];
  if (axis < 0 || axis >= static_cast<int64_t>(src.extents.size())) {
    report.error(DiagCode::bad_attribute,
                 "axis " + std::to_string(axis) + " is outside src " + region_text(p, src) + " of " +
                     std::to_string(src.extents.size()) + " dimensions",
                 "axes count from 0");
    return;
  }
  if (dst_dims(op).empty())
    report.error(DiagCode::shape_mismatch,
                 "dst " + operand_text(p, dst) + " does not fit src " + operand_text(p, src) +
                     " without axis " + std::to_string(axis),
                 "dst has src's extents without the axis, or with extent 1 there");
  check_no_overlap(p, op, report);
}

// ---- access regions ----

std::vector<OperandAccess> accesses(const ir::TileOp& op) {
  return {{kSrc, ir::Access::read},
          {kDst, op.flag(ir::reduce_attr::accumulate) ? ir::Access::update : ir::Access::write,
           "fill it first, or drop accumulate"}};
}

// ---- layout rule ----

LayoutRule rule(const ir::TileOp& op) {
  return {.form = OpForm::reduction,
          .reduction = Reduction{reduce_kind(op), static_cast<int>(op.attrs[ir::reduce_attr::axis]),
                                 op.flag(ir::reduce_attr::accumulate), dst_dims(op)}};
}

// ---- lowering ----

void lower(const ir::TileOp& op, LowerSink& sink) {
  sink.reduce(kSrc, kDst, reduce_kind(op), static_cast<int>(op.attrs[ir::reduce_attr::axis]),
              op.flag(ir::reduce_attr::accumulate));
}

// ---- reference meaning ----
//
// Each element is cast to dst's type, then combined along ascending axis with the language's own add, max,
// min, abs, multiplication and bit operations, so a NaN is ignored by max, min and absmax and poisons a sum.

void reference(const ir::TileOp& op, ReferenceSink& sink) {
  const std::vector<int> map = dst_dims(op);
  const size_t axis = static_cast<size_t>(op.attrs[ir::reduce_attr::axis]);
  const ReduceKind kind = reduce_kind(op);
  const DType type = sink.type(kDst);
  const bool accumulate = op.flag(ir::reduce_attr::accumulate);
  std::vector<int64_t> outer(sink.extents(kSrc).begin(), sink.extents(kSrc).end());
  const int64_t length = outer[axis];
  outer[axis] = 1;
  std::vector<int64_t> from(outer.size());
  std::vector<int64_t> to(sink.extents(kDst).size(), 0);
  for_each_index(outer, [&](std::span<const int64_t> index) {
    from.assign(index.begin(), index.end());
    for (size_t d = 0; d < map.size(); ++d)
      if (map[d] >= 0) to[map[d]] = index[d];
    ir::ScalarValue acc = reduction_start(kind, type);
    if (accumulate)
      acc = kind == ReduceKind::sum ? sink.read(kDst, to) : combined(kind, type, acc, sink.read(kDst, to));
    for (from[axis] = 0; from[axis] < length && !sink.stopped(); ++from[axis])
      acc = combined(kind, type, acc, ir::eval_cast(type, sink.read(kSrc, from)));
    sink.write(kDst, to, acc);
    return !sink.stopped();
  });
}

}  // namespace

extern const TileOpDef reduce_op;
const TileOpDef reduce_op = {ir::OpKind::reduce, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
