// A tile operation's behaviour: one TileOpDef per row of ir/ops.def, one file each, in this order: signature
// check, access regions, layout rule, lowering, reference meaning. Lowering is written against
// ops/lower_sink.h, the reference meaning against ops/reference_sink.h.
#pragma once

#include <optional>
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
  // For the user who has the old value read before anything wrote it.
  const char* way_out = "fill it or copy into it first";
};

struct TileOpDef {
  ir::OpKind kind;
  // Shapes, dtypes, scopes and attributes of one op; appends what is wrong.
  void (*check)(const ir::Program& p, const ir::TileOp& op, const std::string& path,
                const SourceLocation& loc, std::vector<Diagnostic>& out);
  // What is read and written; an `update` operand whose old value is dropped (gemm clear, reduce without
  // accumulate) reports write.
  std::vector<OperandAccess> (*accesses)(const ir::TileOp& op);
  LayoutRule (*layout_rule)(const ir::TileOp& op);
  void (*lower)(const ir::TileOp& op, LowerSink& sink);
  void (*reference)(const ir::TileOp& op, ReferenceSink& sink);
};

const TileOpDef& op_def(ir::OpKind kind);

inline LayoutRule layout_rule(const ir::TileOp& op) { return op_def(op.kind).layout_rule(op); }
// dst = src, element by element, but for the type: what engines that move data can do.
inline bool is_copy(const ir::TileOp& op) { return layout_rule(op).result == LayoutRule::Result::source; }
// The same, or elements of a tensor are combined with src's.
inline bool is_transfer(const ir::TileOp& op) { return is_copy(op) || layout_rule(op).atomic; }
// Every element of dst gets the op's value.
inline bool is_fill(const ir::TileOp& op) { return layout_rule(op).result == LayoutRule::Result::scalar; }

// What the row of ops.def itself demands: number of operands, attribute ranges, presence of a value, regions
// of their buffer's rank with positive extents. False when something is wrong; TileOpDef::check may run only
// when true.
bool check_signature(const ir::Program& p, const ir::TileOp& op, const std::string& path,
                     const SourceLocation& loc, std::vector<Diagnostic>& out);

// Elements of `src` may be combined in `dst`: their own type, f32 for f16 and bf16, i32 for i8 and u8.
bool accumulates_in(ir::DType src, ir::DType dst);

// The dimensions of a region that matter when shapes are matched against `rank` dimensions: dimensions of
// extent 1 are left out, first ones first, until `rank` are left. Longer than `rank` when more extents are
// above 1.
std::vector<int> matched_dims(const ir::Region& r, size_t rank);

// Dimensions of two regions that correspond: one of each or, where their numbers differ, one of a side and
// the neighbouring ones of the other whose product it is, the last of these fastest. So elements correspond
// in row-major order.
struct DimGroup {
  std::vector<int> a, b;
};
// All dimensions when the extents are the same, else those of extent > 1, of which one region then has fewer
// unless the ranks differ; nothing where they do not correspond.
std::optional<std::vector<DimGroup>> matched_groups(const ir::Region& a, const ir::Region& b);

}  // namespace tilegen::ops
