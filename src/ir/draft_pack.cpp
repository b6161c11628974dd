#include "ir/draft_pack.h"

#include <utility>

#include "ir/store_parts.h"

namespace tilegen::ir {
namespace {

class Packing : public ExprRewriter {
 public:
  Packing(const ExprPool& from, Program& p, std::vector<Var>& vars, std::vector<VarId>& moved,
          const std::vector<BufferId>& buffers)
      : ExprRewriter(from, p.exprs), p_(p), vars_(vars), moved_(moved), buffers_(buffers) {}

  void move(ExprId& e) {
    if (e.valid()) e = rewrite(e);
  }
  void move(std::vector<ExprId>& list) {
    for (ExprId& e : list) move(e);
  }
  void move(BufferId& b) const {
    if (b.valid()) b = buffers_[b.value];
  }

 protected:
  // What is used where its loop is not, which checks tell, is kept.
  ExprId rewrite_var(const ExprNode& n) override {
    VarId& v = moved_[n.var().value];
    if (!v.valid()) {
      v = VarId(p_.vars.size());
      p_.vars.push_back(vars_[n.var().value]);
    }
    return to_->var(v, n.type);
  }
  ExprId rewrite_load(const ExprNode& n, std::span<const ExprId> indices) override {
    return to_->load(buffers_[n.object.value], n.type, indices);
  }

 private:
  Program& p_;
  std::vector<Var>& vars_;  // as they were
  std::vector<VarId>& moved_;
  const std::vector<BufferId>& buffers_;  // where each is afterwards
};

// Where each variable is afterwards; the program's list is then the shorter one.
std::vector<VarId> move_variables(Program& p) {
  std::vector<bool> declared(p.vars.size(), false);
  const auto declare = [&](const std::vector<VarId>& vars) {
    for (VarId v : vars) declared[v.value] = true;
  };
  for (const Param& param : p.params)
    if (param.var.valid()) declared[param.var.value] = true;
  for (const Kernel& k : p.kernels) declare(k.block_vars);
  for (const Stmt& s : p.stmts)
    if (const auto* loop = std::get_if<Loop>(&s.node)) declare(loop->vars);
  std::vector<VarId> moved(p.vars.size());
  std::vector<Var> kept;
  for (size_t v = 0; v < p.vars.size(); ++v) {
    if (!declared[v]) continue;
    moved[v] = VarId(kept.size());
    kept.push_back(p.vars[v]);
  }
  p.vars = std::move(kept);
  return moved;
}

// Where each buffer is afterwards.
std::vector<BufferId> move_buffers(Program& p, const std::map<BufferId, TileView>& views) {
  std::vector<BufferId> moved(p.buffers.size());
  std::vector<Buffer> kept;
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    if (views.contains(BufferId(b))) continue;
    moved[b] = BufferId(kept.size());
    kept.push_back(std::move(p.buffers[b]));
  }
  p.buffers = std::move(kept);
  return moved;
}

}  // namespace

void pack_program(Program& p, const std::map<BufferId, TileView>& views) {
  std::vector<Var> vars = p.vars;
  std::vector<VarId> moved = move_variables(p);
  const auto move_all = [&](std::vector<VarId>& vars) {
    for (VarId& v : vars) v = moved[v.value];
  };
  const ExprPool old = std::exchange(p.exprs, ExprPool());
  const std::vector<BufferId> buffers = move_buffers(p, views);
  Packing packing(old, p, vars, moved, buffers);
  for (Param& param : p.params) {
    if (param.var.valid()) param.var = moved[param.var.value];
    packing.move(param.buffer);
  }
  for (Buffer& b : p.buffers) packing.move(b.shape), packing.move(b.strides);
  for (Kernel& k : p.kernels) move_all(k.block_vars), packing.move(k.grid);
  for (Stmt& s : p.stmts) {
    if (auto* loop = std::get_if<Loop>(&s.node)) {
      move_all(loop->vars);
      packing.move(loop->begin), packing.move(loop->extents), packing.move(loop->condition);
    } else if (auto* branch = std::get_if<Branch>(&s.node)) {
      packing.move(branch->condition);
    } else if (auto* store = std::get_if<Store>(&s.node)) {
      visit_exprs(*store, [&](ExprId& e) { packing.move(e); });
      packing.move(store->buffer);
      if (store->old) packing.move(store->old->buffer);
    } else if (auto* op = std::get_if<TileOp>(&s.node)) {
      for (Region& region : op->operands) packing.move(region.offsets), packing.move(region.buffer);
      packing.move(op->value);
    }
  }
}

void order_statements(Program& p) {
  std::vector<StmtId> moved(p.stmts.size());
  std::vector<Stmt> stmts;
  for (const Kernel& k : p.kernels)
    for_each_statement(p, k.body, [&](StmtId s, int) {
      moved[s.value] = StmtId(stmts.size());
      stmts.push_back(p.stmts[s.value]);
    });
  const auto move = [&](Block& block) {
    for (StmtId& s : block) s = moved[s.value];
  };
  for (Kernel& k : p.kernels) move(k.body);
  for (Stmt& s : stmts) {
    if (auto* loop = std::get_if<Loop>(&s.node)) move(loop->body);
    if (auto* branch = std::get_if<Branch>(&s.node)) move(branch->then_body), move(branch->else_body);
  }
  p.stmts = std::move(stmts);
}

}  // namespace tilegen::ir
