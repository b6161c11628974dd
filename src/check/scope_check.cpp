// Where things may stand: statements inside parallel loops and outside, variables under their loops, buffers
// in their kernel, writes to read-only tensors.
#include <algorithm>

#include "check/context.h"
#include "check/expr_walk.h"
#include "ir/loop_limits.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::check {
namespace {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::LoopKind;
using ir::MemScope;
using ir::StmtId;
using ir::VarKind;

class ScopeCheck {
 public:
  explicit ScopeCheck(CheckContext& ctx)
      : ctx_(ctx), p_(ctx.program), walk_(ctx.program), live_(ctx.program.vars.size(), false) {}

  void run() {
    for (size_t v = 0; v < p_.vars.size(); ++v)
      live_[v] = p_.vars[v].kind == VarKind::dim || p_.vars[v].kind == VarKind::scalar;
    for (kernel_ = 0; kernel_ < static_cast<int>(p_.kernels.size()); ++kernel_) {
      const ir::Kernel& k = p_.kernels[kernel_];
      for (ir::VarId v : k.block_vars) live_[v.value] = true;
      check_block(k.body);
      for (ir::VarId v : k.block_vars) live_[v.value] = false;
    }
  }

 private:
  void check_block(const ir::Block& block) {
    for (StmtId id : block) check_statement(id);
  }
  void check_statement(StmtId id);
  void check_loop(StmtId id, const ir::Loop& loop);
  void check_loop_form(StmtId id, const ir::Loop& loop);
  void check_parallel_form(StmtId id, const ir::Loop& loop);
  void check_store(StmtId id, const ir::Store& store);
  void check_expressions(StmtId id);
  bool check_owner(StmtId id, ir::BufferId buffer);
  void check_written(StmtId id, ir::BufferId buffer);

  CheckContext& ctx_;
  const ir::Program& p_;
  ExprWalk walk_;
  std::vector<bool> live_;  // by VarId
  int kernel_ = 0;
  int parallel_depth_ = 0;
  int pipelined_depth_ = 0;
  int64_t unrolled_ = 1;
};

void ScopeCheck::check_statement(StmtId id) {
  if (ctx_.stop()) return;
  check_expressions(id);
  if (const auto* loop = p_.as<ir::Loop>(id)) {
    check_loop(id, *loop);
  } else if (const auto* branch = p_.as<ir::Branch>(id)) {
    check_block(branch->then_body);
    check_block(branch->else_body);
  } else if (const auto* store = p_.as<ir::Store>(id)) {
    check_store(id, *store);
  } else if (const auto* op = p_.as<ir::TileOp>(id)) {
    const ir::OpRow& row = ir::op_row(op->kind);
    if (parallel_depth_ > 0)
      ctx_.error(DiagCode::misplaced_statement, id, std::string(row.text) + " stands inside a parallel loop",
                 "move it out of the loop; a parallel loop holds no tile operations");
    for (size_t i = 0; i < std::min(row.operands.size(), op->operands.size()); ++i) {
      const bool owned = check_owner(id, op->operands[i].buffer);
      if (owned && row.operands[i].access != ir::Access::read) check_written(id, op->operands[i].buffer);
    }
  }
}

void ScopeCheck::check_loop(StmtId id, const ir::Loop& loop) {
  if (parallel_depth_ > 0)
    ctx_.error(DiagCode::misplaced_statement, id,
               std::string("a ") + ir::loop_kind_name(loop.kind) + " loop stands inside a parallel loop",
               "move it out of the loop; a parallel loop holds serial and unrolled loops only");
  check_loop_form(id, loop);
  const int64_t unrolled_outside = unrolled_;
  int64_t extent = 0;
  if ((loop.kind == LoopKind::unroll || loop.kind == LoopKind::vectorized) && loop.extents.size() == 1 &&
      p_.exprs.is_const_int(loop.extents[0], &extent)) {
    unrolled_ = checked_mul(unrolled_, std::max<int64_t>(extent, 1)).value_or(INT64_MAX);
    if (unrolled_ > ctx_.limits.unroll && unrolled_outside <= ctx_.limits.unroll)
      ctx_.error(DiagCode::limit_unroll, id,
                 "nested unrolled loops make " + std::to_string(unrolled_) + " copies, the limit is " +
                     std::to_string(ctx_.limits.unroll),
                 "make an outer loop serial");
  }
  const bool parallel = loop.kind == LoopKind::parallel;
  for (ir::VarId v : loop.vars) live_[v.value] = true;
  parallel_depth_ += parallel;
  pipelined_depth_ += loop.kind == LoopKind::pipelined;
  check_block(loop.body);
  pipelined_depth_ -= loop.kind == LoopKind::pipelined;
  parallel_depth_ -= parallel;
  for (ir::VarId v : loop.vars) live_[v.value] = false;
  unrolled_ = unrolled_outside;
}

void ScopeCheck::check_loop_form(StmtId id, const ir::Loop& loop) {
  const std::string kind = ir::loop_kind_name(loop.kind);
  if (loop.num_stages < 0 || loop.num_stages > ir::kMaxStages ||
      (loop.num_stages > 0 && loop.kind != LoopKind::pipelined))
    ctx_.error(DiagCode::bad_attribute, id,
               "a " + kind + " loop with " + std::to_string(loop.num_stages) + " stages",
               "stages belong to pipelined loops and are 0 (the planner chooses) or 1 to " +
                   std::to_string(ir::kMaxStages));
  if (loop.condition.valid() && loop.kind != LoopKind::serial)
    ctx_.error(DiagCode::misplaced_statement, id, "a " + kind + " loop has a condition",
               "make it serial, or put an if into it");
  if (loop.kind == LoopKind::parallel) {
    check_parallel_form(id, loop);
    return;
  }
  if (loop.vars.size() != 1 || loop.extents.size() != 1) {
    ctx_.error(DiagCode::rank_mismatch, id,
               "a " + kind + " loop has " + std::to_string(loop.vars.size()) + " variables and " +
                   std::to_string(loop.extents.size()) + " extents, expected one of each",
               "nest loops, or use a parallel loop");
    return;
  }
  if ((loop.kind == LoopKind::unroll || loop.kind == LoopKind::vectorized) &&
      !p_.exprs.is_const_int(loop.extents[0]))
    ctx_.error(DiagCode::bad_shape, id, "the extent of a loop of kind " + kind + " is not a constant",
               "use a serial loop");
}

void ScopeCheck::check_parallel_form(StmtId id, const ir::Loop& loop) {
  const int64_t rank = static_cast<int64_t>(loop.vars.size());
  if (rank < 1 || rank > ctx_.limits.rank || loop.extents.size() != loop.vars.size()) {
    ctx_.error(DiagCode::rank_mismatch, id,
               "a parallel loop has " + std::to_string(rank) + " variables and " +
                   std::to_string(loop.extents.size()) + " extents, expected 1 to " +
                   std::to_string(ctx_.limits.rank) + " of each",
               "merge variables and split the index with // and %");
    return;
  }
  int64_t begin = -1;
  if (!p_.exprs.is_const_int(loop.begin, &begin) || begin != 0)
    ctx_.error(DiagCode::bad_shape, id, "a parallel loop starts at another value than 0",
               "start at 0 and add the offset to the indices");
  int64_t product = 1;
  for (size_t d = 0; d < loop.extents.size(); ++d) {
    int64_t extent = 0;
    const std::string& name = p_.var(loop.vars[d]).name;
    if (!p_.exprs.is_const_int(loop.extents[d], &extent) || extent < 1) {
      ctx_.error(DiagCode::bad_shape, id, "the extent of " + name + " is not a positive constant",
                 "parallel loops have constant extents of at least 1; guard the rest with an if");
      return;
    }
    product = checked_mul(product, extent).value_or(INT64_MAX);
  }
  if (product > ctx_.limits.tile_elements)
    ctx_.error(DiagCode::bad_shape, id,
               "the parallel loop has more iterations than the limit of " +
                   std::to_string(ctx_.limits.tile_elements),
               "spread the work over blocks");
}

void ScopeCheck::check_store(StmtId id, const ir::Store& store) {
  if (!check_owner(id, store.buffer)) return;
  check_written(id, store.buffer);
  const ir::Buffer& b = p_.buffer(store.buffer);
  const bool shared = b.scope == MemScope::global || b.scope == MemScope::shared;
  if (store.atomic && (!shared || parallel_depth_ == 0))
    ctx_.error(DiagCode::misplaced_statement, id,
               std::string(ir::atomic_text(*store.atomic)) + " of " + b.name + " (" +
                   ir::scope_name(b.scope) +
                   "): expected an element of a tensor or of a shared tile, inside a parallel loop",
               shared ? "put it into a parallel loop, if only of one point"
                      : "combine in a shared tile or a tensor, or with reduce");
  if (store.order != ir::AtomicOrder::relaxed && pipelined_depth_ > 0)
    ctx_.error(DiagCode::misplaced_statement, id,
               std::string(ir::atomic_text(*store.atomic)) + " of " + b.name + " with order " +
                   std::string(ir::order_text(store.order)) +
                   " stands in a pipelined loop, whose iterations overlap",
               "make the loop serial, or put it behind the loop");
  if (store.old && check_owner(id, store.old->buffer) &&
      p_.buffer(store.old->buffer).scope != MemScope::shared)
    ctx_.error(DiagCode::scope_not_allowed, id,
               "the old value goes to " + p_.buffer(store.old->buffer).name + " (" +
                   ir::scope_name(p_.buffer(store.old->buffer).scope) + "), expected a shared tile",
               "name it with let, and store that");
  if (parallel_depth_ == 0 && (b.scope == MemScope::shared || b.scope == MemScope::fragment))
    ctx_.error(DiagCode::misplaced_statement, id,
               "a store to " + b.name + " (" + ir::scope_name(b.scope) + ") stands outside a parallel loop",
               "put it into a parallel loop, or use fill or copy");
}

bool ScopeCheck::check_owner(StmtId id, ir::BufferId buffer) {
  const ir::Buffer& b = p_.buffer(buffer);
  if (b.scope == MemScope::global || b.kernel == kernel_) return true;
  ctx_.error(
      DiagCode::out_of_scope, id,
      b.name + " belongs to kernel " + p_.kernels[b.kernel].name + ", not to " + p_.kernels[kernel_].name,
      "allocate a buffer in this kernel, or pass the data through a global tensor");
  return false;
}

void ScopeCheck::check_written(StmtId id, ir::BufferId buffer) {
  const ir::Buffer& b = p_.buffer(buffer);
  const std::string mark = b.constant ? "constant" : "readonly";
  if (b.read_only)
    ctx_.error(DiagCode::write_to_input, id, "tensor " + b.name + " is " + mark + " and written here",
               "declare it without " + mark + ", or write another tensor");
}

// Outside parallel loops an expression has one value per block; an element of a fragment lives in one thread
// only.
void ScopeCheck::check_expressions(StmtId id) {
  walk_.start();
  for_each_root(p_, id, [&](ExprId root) {
    walk_.visit(root, [&](ExprId, const ExprNode& n) {
      if (n.op == ExprOp::var && !live_[n.var().value])
        ctx_.error(DiagCode::out_of_scope, id,
                   "variable " + p_.var(n.var()).name + " is used outside its loop or kernel",
                   "use it inside the loop that defines it");
      if (n.op != ExprOp::load || !check_owner(id, n.object)) return;
      const ir::Buffer& b = p_.buffer(n.object);
      if (parallel_depth_ == 0 && b.scope == MemScope::fragment)
        ctx_.error(DiagCode::scope_not_allowed, id,
                   "an element of " + b.name + " (fragment) is read outside a parallel loop",
                   "copy it into a shared buffer and read that, or read it inside a parallel loop");
    });
  });
}

}  // namespace

void check_scopes(CheckContext& ctx) { ScopeCheck(ctx).run(); }

}  // namespace tilegen::check
