#include "ops/scan_rule.h"

#include "ops/index_space.h"
#include "ops/reduction_meaning.h"
#include "support/diag_codes.h"

namespace tilegen::ops {

namespace {

using ir::DType;
using ir::ReduceKind;
using ir::Region;
enum : int { kSrc, kDst };

void check_types(const ir::Program& p, const ir::TileOp& op, const Scan& scan, const Reporter& report) {
  const Region &from = op.operands[kSrc], &to = op.operands[kDst];
  const DType src = p.buffer(from.buffer).type, dst = p.buffer(to.buffer).type;
  const bool adds = scan.kind == ReduceKind::sum;
  if (ir::is_bool(src))
    report.error(DiagCode::dtype_mismatch,
                 "src " + operand_text(p, from) + (adds ? ": a bool has no sum" : ": bools are not scanned"),
                 "copy it into an i32 buffer first");
  else if (!accumulates_in(src, dst))
    report.error(DiagCode::dtype_mismatch,
                 "src " + operand_text(p, from) + " cannot be " + (adds ? "summed" : "scanned") +
                     " into dst " + operand_text(p, to),
                 ir::is_storage_only(src)
                     ? "copy it into an f32 buffer first"
                     : "dst has src's type, or f32 for f16 and bf16, or i32 for i8 and u8");
}

}  // namespace

void check_scan(const ir::Program& p, const ir::TileOp& op, const Scan& scan, const Reporter& report) {
  const Region &src = op.operands[kSrc], &dst = op.operands[kDst];
  for (int i : {kSrc, kDst})
    if (p.buffer(op.operands[i].buffer).scope == ir::MemScope::global)
      report.error(DiagCode::scope_not_allowed,
                   std::string(i == kSrc ? "src " : "dst ") + operand_text(p, op.operands[i]) +
                       ": expected an on-chip buffer",
                   std::string(scan.kind == ReduceKind::sum ? "sum" : "scan") +
                       " in a fragment and copy from or to global memory");
  check_types(p, op, scan, report);
  if (scan.axis < 0 || scan.axis >= static_cast<int>(src.extents.size()))
    report.error(DiagCode::bad_attribute,
                 "axis " + std::to_string(scan.axis) + " is outside src " + region_text(p, src) + " of " +
                     std::to_string(src.extents.size()) + " dimensions",
                 "axes count from 0");
  if (src.extents != dst.extents)
    report.error(
        DiagCode::shape_mismatch,
        "src " + operand_text(p, src) + " and dst " + operand_text(p, dst) + " have different extents",
        std::string("give both regions the same rank and extents: every element of src has its ") +
            (scan.kind == ReduceKind::sum ? "sum" : "result"));
  check_no_overlap(p, op, report, true);
}

void scan_reference(const Scan& scan, ReferenceSink& sink) {
  const auto axis = static_cast<size_t>(scan.axis);
  const DType type = sink.type(kDst);
  std::vector<int64_t> outer(sink.extents(kSrc).begin(), sink.extents(kSrc).end());
  const int64_t length = outer[axis];
  outer[axis] = 1;
  std::vector<int64_t> at(outer.size());
  for_each_index(outer, [&](std::span<const int64_t> index) {
    at.assign(index.begin(), index.end());
    ir::ScalarValue total = reduction_start(scan.kind, type);
    for (int64_t i = 0; i < length && !sink.stopped(); ++i) {
      at[axis] = scan.reverse ? length - 1 - i : i;
      const ir::ScalarValue element = ir::eval_cast(type, sink.read(kSrc, at));
      if (scan.exclusive) sink.write(kDst, at, total);
      // The first sum is the element itself, be it -0.
      const bool first = i == 0 && !scan.exclusive && scan.kind == ReduceKind::sum;
      total = first ? element : combined(scan.kind, type, total, element);
      if (!scan.exclusive) sink.write(kDst, at, total);
    }
    return !sink.stopped();
  });
}

}  // namespace tilegen::ops
