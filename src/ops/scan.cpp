// scan: dst[x] = the sum, product, largest or smallest of src's elements up to x along an axis; with
// `reverse` from x to the axis's end, with `exclusive` without x. dst may be src itself.
#include "ir/op_kinds.h"
#include "ops/op.h"
#include "ops/scan_rule.h"

namespace tilegen::ops {
namespace {

enum : int { kSrc, kDst };

Scan scan_of(const ir::TileOp& op) {
  static constexpr ir::ReduceKind kKinds[] = {ir::ReduceKind::sum, ir::ReduceKind::max, ir::ReduceKind::min,
                                              ir::ReduceKind::product};
  return {kKinds[op.attrs[ir::scan_attr::kind]], static_cast<int>(op.attrs[ir::scan_attr::axis]),
          op.flag(ir::scan_attr::reverse), op.flag(ir::scan_attr::exclusive)};
}

void check(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
           std::vector<Diagnostic>& out) {
  check_scan(p, op, scan_of(op), Reporter{path, loc, out});
}

std::vector<OperandAccess> accesses(const ir::TileOp&) {
  return {{kSrc, ir::Access::read}, {kDst, ir::Access::write}};
}

LayoutRule rule(const ir::TileOp& op) { return {.form = OpForm::element, .scan = scan_of(op)}; }

void lower(const ir::TileOp& op, LowerSink& sink) { sink.scan(kSrc, kDst, scan_of(op)); }

void reference(const ir::TileOp& op, ReferenceSink& sink) { scan_reference(scan_of(op), sink); }

}  // namespace

extern const TileOpDef scan_op;
const TileOpDef scan_op = {ir::OpKind::scan, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
