// mbarrier_wait full[s], parity: threads go on when the phase of that parity has all its arrivals. In the
// order of the statements it is complete, and nothing is to do.
#include "ir/op_kinds.h"
#include "ops/describe.h"
#include "ops/ordering_op.h"
#include "support/diag_codes.h"

namespace tilegen::ops {
namespace {

void check(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
           std::vector<Diagnostic>& out) {
  if (p.exprs.type(op.value) == ir::DType::i64) return;
  Reporter{path, loc, out}.error(DiagCode::dtype_mismatch,
                                 std::string("mbarrier_wait waits for a parity of type ") +
                                     ir::dtype_name(p.exprs.type(op.value)) + ", expected i64",
                                 "write the parity of the phase as an index, k // slots % 2");
}

}  // namespace

extern const TileOpDef mbarrier_wait_op;
const TileOpDef mbarrier_wait_op = ordering_op(ir::OpKind::mbarrier_wait, check);

}  // namespace tilegen::ops
