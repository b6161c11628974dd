// wait_group n: all groups of asynchronous copies but the newest n are done. Elements have their values at
// once where copies are done in order, and nothing is to do.
#include "ir/copy_groups.h"
#include "ir/op_kinds.h"
#include "ops/describe.h"
#include "ops/ordering_op.h"
#include "support/diag_codes.h"

namespace tilegen::ops {
namespace {

void check(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
           std::vector<Diagnostic>& out) {
  int64_t pending = -1;
  if (p.exprs.type(op.value) == ir::DType::i64 && p.exprs.is_const_int(op.value, &pending) && pending >= 0 &&
      pending <= ir::kMaxPendingGroups)
    return;
  Reporter{path, loc, out}.error(
      DiagCode::bad_attribute,
      "wait_group takes the number of groups that may still be under way, a constant from 0 to " +
          std::to_string(ir::kMaxPendingGroups) + ", found " +
          (p.exprs.is_const_int(op.value) ? std::to_string(pending) : std::string("another expression")),
      "write wait_group 0 to await all copies, wait_group 1 to let the newest group go on");
}

}  // namespace

extern const TileOpDef wait_group_op;
const TileOpDef wait_group_op = ordering_op(ir::OpKind::wait_group, check);

}  // namespace tilegen::ops
