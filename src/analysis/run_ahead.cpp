#include "analysis/run_ahead.h"

#include <algorithm>
#include <set>

#include "analysis/tile_parts.h"
#include "ir/annotations.h"
#include "ir/copy_groups.h"

namespace tilegen::analysis {

namespace {

bool used_outside(const ir::Program& p, const KernelOps& ops, const ir::Block& body, ValueId value) {
  std::set<ir::StmtId> inside;
  ir::for_each_statement(p, body, [&](ir::StmtId s, int) { inside.insert(s); });
  for (const KernelOp& op : ops.ops)
    for (const OpAccess& a : op.accesses)
      if (a.value == value && !inside.count(op.stmt)) return true;
  return std::any_of(ops.scalar_reads.begin(), ops.scalar_reads.end(), [&](const auto& read) {
    return read.second == value && !inside.count(read.first.first);
  });
}

}  // namespace

std::vector<const KernelOp*> ops_inside(const ir::Program& p, const KernelOps& ops, const ir::Loop& loop) {
  std::set<ir::StmtId> inside;
  ir::for_each_statement(p, loop.body, [&](ir::StmtId s, int) { inside.insert(s); });
  std::vector<const KernelOp*> body;
  for (const auto& op : ops.ops)
    if (inside.count(op.stmt)) body.push_back(&op);
  return body;
}

namespace {

bool is_load_to(const ir::Program& p, const KernelOp& op, ir::MemScope scope) {
  const auto* copy = p.as<ir::TileOp>(op.stmt);
  return copy && ops::is_copy(*copy) && p.buffer(copy->operands[0].buffer).scope == ir::MemScope::global &&
         p.buffer(copy->operands[1].buffer).scope == scope;
}

}  // namespace

bool is_tile_load(const ir::Program& p, const KernelOp& op) {
  return is_load_to(p, op, ir::MemScope::shared);
}

bool is_fragment_load(const ir::Program& p, const KernelOp& op) {
  return is_load_to(p, op, ir::MemScope::fragment);
}

const ir::Store* moving_store(const ir::Program& p, const KernelOp& op) {
  const auto* loop = p.as<ir::Loop>(op.stmt);
  const auto* store = loop && loop->body.size() == 1 ? p.as<ir::Store>(loop->body.front()) : nullptr;
  if (loop && ir::is_asynchronous(p.stmt(op.stmt))) store = ir::guarded_copy(p, *loop).store;
  if (!store || store->atomic || p.buffer(store->buffer).scope != ir::MemScope::shared) return nullptr;
  const ir::ExprNode& from = p.exprs[store->value];
  if (from.op != ir::ExprOp::load || p.buffer(from.object).scope != ir::MemScope::global ||
      from.type != p.buffer(store->buffer).type)
    return nullptr;
  const bool reads_own = std::any_of(op.accesses.begin(), op.accesses.end(), [&](const OpAccess& a) {
    return !a.write && a.buffer == store->buffer;
  });
  return reads_own ? nullptr : store;
}

namespace {

// Each element once: dimensions of the tile are those of the loop, in any order.
bool stores_whole_tile(const ir::Program& p, const KernelOp& op, const ir::Store& store) {
  const ops::ElementAccess& to = op.view.accesses.back();
  const std::vector<int64_t> shape = p.tile_shape(store.buffer);
  std::set<int> walked;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (to.offset[d] != 0) return false;
    if (shape[d] == 1 && to.dim_of[d] == ops::kUniformIndex) continue;
    if (to.dim_of[d] < 0 || !walked.insert(to.dim_of[d]).second ||
        op.view.extents[static_cast<size_t>(to.dim_of[d])] != shape[d])
      return false;
  }
  return true;
}

std::string held_back_alone(const ir::Program& p, const KernelOps& ops, LoopDependences& dependences,
                            ir::StmtId loop, const KernelOp& op, const std::vector<OpId>& parts) {
  const auto* copy = p.as<ir::TileOp>(op.stmt);
  const ir::Store* store = copy ? nullptr : moving_store(p, op);
  const ir::BufferId from = copy ? copy->operands[0].buffer : p.exprs[store->value].object;
  const ir::Block& body = p.as<ir::Loop>(loop)->body;
  if (std::find(body.begin(), body.end(), op.stmt) == body.end())
    return "it stands in a branch or loop inside";
  const OpId self = ops.id_of(op);
  const DependenceGraph& graph = dependences.of(loop);
  const std::vector<Dependence> before = graph.to(self), after = graph.from(self);
  bool source = false, place = false;
  for (const Dependence& d : before)
    if (d.kind == DependenceKind::flow) (d.place.tensor == from ? source : place) = true;
  if (source) return "the loop writes its source";
  if (place) return "its place depends on what the loop computes";
  if (!copy && !stores_whole_tile(p, op, *store)) return "it fills only a part of its tile";
  const auto is_part = [&](OpId o) { return std::find(parts.begin(), parts.end(), o) != parts.end(); };
  const auto by_another = [&](const Dependence& d) {
    return d.kind == DependenceKind::output && d.from != d.to && !(is_part(d.from) && is_part(d.to));
  };
  if (std::any_of(before.begin(), before.end(), by_another) ||
      std::any_of(after.begin(), after.end(), by_another))
    return "another operation writes the tile too";
  for (const Dependence& d : before)
    if (d.kind == DependenceKind::anti && d.distance == 0) return "the tile is read before it";
  return used_outside(p, ops, body, op.accesses.back().value) ? "the tile is used outside the loop" : "";
}

}  // namespace

std::string held_back(const ir::Program& p, const KernelOps& ops, LoopDependences& dependences,
                      ir::StmtId loop, const KernelOp& op) {
  const auto* copy = p.as<ir::TileOp>(op.stmt);
  if (!copy || fills_whole_tile(p, *copy)) return held_back_alone(p, ops, dependences, loop, op, {});
  // Parts of a tile run ahead together.
  const ValueId tile = op.accesses.back().value;
  const std::vector<OpId> parts = writers_of(ops, tile);
  std::string refused = fill_refusal(p, ops, tile);
  if (refused.empty())
    for (OpId part : parts)
      if (std::string why = held_back_alone(p, ops, dependences, loop, ops.ops[part], parts); !why.empty())
        return part == ops.id_of(op) ? why : ops.ops[part].path + " fills a part of its tile, and: " + why;
  return refused;
}

}  // namespace tilegen::analysis
