// atomic: dst = kind(dst, src), element by element, on a tensor; of exchange src itself. Other threads and
// blocks may do the same to the same elements at once; the order is open.
#include "ir/op_kinds.h"
#include "ops/describe.h"
#include "ops/index_space.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::ops {
namespace {

using ir::Region;
enum : int { kSrc, kDst };

ir::AtomicKind kind_of(const ir::TileOp& op) {
  return static_cast<ir::AtomicKind>(op.attrs[ir::atomic_attr::kind]);
}

// ---- signature check ----

void check(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
           std::vector<Diagnostic>& out) {
  const Reporter report{path, loc, out};
  const Region &src = op.operands[kSrc], &dst = op.operands[kDst];
  const ir::DType from = p.buffer(src.buffer).type, to = p.buffer(dst.buffer).type;
  const std::string word(ir::atomic_text(kind_of(op)));
  if (p.buffer(dst.buffer).scope != ir::MemScope::global)
    report.error(DiagCode::scope_not_allowed, "dst " + operand_text(p, dst) + ": expected a tensor",
                 "threads of one block combine values with reduce, or in a parallel loop");
  if (!ir::takes_atomic(kind_of(op), to))
    report.error(DiagCode::dtype_mismatch,
                 "dst " + operand_text(p, dst) + ": there is no " + word + " of its type",
                 kind_of(op) < ir::AtomicKind::bit_and ? "use an integer, or a float of 16 bits or more"
                                                       : "bits are combined in tensors of integers");
  if (from != to)
    report.error(DiagCode::dtype_mismatch,
                 "src " + operand_text(p, src) + " and dst " + operand_text(p, dst) + " have different types",
                 "copy src into a buffer of dst's type first");
  check_matched(p, src, dst, report);
  check_no_overlap(p, op, report);
}

// ---- access regions ----

std::vector<OperandAccess> accesses(const ir::TileOp&) {
  return {{kSrc, ir::Access::read}, {kDst, ir::Access::update}};
}

// ---- layout rule ----

LayoutRule rule(const ir::TileOp& op) { return {.form = OpForm::element, .atomic = kind_of(op)}; }

// ---- lowering ----

void lower(const ir::TileOp& op, LowerSink& sink) {
  sink.update_each_point(kDst, kind_of(op),
                         [&](std::span<const ir::ExprId> point) { return sink.load(kSrc, point); });
}

// ---- reference meaning ----

void reference(const ir::TileOp& op, ReferenceSink& sink) {
  std::vector<int64_t> to(op.operands[kDst].extents.size(), 0);
  for_each_index(sink.extents(kSrc), [&](std::span<const int64_t> from) {
    sink.write(kDst, to, ir::eval_atomic(kind_of(op), sink.read(kDst, to), sink.read(kSrc, from)));
    next_index(sink.extents(kDst), to);
    return !sink.stopped();
  });
}

}  // namespace

extern const TileOpDef atomic_op;
const TileOpDef atomic_op = {ir::OpKind::atomic, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
