// Optional tensors are accessed where their presence is known to hold.
//
//   if present(bias) { copy bias -> row }                     known in the body
//   acc[i] = acc[i] + select(present(bias), bias[i], 0.0f32)  known on that side of a select, or of an `and`
//
// A condition tells the presence of a tensor when it cannot be true without it, the other side of an `if` or
// a select when the condition cannot be false without it. One sweep over the expressions finds what each of
// them tells, and which tensors it accesses that nothing inside of it guards: linear in the program for every
// 64 optional tensors. Lowering relies on nothing of this: an access that is executed before its condition is
// asked has the presence in its predicate.
#include <algorithm>
#include <bit>

#include "check/context.h"
#include "check/expr_walk.h"
#include "support/diag_codes.h"

namespace tilegen::check {

namespace {

using ir::BufferId;
using ir::ExprId;
using ir::ExprOp;
using ir::StmtId;
using Tensors = uint64_t;  // a bit for each of up to 64 optional tensors
constexpr size_t kTogether = 64;

class PresenceCheck {
 public:
  PresenceCheck(CheckContext& ctx, std::span<const BufferId> tensors)
      : ctx_(ctx), p_(ctx.program), tensors_(tensors), bits_(p_.buffers.size()) {
    for (size_t i = 0; i < tensors.size(); ++i) bits_[tensors[i].value] = Tensors{1} << i;
    presences_.resize(p_.vars.size());
    for (const ir::Param& param : p_.params)
      if (p_.is_presence(param)) presences_[param.var.value] = bits_[param.buffer.value];
    sweep();
  }

  void run() {
    for (const ir::Kernel& k : p_.kernels) block(k.body, 0);
  }

 private:
  struct Facts {
    Tensors if_true = 0, if_false = 0;  // there, whenever the expression is so
    Tensors needed = 0;                 // accessed, and guarded by nothing inside
  };

  void sweep() {
    facts_.resize(p_.exprs.size());
    for (size_t i = 0; i < p_.exprs.size(); ++i) {
      const ir::ExprNode& n = p_.exprs[ExprId(i)];
      Facts& f = facts_[i];
      const auto of = [&](ExprId e) { return e.valid() ? facts_[e.value] : Facts(); };
      const Facts a = of(n.a), b = of(n.b), c = of(n.c);
      f.needed = a.needed | b.needed | c.needed;
      if (n.op == ExprOp::var) {
        f.if_true = presences_[n.var().value];
      } else if (n.op == ExprOp::load) {
        f.needed = bits_[n.object.value];
        for (ExprId index : p_.exprs.indices(ExprId(i))) f.needed |= of(index).needed;
      } else if (n.op == ExprOp::logical_not) {
        f.if_true = a.if_false;
        f.if_false = a.if_true;
      } else if (n.op == ExprOp::logical_and) {
        f.if_true = a.if_true | b.if_true;
        f.if_false = a.if_false & b.if_false;
        f.needed = (a.needed & ~b.if_true) | (b.needed & ~a.if_true);
      } else if (n.op == ExprOp::logical_or) {
        f.if_true = a.if_true & b.if_true;
        f.if_false = a.if_false | b.if_false;
        f.needed = (a.needed & ~b.if_false) | (b.needed & ~a.if_false);
      } else if (n.op == ExprOp::select) {
        f.needed = a.needed | (b.needed & ~a.if_true) | (c.needed & ~a.if_false);
      } else if (n.op == ExprOp::native_call) {
        for (ExprId argument : p_.exprs.native_parts(ExprId(i)).args) f.needed |= of(argument).needed;
      }
    }
  }

  void block(const ir::Block& statements, Tensors there) {
    for (StmtId id : statements) {
      if (ctx_.stop()) return;
      statement(id, there);
      if (const auto* loop = p_.as<ir::Loop>(id)) {
        block(loop->body, loop->condition.valid() ? there | facts_[loop->condition.value].if_true : there);
      } else if (const auto* branch = p_.as<ir::Branch>(id)) {
        const Facts& f = facts_[branch->condition.value];
        block(branch->then_body, there | f.if_true);
        block(branch->else_body, there | f.if_false);
      }
    }
  }

  void statement(StmtId id, Tensors there) {
    Tensors needed = 0;
    for_each_root(p_, id, [&](ExprId e) {
      if (e.valid()) needed |= facts_[e.value].needed;
    });
    if (const auto* store = p_.as<ir::Store>(id)) needed |= bits_[store->buffer.value];
    if (const auto* op = p_.as<ir::TileOp>(id))
      for (const ir::Region& r : op->operands) needed |= bits_[r.buffer.value];
    needed &= ~there;
    if (needed == 0 || ctx_.broken[id.value]) return;
    const std::string& name = p_.buffer(tensors_[static_cast<size_t>(std::countr_zero(needed))]).name;
    ctx_.error(DiagCode::unguarded_access, id,
               "tensor '" + name + "' is optional and accessed where nothing says that the launch passes it",
               "put it into 'if present(" + name + ") { ... }', or into that side of a select");
  }

  CheckContext& ctx_;
  const ir::Program& p_;
  std::span<const BufferId> tensors_;
  std::vector<Tensors> bits_;       // by buffer
  std::vector<Tensors> presences_;  // by variable
  std::vector<Facts> facts_;        // by expression
};

}  // namespace

void check_presence(CheckContext& ctx) {
  std::vector<BufferId> tensors;
  for (size_t b = 0; b < ctx.program.buffers.size(); ++b)
    if (ctx.program.buffers[b].optional) tensors.emplace_back(b);
  for (size_t at = 0; at < tensors.size(); at += kTogether)
    PresenceCheck(ctx, std::span(tensors).subspan(at, std::min(kTogether, tensors.size() - at))).run();
}

}  // namespace tilegen::check
