// copy: dst = cast(src), element by element, in row-major order of both. Any scope to any scope, any type to
// any type.
#include "ir/op_kinds.h"
#include "ops/describe.h"
#include "ops/index_space.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::ops {
namespace {

using ir::Region;
enum : int { kSrc, kDst };

// ---- signature check ----

void check(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
           std::vector<Diagnostic>& out) {
  const Reporter report{path, loc, out};
  const Region& src = op.operands[kSrc];
  const Region& dst = op.operands[kDst];
  check_matched(p, src, dst, report);
  check_no_overlap(p, op, report);
}

// ---- access regions ----

std::vector<OperandAccess> accesses(const ir::TileOp&) {
  return {{kSrc, ir::Access::read}, {kDst, ir::Access::write}};
}

// ---- layout rule ----

LayoutRule rule(const ir::TileOp&) { return {.form = OpForm::element, .result = LayoutRule::Result::source}; }

// ---- lowering ----

void lower(const ir::TileOp&, LowerSink& sink) {
  sink.for_each_point(kDst, [&](std::span<const ir::ExprId> point) {
    return sink.exprs().cast(sink.type(kDst), sink.load(kSrc, point));
  });
}

// ---- reference meaning ----

void reference(const ir::TileOp& op, ReferenceSink& sink) {
  const ir::DType type = sink.type(kDst);
  std::vector<int64_t> to(op.operands[kDst].extents.size(), 0);
  for_each_index(sink.extents(kSrc), [&](std::span<const int64_t> from) {
    sink.write(kDst, to, ir::eval_cast(type, sink.read(kSrc, from)));
    next_index(sink.extents(kDst), to);
    return !sink.stopped();
  });
}

}  // namespace

extern const TileOpDef copy_op;
const TileOpDef copy_op = {ir::OpKind::copy, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
