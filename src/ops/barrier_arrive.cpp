// barrier_arrive loaded: threads count as participants of a named barrier, and go on. Done in the order of
// the statements it has nothing to do; what it may be of is checked where phases are counted
// (check/barrier_check.cpp).
#include "ir/op_kinds.h"
#include "ops/op.h"

namespace tilegen::ops {
namespace {

void check(const ir::Program&, const ir::TileOp&, const std::string&, const SourceLocation&,
           std::vector<Diagnostic>&) {}

std::vector<OperandAccess> accesses(const ir::TileOp&) { return {}; }

LayoutRule rule(const ir::TileOp&) { return {}; }

void lower(const ir::TileOp&, LowerSink&) {}

void reference(const ir::TileOp&, ReferenceSink&) {}

}  // namespace

extern const TileOpDef barrier_arrive_op;
const TileOpDef barrier_arrive_op = {ir::OpKind::barrier_arrive, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
