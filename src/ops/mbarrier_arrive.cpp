// mbarrier_arrive full[s]: threads arrive at a transaction barrier. Done in the order of the statements it
// has nothing to do; what it may be of is checked where phases are counted (check/barrier_check.cpp).
#include "ir/op_kinds.h"
#include "ops/ordering_op.h"

namespace tilegen::ops {

extern const TileOpDef mbarrier_arrive_op;
const TileOpDef mbarrier_arrive_op = ordering_op(ir::OpKind::mbarrier_arrive);

}  // namespace tilegen::ops
