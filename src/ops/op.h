// A tile operation's behaviour: one TileOpDef per row of ir/ops.def, one file each, in this order: signature check,
// access regions, layout rule, lowering, reference meaning. Layout rules and lowering are written against the abstract
// sinks declared in ops/layout_rule.h and ops/lower_sink.h, the reference meaning against ops/reference_sink.h.
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"
#include "ops/layout_rule.h"
#include "ops/lower_sink.h"
#include "ops/reference_sink.h"
#include "support/diagnostic.h"

namespace tilegen::ops {

// A region an op touches, with how.
struct OperandAccess {
  int operand = 0;
  ir::Access access = ir::Access::read;
};

struct TileOpDef {
  ir::OpKind kind;
  // Shapes, dtypes, scopes and attributes of one op; appends what is wrong.
  void (*check)(const ir::Program& p, const ir::TileOp& op, const std::string& path, const SourceLocation& loc,
                std::vector<Diagnostic>& out);
  // What is read and written; an `update` operand whose old value is dropped (gemm clear, reduce without accumulate)
  // reports write.
  std::vector<OperandAccess> (*accesses)(const ir::TileOp& op);
  void (*layout_rule)(const ir::TileOp& op, LayoutRuleSink& sink);
  void (*lower)(const ir::TileOp& op, LowerSink& sink);
  void (*reference)(const ir::TileOp& op, ReferenceSink& sink);
};

const TileOpDef& op_def(ir::OpKind kind);

// The dimensions of a region that matter when shapes are matched: those of extent > 1, or all when ranks agree.
std::vector<int> matched_dims(const ir::Region& r, size_t rank);

}  // namespace tilegen::ops
