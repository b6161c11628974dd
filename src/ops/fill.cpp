// fill: every element of dst becomes one scalar of dst's type.
#include "ir/op_kinds.h"
#include "ops/describe.h"
#include "ops/index_space.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::ops {
namespace {

enum : int { kDst };

// ---- signature check ----

void check(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
           std::vector<Diagnostic>& out) {
  const ir::Region& dst = op.operands[kDst];
  const ir::DType got = p.exprs.type(op.value);
  const ir::DType expected = p.buffer(dst.buffer).type;
  if (got != expected)
    Reporter{path, loc, out}.error(DiagCode::dtype_mismatch,
                                   "the value is " + std::string(ir::dtype_name(got)) + ", dst " +
                                       operand_text(p, dst) + " needs " + ir::dtype_name(expected),
                                   std::string("cast the value to ") + ir::dtype_name(expected));
}

// ---- access regions ----

std::vector<OperandAccess> accesses(const ir::TileOp&) { return {{kDst, ir::Access::write}}; }

// ---- layout rule ----

LayoutRule rule(const ir::TileOp&) { return {.form = OpForm::element, .result = LayoutRule::Result::scalar}; }

// ---- lowering ----

void lower(const ir::TileOp&, LowerSink& sink) {
  const ir::ExprId value = sink.value();
  sink.for_each_point(kDst, [&](std::span<const ir::ExprId>) { return value; });
}

// ---- reference meaning ----

void reference(const ir::TileOp&, ReferenceSink& sink) {
  const ir::ScalarValue value = sink.value();
  for_each_index(sink.extents(kDst), [&](std::span<const int64_t> index) {
    sink.write(kDst, index, value);
    return !sink.stopped();
  });
}

}  // namespace

extern const TileOpDef fill_op;
const TileOpDef fill_op = {ir::OpKind::fill, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
