// cumsum: dst[x] = the sum of src's elements up to x along an axis, x included; with `reverse` from x to the
// axis's end. dst may be src itself.
#include "ir/op_kinds.h"
#include "ops/describe.h"
#include "ops/element_view.h"
#include "ops/index_space.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::ops {
namespace {

using ir::DType;
using ir::Region;
enum : int { kSrc, kDst };

// ---- signature check ----

void check_types(const ir::Program& p, const ir::TileOp& op, const Reporter& report) {
  const Region &from = op.operands[kSrc], &to = op.operands[kDst];
  const DType src = p.buffer(from.buffer).type, dst = p.buffer(to.buffer).type;
  if (ir::is_bool(src))
    report.error(DiagCode::dtype_mismatch, "src " + operand_text(p, from) + ": a bool has no sum",
                 "copy it into an i32 buffer first");
  else if (!accumulates_in(src, dst))
    report.error(DiagCode::dtype_mismatch,
                 "src " + operand_text(p, from) + " cannot be summed into dst " + operand_text(p, to),
                 ir::is_storage_only(src)
                     ? "copy it into an f32 buffer first"
                     : "dst has src's type, or f32 for f16 and bf16, or i32 for i8 and u8");
}

void check(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
           std::vector<Diagnostic>& out) {
  const Reporter report{path, loc, out};
  const Region &src = op.operands[kSrc], &dst = op.operands[kDst];
  for (int i : {kSrc, kDst})
    if (p.buffer(op.operands[i].buffer).scope == ir::MemScope::global)
      report.error(DiagCode::scope_not_allowed,
                   std::string(i == kSrc ? "src " : "dst ") + operand_text(p, op.operands[i]) +
                       ": expected an on-chip buffer",
                   "sum in a fragment and copy from or to global memory");
  check_types(p, op, report);
  const int64_t axis = op.attrs[ir::cumsum_attr::axis];
  if (axis < 0 || axis >= static_cast<int64_t>(src.extents.size()))
    report.error(DiagCode::bad_attribute,
                 "axis " + std::to_string(axis) + " is outside src " + region_text(p, src) + " of " +
                     std::to_string(src.extents.size()) + " dimensions",
                 "axes count from 0");
  if (src.extents != dst.extents)
    report.error(
        DiagCode::shape_mismatch,
        "src " + operand_text(p, src) + " and dst " + operand_text(p, dst) + " have different extents",
        "give both regions the same rank and extents: every element of src has its sum");
  check_no_overlap(p, op, report, true);
}

// ---- access regions ----

std::vector<OperandAccess> accesses(const ir::TileOp&) {
  return {{kSrc, ir::Access::read}, {kDst, ir::Access::write}};
}

// ---- layout rule ----

Scan scan_of(const ir::TileOp& op) {
  return {ir::ReduceKind::sum, static_cast<int>(op.attrs[ir::cumsum_attr::axis]),
          op.flag(ir::cumsum_attr::reverse)};
}

LayoutRule rule(const ir::TileOp& op) { return {.form = OpForm::element, .scan = scan_of(op)}; }

// ---- lowering ----

void lower(const ir::TileOp& op, LowerSink& sink) { sink.scan(kSrc, kDst, scan_of(op)); }

// ---- reference meaning ----
//
// Each element is cast to dst's type; sums are made in that type, one element after the other.

void reference(const ir::TileOp& op, ReferenceSink& sink) {
  const Scan scan = scan_of(op);
  const auto axis = static_cast<size_t>(scan.axis);
  const DType type = sink.type(kDst);
  std::vector<int64_t> outer(sink.extents(kSrc).begin(), sink.extents(kSrc).end());
  const int64_t length = outer[axis];
  outer[axis] = 1;
  std::vector<int64_t> at(outer.size());
  for_each_index(outer, [&](std::span<const int64_t> index) {
    at.assign(index.begin(), index.end());
    ir::ScalarValue sum;
    for (int64_t i = 0; i < length && !sink.stopped(); ++i) {
      at[axis] = scan.reverse ? length - 1 - i : i;
      const ir::ScalarValue element = ir::eval_cast(type, sink.read(kSrc, at));
      sum = i == 0 ? element : ir::eval_binary(ir::ExprOp::add, type, sum, element);
      sink.write(kDst, at, sum);
    }
    return !sink.stopped();
  });
}

}  // namespace

extern const TileOpDef cumsum_op;
const TileOpDef cumsum_op = {ir::OpKind::cumsum, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
