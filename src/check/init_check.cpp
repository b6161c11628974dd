// Reads of on-chip buffers and workspaces that no write can have reached. Buffers are taken whole: a partly
// written buffer counts as written; the interpreter finds the rest.
//
// A statement of a loop also runs in the first iteration, where nothing later in the body has happened yet,
// so program order alone decides. Only after a guard (an if, a select, an inner loop whose trip count
// varies) may a read wait for a later iteration; there the writes of the whole loop count.
#include <algorithm>

#include "check/context.h"
#include "check/expr_walk.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::check {
namespace {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::StmtId;
using BufferList = std::vector<ir::BufferId>;

class InitCheck {
 public:
  explicit InitCheck(CheckContext& ctx)
      : ctx_(ctx),
        p_(ctx.program),
        walk_(ctx.program),
        written_(ctx.program.buffers.size(), false),
        from_later_(ctx.program.buffers.size(), 0) {}

  void run() {
    for (size_t b = 0; b < p_.buffers.size(); ++b)
      written_[b] = p_.buffers[b].scope == ir::MemScope::global &&
                    (!p_.buffers[b].workspace || p_.buffers[b].report != ir::Report::none);
    for (const ir::Kernel& k : p_.kernels) check_block(k.body);
  }

 private:
  // After a guard the writes of every loop around it reach; undone when the guard ends.
  class Guard {
   public:
    Guard(InitCheck& c, bool active) : check_(c), first_(c.guarded_loops_) {
      if (active) c.guarded_loops_ = c.loops_.size();
      for (size_t i = first_; i < c.guarded_loops_; ++i)
        for (ir::BufferId b : c.loops_[i]) ++c.from_later_[b.value];
    }
    ~Guard() {
      for (size_t i = first_; i < check_.guarded_loops_; ++i)
        for (ir::BufferId b : check_.loops_[i]) --check_.from_later_[b.value];
      check_.guarded_loops_ = first_;
    }

   private:
    InitCheck& check_;
    size_t first_;
  };

  void check_block(const ir::Block& block) {
    for (StmtId id : block) check_statement(id);
  }
  void check_statement(StmtId id);
  void check_loop(const ir::Loop& loop);
  void check_op(StmtId id, const ir::TileOp& op);
  void check_loads(StmtId id, bool always_only);
  void read(StmtId id, ir::BufferId buffer, const std::string& hint);
  void write(ir::BufferId buffer) { written_[buffer.value] = true; }
  BufferList writes_of(const ir::Block& block) const;
  bool repeats(const ir::Loop& loop) const;
  bool trips_vary(const ir::Loop& loop);

  CheckContext& ctx_;
  const ir::Program& p_;
  ExprWalk walk_;
  std::vector<bool> written_;      // by BufferId: a write may have happened
  std::vector<int> from_later_;    // by BufferId: guarded loops that write it
  std::vector<BufferList> loops_;  // what each enclosing repeating loop writes
  size_t guarded_loops_ = 0;       // how many of them have a guard between them and here
};

BufferList InitCheck::writes_of(const ir::Block& block) const {
  BufferList buffers;
  ir::for_each_statement(p_, block, [&](StmtId id, int) {
    if (const auto* store = p_.as<ir::Store>(id))
      ir::visit_written(*store, [&](ir::BufferId b, const auto&) { buffers.push_back(b); });
    const auto* op = p_.as<ir::TileOp>(id);
    if (op == nullptr) return;
    const ir::OpRow& row = ir::op_row(op->kind);
    for (size_t i = 0; i < std::min(row.operands.size(), op->operands.size()); ++i)
      if (row.operands[i].access != ir::Access::read) buffers.push_back(op->operands[i].buffer);
  });
  std::sort(buffers.begin(), buffers.end());
  buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
  return buffers;
}

// Does a later iteration see what an earlier one wrote? Not in parallel loops: iterations are independent.
bool InitCheck::repeats(const ir::Loop& loop) const {
  int64_t extent = 0;
  return loop.kind != ir::LoopKind::parallel &&
         (!p_.exprs.is_const_int(loop.extents[0], &extent) || extent > 1);
}

bool InitCheck::trips_vary(const ir::Loop& loop) {
  bool vary = false;
  walk_.start();
  for (ExprId e : loop.extents)
    walk_.visit(e, [&](ExprId, const ExprNode& n) {
      vary |= n.op == ExprOp::load || (n.op == ExprOp::var && p_.var(n.var()).kind == ir::VarKind::loop);
    });
  return vary;
}

void InitCheck::check_loop(const ir::Loop& loop) {
  const Guard guard(*this, trips_vary(loop) || loop.condition.valid());
  if (!repeats(loop)) {
    check_block(loop.body);
    return;
  }
  loops_.push_back(writes_of(loop.body));
  check_block(loop.body);
  loops_.pop_back();
}

void InitCheck::check_statement(StmtId id) {
  if (ctx_.stop()) return;
  if (ctx_.broken[id.value]) {
    for (ir::BufferId b : writes_of({id})) write(b);
    return;
  }
  check_loads(id, true);
  {
    const Guard guard(*this, true);
    check_loads(id, false);
  }
  if (const auto* loop = p_.as<ir::Loop>(id)) {
    check_loop(*loop);
  } else if (const auto* branch = p_.as<ir::Branch>(id)) {
    const Guard guard(*this, true);
    const std::vector<bool> before = written_;
    check_block(branch->then_body);
    const std::vector<bool> after_then = written_;
    written_ = before;
    check_block(branch->else_body);
    for (size_t b = 0; b < written_.size(); ++b) written_[b] = written_[b] || after_then[b];
  } else if (const auto* store = p_.as<ir::Store>(id)) {
    if (store->atomic) read(id, store->buffer, "write all of it in a kernel before");
    ir::visit_written(*store, [&](ir::BufferId b, const auto&) { write(b); });
  } else if (const auto* op = p_.as<ir::TileOp>(id)) {
    check_op(id, *op);
  }
}

void InitCheck::check_loads(StmtId id, bool always_only) {
  const auto* store = p_.as<ir::Store>(id);
  walk_.start();
  for_each_root(p_, id, [&](ExprId root) {
    walk_.visit(
        root,
        [&](ExprId, const ExprNode& n) {
          if (n.op == ExprOp::load)
            read(id, n.object,
                 store && store->buffer == n.object ? "fill it or copy into it first: +=, and a store to a "
                                                      "part of an element through a view, "
                                                      "keep some of what is there"
                                                    : "fill it or copy into it first");
        },
        always_only);
  });
}

void InitCheck::check_op(StmtId id, const ir::TileOp& op) {
  const std::vector<ops::OperandAccess> accesses = ops::op_def(op.kind).accesses(op);
  for (const ops::OperandAccess& a : accesses) {
    if (a.access != ir::Access::write) read(id, op.operands[a.operand].buffer, a.way_out);
  }
  for (const ops::OperandAccess& a : accesses)
    if (a.access != ir::Access::read) write(op.operands[a.operand].buffer);
}

void InitCheck::read(StmtId id, ir::BufferId buffer, const std::string& hint) {
  if (written_[buffer.value] || from_later_[buffer.value] > 0) return;
  const ir::Buffer& b = p_.buffer(buffer);
  ctx_.error(DiagCode::uninitialised_read, id,
             b.name + " (" + (b.workspace ? "workspace" : ir::scope_name(b.scope)) +
                 ") is read before anything wrote it",
             hint);
  write(buffer);  // said once
}

}  // namespace

void check_initialised(CheckContext& ctx) { InitCheck(ctx).run(); }

}  // namespace tilegen::check
