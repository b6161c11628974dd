// barrier_sync loaded: threads meet the other participants of a named barrier. In the order of the statements
// these have come, and nothing is to do.
#include "ir/op_kinds.h"
#include "ops/ordering_op.h"

namespace tilegen::ops {

extern const TileOpDef barrier_sync_op;
const TileOpDef barrier_sync_op = ordering_op(ir::OpKind::barrier_sync);

}  // namespace tilegen::ops
