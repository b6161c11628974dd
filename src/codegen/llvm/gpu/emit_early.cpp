// What is emitted before the statements that use it.
//
// Block indices come from divisions by dims, which cost dozens of instructions. Each is emitted once: at the
// top of the kernel, or of the loop over tiles of a persistent one. A place of a tile that memory tells (a
// table of pages) is asked for before the wait for the tile's slot: the answer comes beside that.
#include <algorithm>

#include "analysis/loads.h"
#include "codegen/llvm/gpu/gpu_emitter.h"

namespace tilegen::codegen {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using namespace thread;

// `known` says of each expression whether it depends on the launch and the loops around alone.
void GpuEmitter::collect_divisions(ExprId e, std::set<ExprId>& divisions,
                                   std::unordered_map<ExprId, bool>& known) {
  if (!e.valid() || known.contains(e)) return;
  const ExprNode n = exprs_[e];
  bool early = n.op != ExprOp::load;
  if (n.op == ExprOp::var) early = stands(n.var());
  if (n.op == ExprOp::load)
    for (size_t i = 0; i < exprs_.indices(e).size(); ++i)
      collect_divisions(exprs_.indices(e)[i], divisions, known);
  for (ExprId operand : {n.a, n.b, n.c}) {
    collect_divisions(operand, divisions, known);
    early = early && (!operand.valid() || known[operand]);
  }
  known[e] = early;
  const bool division = n.op == ExprOp::floordiv || n.op == ExprOp::floormod;
  if (early && division && n.type == ir::DType::i64 && !exprs_.is_const(n.b)) divisions.insert(e);
}

void GpuEmitter::collect_early(const Block& body, std::set<ExprId>& divisions) {
  std::unordered_map<ExprId, bool> known;
  auto index = [&](ExprId e) {
    const arith::Affine form = facts_.affine(e);
    for (const auto& [atom, coefficient] : form.terms) collect_divisions(atom, divisions, known);
  };
  auto predicate = [&](ExprId e) {
    if (e.valid()) collect_divisions(facts_.simplified(e), divisions, known);
  };
  for (StmtId id : body) {
    const StmtNode& node = program_.stmts[id.value].node;
    if (auto* loop = std::get_if<Loop>(&node)) {
      if (!stepped(*loop)) collect_divisions(loop->extent, divisions, known);
    } else if (auto* branch = std::get_if<Branch>(&node)) {
      collect_divisions(branch->condition, divisions, known);
    } else if (auto* store = std::get_if<Store>(&node)) {
      index(store->index);
      predicate(store->predicate);
    } else if (auto* copy = std::get_if<AsyncCopy>(&node)) {
      index(copy->src_index);
      predicate(copy->predicate);
    } else if (auto* load = std::get_if<TensorLoad>(&node)) {
      for (ExprId e : load->coordinates) collect_divisions(e, divisions, known);
    } else if (auto* box = std::get_if<TensorStore>(&node)) {
      for (ExprId e : box->coordinates) collect_divisions(e, divisions, known);
    }
    for (const Block* inner : blocks_inside(node)) collect_early(*inner, divisions);
  }
}

// The variable has its value here, and for all of the body that begins here.
bool GpuEmitter::stands(ir::VarId v) const {
  if (program_.vars[v.value].kind != ir::VarKind::loop) return bound_[v.value].value != nullptr;
  return std::any_of(loops_.begin(), loops_.end(), [&](const OpenLoop& l) { return l.var == v; });
}

// Those that the loop's own variable changes stay where they are emitted; the others leave the loop.
void GpuEmitter::emit_early_loads(const Loop& loop, const RegisterFile::Memories& changed) {
  std::set<ir::ObjectId> moving;
  for (uint32_t m : changed) moving.insert(MemoryId(m));
  const auto emit = [&](ExprId e, const ExprNode& n) {
    const auto indices = exprs_.indices(e);
    const bool may_change = analysis::any_load(exprs_, e, [&](ExprId, const ExprNode& inner) {
      return !program_.memory(inner.object).read_only && !registers_.owns(inner.object);
    });
    if (may_change || early_loads_.count(e) > 0 || registers_.owns(n.object)) return;
    if (!facts_.depends_on(e, loop.var)) return void(value(e));
    const ExprId index = indices[0];
    const Condition c = condition(indices.size() > 1 ? indices[1] : ExprId());
    if (!c.never) early_loads_[e] = load_wide(n.object, place(n.object, index), 1, c, LoadKind::early)[0];
  };
  for (StmtId id : loop.body) {
    const auto* tile = std::get_if<TensorLoad>(&program_.stmts[id.value].node);
    if (!tile) continue;
    for (ExprId coordinate : tile->coordinates) {
      if (analysis::reads_any(exprs_, coordinate, moving)) continue;
      analysis::any_load(exprs_, coordinate, [&](ExprId e, const ExprNode& n) {
        in_statement([&] { emit(e, n); });
        return false;
      });
    }
  }
}

void GpuEmitter::emit_early_divisions(const Block& body) {
  std::set<ExprId> divisions;
  collect_early(body, divisions);
  for (ExprId e : divisions) value(e);
}

}  // namespace tilegen::codegen
