// barrier_arrive loaded: threads count as participants of a named barrier, and go on. Done in the order of
// the statements it has nothing to do; what it may be of is checked where phases are counted
// (check/barrier_check.cpp).
#include "ir/op_kinds.h"
#include "ops/ordering_op.h"

namespace tilegen::ops {

extern const TileOpDef barrier_arrive_op;
const TileOpDef barrier_arrive_op = ordering_op(ir::OpKind::barrier_arrive);

}  // namespace tilegen::ops
