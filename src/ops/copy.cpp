// copy: dst = cast(src), element by element. Any scope to any scope, any type to any type.
#include "ir/op_kinds.h"
#include "ops/describe.h"
#include "ops/index_space.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::ops {
namespace {

using ir::Region;
enum : int { kSrc, kDst };

std::vector<int64_t> pick(std::span<const int64_t> extents, const std::vector<int>& dims) {
  std::vector<int64_t> picked;
  for (int d : dims) picked.push_back(extents[d]);
  return picked;
}

// ---- signature check ----

void check(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
           std::vector<Diagnostic>& out) {
  const Reporter report{path, loc, out};
  const Region& src = op.operands[kSrc];
  const Region& dst = op.operands[kDst];
  const MatchedPair dims = matched_pair(src, dst);
  if (pick(src.extents, dims.a) != pick(dst.extents, dims.b))
    report.error(
        DiagCode::shape_mismatch,
        "src " + operand_text(p, src) + " and dst " + operand_text(p, dst) + " have different extents",
        "give both regions the same extents; dimensions of extent 1 may be left out when the ranks differ");
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
  const MatchedPair dims = matched_pair(op.operands[kSrc], op.operands[kDst]);
  std::vector<int64_t> from(op.operands[kSrc].extents.size(), 0);
  std::vector<int64_t> to(op.operands[kDst].extents.size(), 0);
  const ir::DType type = sink.type(kDst);
  for_each_index(pick(sink.extents(kSrc), dims.a), [&](std::span<const int64_t> index) {
    for (size_t i = 0; i < index.size(); ++i) from[dims.a[i]] = to[dims.b[i]] = index[i];
    sink.write(kDst, to, ir::eval_cast(type, sink.read(kSrc, from)));
    return !sink.stopped();
  });
}

}  // namespace

extern const TileOpDef copy_op;
const TileOpDef copy_op = {ir::OpKind::copy, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
