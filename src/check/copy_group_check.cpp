// Asynchronous copies that the program commits and awaits: what such a loop may hold, and where groups may be
// counted. That copies are done before their elements are used is proven where threads are ordered
// (sync/plant_barriers.h).
#include "check/context.h"
#include "ir/annotations.h"
#include "ir/copy_groups.h"
#include "ir/op_kinds.h"
#include "support/diag_codes.h"

namespace tilegen::check {
namespace {

class CopyGroupCheck {
 public:
  explicit CopyGroupCheck(CheckContext& ctx) : ctx_(ctx), p_(ctx.program) {}

  void run() {
    for (const ir::Kernel& kernel : p_.kernels) {
      if (ir::first_copy_word(p_, kernel).empty()) continue;
      copies_ = ir::StmtId();
      awaited_ = false;
      block(kernel.body, false);
      if (copies_.valid() && !awaited_)
        ctx_.error(DiagCode::misplaced_statement, copies_,
                   "nothing awaits the asynchronous copies of the kernel",
                   "write commit_group behind them, and wait_group 0 in front of what reads their elements");
    }
  }

 private:
  void block(const ir::Block& b, bool pipelined) {
    for (ir::StmtId s : b) {
      if (ctx_.stop()) return;
      const auto* op = p_.as<ir::TileOp>(s);
      awaited_ = awaited_ ||
                 (op && (op->kind == ir::OpKind::wait_group || (op->kind == ir::OpKind::mbarrier_arrive &&
                                                                op->flag(ir::mbarrier_arrive_attr::copies))));
      if (ctx_.broken[s.value]) continue;
      if (const auto* loop = p_.as<ir::Loop>(s)) {
        if (loop->kind != ir::LoopKind::parallel)
          block(loop->body, pipelined || loop->kind == ir::LoopKind::pipelined);
        else if (ir::is_asynchronous(p_.stmt(s)))
          copies(s, *loop, pipelined);
      } else if (const auto* branch = p_.as<ir::Branch>(s)) {
        block(branch->then_body, pipelined);
        block(branch->else_body, pipelined);
      } else if (op && op->operands.empty() && pipelined) {
        refuse_pipelined(s, std::string(ir::op_row(op->kind).text));
      }
    }
  }

  void copies(ir::StmtId s, const ir::Loop& loop, bool pipelined) {
    copies_ = s;
    if (pipelined) return refuse_pipelined(s, "an asynchronous loop");
    const ir::Store* store = ir::guarded_copy(p_, loop).store;
    if (!store || !moves(*store))
      ctx_.error(
          DiagCode::bad_attribute, s,
          "the loop is asynchronous, and does more than to copy elements of a tensor, as they are, to a "
          "shared tile",
          "let it hold one store, tile[...] = tensor[...], and compute in another loop");
  }

  bool moves(const ir::Store& store) const {
    const ir::ExprNode& from = p_.exprs[store.value];
    return !store.atomic && p_.buffer(store.buffer).scope == ir::MemScope::shared &&
           from.op == ir::ExprOp::load && p_.buffer(from.object).scope == ir::MemScope::global &&
           from.type == p_.buffer(store.buffer).type;
  }

  void refuse_pipelined(ir::StmtId s, const std::string& what) {
    ctx_.error(DiagCode::misplaced_statement, s,
               what + " stands in a pipelined loop, whose copies are in groups that the planner counts",
               "make the loop serial, and commit and await its copies yourself");
  }

  CheckContext& ctx_;
  const ir::Program& p_;
  ir::StmtId copies_;  // the first of the kernel
  bool awaited_ = false;
};

}  // namespace

void check_copy_groups(CheckContext& ctx) { CopyGroupCheck(ctx).run(); }

}  // namespace tilegen::check
