#include "analysis/run_ahead.h"

#include <algorithm>
#include <set>

#include "analysis/loads.h"

namespace tilegen::analysis {

std::vector<const KernelOp*> ops_inside(const ir::Program& p, const KernelOps& ops, const ir::Loop& loop) {
  std::set<ir::StmtId> inside;
  ir::for_each_statement(p, loop.body, [&](ir::StmtId s, int) { inside.insert(s); });
  std::vector<const KernelOp*> body;
  for (const auto& op : ops.ops)
    if (inside.count(op.stmt)) body.push_back(&op);
  return body;
}

bool is_tile_load(const ir::Program& p, const KernelOp& op) {
  const auto* copy = p.as<ir::TileOp>(op.stmt);
  return copy && copy->kind == ir::OpKind::copy &&
         p.buffer(copy->operands[0].buffer).scope == ir::MemScope::global &&
         p.buffer(copy->operands[1].buffer).scope == ir::MemScope::shared;
}

bool fills_whole_tile(const ir::Program& p, const ir::TileOp& copy) {
  const ir::Region& to = copy.operands[1];
  return to.extents == p.tile_shape(to.buffer) &&
         std::all_of(to.offsets.begin(), to.offsets.end(), [&](ir::ExprId e) {
           int64_t offset = 1;
           return p.exprs.is_const_int(e, &offset) && offset == 0;
         });
}

std::string held_back(const ir::Program& p, const KernelOps& ops, const ir::Loop& loop, const KernelOp& op) {
  const auto& copy = *p.as<ir::TileOp>(op.stmt);
  const std::vector<const KernelOp*> body = ops_inside(p, ops, loop);
  std::set<ir::BufferId> written;
  for (const auto* other : body)
    for (const auto& a : other->accesses)
      if (a.write) written.insert(a.buffer);
  if (std::find(loop.body.begin(), loop.body.end(), op.stmt) == loop.body.end())
    return "it stands in a branch or loop inside";
  if (written.count(copy.operands[0].buffer)) return "the loop writes its source";
  for (const ir::Region& r : copy.operands)
    for (ir::ExprId offset : r.offsets)
      if (reads_any(p.exprs, offset, written)) return "its place depends on what the loop computes";
  if (!fills_whole_tile(p, copy)) return "it fills only a part of its tile";
  int value = -1;
  for (const auto& a : op.accesses)
    if (a.write) value = a.value;
  bool behind = false;  // statements behind the copy
  for (const auto* other : body) {
    if (other == &op) {
      behind = true;
      continue;
    }
    for (const auto& a : other->accesses) {
      if (a.value != value) continue;
      if (a.write) return "another operation writes the tile too";
      if (!behind) return "the tile is read in front of it";
    }
  }
  for (const auto& other : ops.ops)
    if (std::find(body.begin(), body.end(), &other) == body.end())
      for (const auto& a : other.accesses)
        if (a.value == value) return "the tile is used outside the loop";
  std::set<ir::StmtId> inside;
  ir::for_each_statement(p, loop.body, [&](ir::StmtId s, int) { inside.insert(s); });
  for (const auto& [where, read] : ops.scalar_reads)
    if (read == value && !inside.count(where.first)) return "the tile is used outside the loop";
  return "";
}

}  // namespace tilegen::analysis
