#include "lower/gpu/program_barriers.h"

#include "analysis/copy_groups.h"
#include "analysis/transaction_barriers.h"
#include "ir/expr_nodes.h"
#include "ir/op_kinds.h"
#include "lower/addressing.h"
#include "lower/lowering_context.h"
#include "lower/operation.h"
#include "support/diag_codes.h"
#include "thread/sync_accesses.h"

namespace tilegen::lower {

namespace {

// Loads of shared memory are made where the condition holds.
class LoadsWhere : public ir::ExprRewriter {
 public:
  LoadsWhere(thread::ThreadProgram& p, ExprId condition)
      : ExprRewriter(p.exprs, p.exprs), p_(p), condition_(condition) {}

 protected:
  ExprId rewrite_load(const ir::ExprNode& n, std::span<const ExprId> indices) override {
    std::vector<ExprId> operands(indices.begin(), indices.end());
    if (p_.memory(n.object).space == thread::Space::shared) {
      if (operands.size() == 1)
        operands.push_back(condition_);
      else
        operands[1] = p_.exprs.logical_and(operands[1], condition_);
    }
    return to_->load(n.object, n.type, operands);
  }

 private:
  thread::ThreadProgram& p_;
  ExprId condition_;
};

bool reads(const thread::ThreadProgram& p, ExprId value, thread::MemoryId memory) {
  ir::ExprNodes nodes(p.exprs, value);
  while (const ExprId e = nodes.next())
    if (p.exprs[e].op == ir::ExprOp::load && p.exprs[e].object == memory) return true;
  return false;
}

}  // namespace

void declare_barriers(LoweringContext& k) {
  if (!analysis::has_transaction_barriers(k.in.target)) return;
  for (ir::BufferId b : ir::barriers_of(k.in.program, k.in.scheduled.kernel)) {
    const std::string path = ir::buffer_path(k.in.program, b);
    if (k.in.schedule.persistence && k.in.schedule.persistence->persistent)
      return k.fail(DiagCode::schedule_illegal, k.in.kernel.name,
                    "its blocks walk several tiles, and phases of " + path +
                        " are counted from the first one of a tile on",
                    "let persistence be none");
    const plan::MemoryPlan* place = plan::find_memory(k.in.schedule, plan::Storage::barriers, path);
    if (!place)
      return k.fail(DiagCode::schedule_illegal, path, "the barriers have no place in shared memory",
                    "plan the program for this target");
    k.out.arena_bytes = std::max(k.out.arena_bytes, place->offset + place->bytes);
    k.names.barriers[b] = static_cast<int>(k.out.barriers.size());
    k.out.barriers.push_back({path, k.in.program.tile_shape(b).front(),
                              *ir::barrier_arrivals(k.in.program.buffer(b)), place->offset});
  }
}

namespace {

// A barrier of the machine for each that the program names, with a number of its own.
thread::Barrier named_barrier(LoweringContext& k, const ir::TileOp& op) {
  const ir::Region& at = op.operands.front();
  int64_t index = 0;
  k.in.program.exprs.is_const_int(at.offsets.front(), &index);
  const auto array = static_cast<int64_t>(at.buffer.value);
  return {k.out.named_barrier({thread::BarrierUse::program, array, index}),
          *ir::barrier_participants(k.in.program.buffer(at.buffer)), op.kind == ir::OpKind::barrier_arrive};
}

}  // namespace

void on_barrier(LoweringContext& k, ir::StmtId id, thread::Block& out) {
  const auto& op = *k.in.program.as<ir::TileOp>(id);
  const std::string& origin = begin_operation(k, id);
  const ir::Region& at = op.operands.front();
  ir::ExprPool& e = k.out.exprs;
  const bool named = ir::is_named_barrier_op(op.kind);
  const int barriers = named ? -1 : k.names.barriers.at(at.buffer);
  const ExprId index = k.simplified(lower_expr(k, at.offsets.front()));
  thread::Block body;
  if (named) {
    body = {k.out.add(named_barrier(k, op), origin)};
  } else if (op.kind == ir::OpKind::mbarrier_arrive) {
    const bool copies = op.flag(ir::mbarrier_arrive_attr::copies) && analysis::has_copy_groups(k.in.target);
    body = {k.out.add(thread::TransactionArrive{barriers, index, 0, {}, copies}, origin)};
    if (op.flag(ir::mbarrier_arrive_attr::elected))
      body = {k.out.add(thread::OneThread{std::move(body)}, origin)};
  } else {
    const ExprId parity = k.simplified(lower_expr(k, op.value));
    body = {k.out.add(thread::TransactionWait{barriers, index, parity, {}}, origin)};
  }
  const ir::ThreadRange threads = ir::threads_of(op, k.in.kernel);
  const int64_t end = threads.first + threads.count;
  ExprId inside;
  if (end < k.out.threads) inside = e.lt(e.var(k.out.thread_var), e.const_int(end));
  if (threads.first > 0) {
    const ExprId from = e.le(e.const_int(threads.first), e.var(k.out.thread_var));
    inside = inside ? e.logical_and(from, inside) : from;
  }
  if (inside) body = {k.out.add(thread::Branch{inside, std::move(body), {}}, origin)};
  out.insert(out.end(), body.begin(), body.end());
}

Checked has_numbers(const thread::ThreadProgram& p, const std::string& kernel) {
  const auto& barriers = p.named_barriers;
  const auto named = std::count_if(barriers.begin(), barriers.end(), [](const thread::NamedBarrier& b) {
    return b.use == thread::BarrierUse::program;
  });
  if (named == 0 || static_cast<int64_t>(barriers.size()) < p.machine.named_barriers) return Unit{};
  return Error(DiagCode::schedule_illegal, kernel,
               "the kernel needs " + std::to_string(barriers.size() + 1) + " barriers of the machine, " +
                   std::to_string(named) + " that it names, " +
                   std::to_string(static_cast<int64_t>(barriers.size()) - named) +
                   " of warps by the plan and one of the block; there are " +
                   std::to_string(p.machine.named_barriers),
               "name fewer barriers, or use one again behind a meeting of those who come by");
}

void guard_loads(thread::ThreadProgram& p) {
  const bool all = thread::has_program_barriers(p);
  for (size_t s = 0; s < p.stmts.size(); ++s) {
    auto* store = std::get_if<thread::Store>(&p.stmts[s].node);
    if (!store || !store->predicate) continue;
    const bool shared = p.memory(store->memory).space == thread::Space::shared;
    if (!all && !(shared && reads(p, store->value, store->memory))) continue;
    LoadsWhere where(p, store->predicate);
    const ExprId value = where.rewrite(store->value);
    store->value = value;
  }
}

}  // namespace tilegen::lower
