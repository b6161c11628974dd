// barrier_sync loaded: threads meet the other participants of a named barrier. In the order of the statements
// these have come, and nothing is to do.
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

extern const TileOpDef barrier_sync_op;
const TileOpDef barrier_sync_op = {ir::OpKind::barrier_sync, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
