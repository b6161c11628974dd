// cumsum: dst[x] = the sum of src's elements up to x along an axis, x included; with `reverse` from x to the
// axis's end. dst may be src itself.
#include "ir/op_kinds.h"
#include "ops/op.h"
#include "ops/scan_rule.h"

namespace tilegen::ops {
namespace {

enum : int { kSrc, kDst };

Scan scan_of(const ir::TileOp& op) {
  return {ir::ReduceKind::sum, static_cast<int>(op.attrs[ir::cumsum_attr::axis]),
          op.flag(ir::cumsum_attr::reverse)};
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

extern const TileOpDef cumsum_op;
const TileOpDef cumsum_op = {ir::OpKind::cumsum, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
