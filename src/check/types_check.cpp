// Types and ranks at the leaves of expressions and in statements, then each tile op by its own rules.
// Operators need no look: an ExprPool makes none whose operands do not fit.
#include "check/context.h"
#include "check/expr_walk.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::check {
namespace {

using ir::DType;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::StmtId;

class TypeCheck {
 public:
  explicit TypeCheck(CheckContext& ctx)
      : ctx_(ctx), p_(ctx.program), walk_(ctx.program), judged_(ctx.program.exprs.size(), false) {}

  void run() {
    for (const ir::Kernel& k : p_.kernels)
      ir::for_each_statement(p_, k.body, [&](StmtId id, int) { check_statement(id); });
  }

 private:
  void check_statement(StmtId id);
  void check_node(StmtId id, ExprId e, const ExprNode& n);
  void check_load(StmtId id, ExprId e, const ExprNode& n);
  void check_access(StmtId id, ir::BufferId buffer, std::span<const ExprId> indices);
  void expect(StmtId id, ExprId e, DType type, const std::string& what);

  CheckContext& ctx_;
  const ir::Program& p_;
  ExprWalk walk_;
  std::vector<bool> judged_;  // by ExprId: shared nodes are reported where they are met first
};

void TypeCheck::check_statement(StmtId id) {
  if (ctx_.stop()) return;
  walk_.start();
  for_each_root(p_, id, [&](ExprId root) {
    walk_.visit(root, [&](ExprId e, const ExprNode& n) {
      if (judged_[e.value]) return;
      judged_[e.value] = true;
      check_node(id, e, n);
    });
  });
  if (const auto* loop = p_.as<ir::Loop>(id)) {
    expect(id, loop->begin, DType::i64, "the first value of the loop");
    for (ExprId e : loop->extents) expect(id, e, DType::i64, "the extent of the loop");
    if (loop->condition.valid()) expect(id, loop->condition, DType::boolean, "the condition of the loop");
  } else if (const auto* branch = p_.as<ir::Branch>(id)) {
    expect(id, branch->condition, DType::boolean, "the condition");
  } else if (const auto* store = p_.as<ir::Store>(id)) {
    check_access(id, store->buffer, store->indices);
    const ir::Buffer& b = p_.buffer(store->buffer);
    expect(id, store->value, b.type, "the value stored to " + b.name);
    if (store->atomic && !ir::takes_atomic(*store->atomic, b.type))
      ctx_.error(DiagCode::dtype_mismatch, id,
                 b.name + " is " + ir::dtype_name(b.type) + ", of which there is no " +
                     std::string(ir::atomic_text(*store->atomic)),
                 *store->atomic < ir::AtomicKind::bit_and ? "use an integer, or a float of 16 bits or more"
                                                          : "use a tensor of integers");
    if (store->expected.valid()) expect(id, store->expected, b.type, "the value expected in " + b.name);
    if (store->old) {
      check_access(id, store->old->buffer, store->old->indices);
      const ir::Buffer& old = p_.buffer(store->old->buffer);
      if (old.type != b.type)
        ctx_.error(DiagCode::dtype_mismatch, id,
                   old.name + " is " + ir::dtype_name(old.type) + " and gets old values of " + b.name +
                       ", which is " + ir::dtype_name(b.type),
                   "name the old value with let and cast it");
    }
  } else if (const auto* op = p_.as<ir::TileOp>(id)) {
    const size_t before = ctx_.out.size();
    const std::string& path = ctx_.paths[id.value];
    const SourceLocation& loc = p_.stmt(id).location;
    if (ops::check_signature(p_, *op, path, loc, ctx_.out)) {
      for (const ir::Region& r : op->operands)
        for (ExprId e : r.offsets) expect(id, e, DType::i64, "an offset into " + p_.buffer(r.buffer).name);
      ops::op_def(op->kind).check(p_, *op, path, loc, ctx_.out);
    }
    if (ctx_.out.size() != before) ctx_.broken[id.value] = true;
  }
}

void TypeCheck::expect(StmtId id, ExprId e, DType type, const std::string& what) {
  const DType got = e.valid() ? p_.exprs.type(e) : DType::none;
  if (got == type) return;
  ctx_.error(
      DiagCode::dtype_mismatch, id,
      what + " is " + (e.valid() ? ir::dtype_name(got) : "missing") + ", expected " + ir::dtype_name(type),
      std::string("cast it to ") + ir::dtype_name(type));
}

void TypeCheck::check_access(StmtId id, ir::BufferId buffer, std::span<const ExprId> indices) {
  const ir::Buffer& b = p_.buffer(buffer);
  if (indices.size() != b.shape.size())
    ctx_.error(DiagCode::rank_mismatch, id,
               b.name + " has " + std::to_string(b.shape.size()) + " dimensions and is indexed with " +
                   std::to_string(indices.size()),
               "give one index per dimension");
  for (ExprId e : indices) expect(id, e, DType::i64, "an index of " + b.name);
}

void TypeCheck::check_node(StmtId id, ExprId e, const ExprNode& n) {
  if (n.op == ExprOp::load) {
    check_load(id, e, n);
  } else if (n.op == ExprOp::var) {
    const ir::Var& v = p_.var(n.var());
    if (v.type != n.type)
      ctx_.error(
          DiagCode::dtype_mismatch, id,
          "variable " + v.name + " is " + ir::dtype_name(v.type) + " and used as " + ir::dtype_name(n.type),
          std::string("cast it to ") + ir::dtype_name(n.type));
  }
}

void TypeCheck::check_load(StmtId id, ExprId e, const ExprNode& n) {
  check_access(id, n.object, p_.exprs.indices(e));
  const ir::Buffer& b = p_.buffer(n.object);
  if (b.type != n.type)
    ctx_.error(DiagCode::dtype_mismatch, id,
               "an element of " + b.name + " is " + ir::dtype_name(b.type) + " and used as " +
                   ir::dtype_name(n.type),
               std::string("cast it to ") + ir::dtype_name(n.type));
}

}  // namespace

void check_types(CheckContext& ctx) { TypeCheck(ctx).run(); }

}  // namespace tilegen::check
