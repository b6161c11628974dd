// commit_group: the asynchronous copies of each thread since the last one are a group. Elements have their
// values at once where copies are done in order, and nothing is to do.
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

extern const TileOpDef commit_group_op;
const TileOpDef commit_group_op = {ir::OpKind::commit_group, check, accesses, rule, lower, reference};

}  // namespace tilegen::ops
