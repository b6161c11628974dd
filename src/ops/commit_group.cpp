// commit_group: the asynchronous copies of each thread since the last one are a group. Elements have their
// values at once where copies are done in order, and nothing is to do.
#include "ir/op_kinds.h"
#include "ops/ordering_op.h"

namespace tilegen::ops {

extern const TileOpDef commit_group_op;
const TileOpDef commit_group_op = ordering_op(ir::OpKind::commit_group);

}  // namespace tilegen::ops
