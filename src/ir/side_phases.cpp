#include "ir/side_phases.h"

#include <algorithm>

#include "ir/op_kinds.h"
#include "ir/transaction_barriers.h"

namespace tilegen::ir {

namespace {

constexpr int64_t kTrips = 128;                          // of a loop that are looked at
constexpr int64_t kSteps = 20'000, kAllSteps = 400'000;  // of a question, of a kernel
constexpr int64_t kWarp = 32;

class WithValues : public ExprRewriter {
 public:
  WithValues(const ExprPool& from, ExprPool& to, const std::map<VarId, int64_t>& values)
      : ExprRewriter(from, to), values_(values) {}

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    const auto it = values_.find(n.var());
    return it == values_.end() ? to_->var(n.var(), n.type) : to_->const_int(it->second);
  }

 private:
  const std::map<VarId, int64_t>& values_;
};

}  // namespace

SidePhases::SidePhases(const Program& p, const Kernel& kernel) : p_(p), kernel_(kernel) {
  find_barriers(kernel.body);
}

bool SidePhases::find_barriers(const Block& block) {
  bool any = false;
  for (StmtId s : block) {
    const auto* op = p_.as<TileOp>(s);
    bool inside = op && is_barrier_op(op->kind);
    if (const auto* loop = p_.as<Loop>(s)) inside = find_barriers(loop->body);
    if (const auto* branch = p_.as<Branch>(s)) {
      inside = find_barriers(branch->then_body);
      inside = find_barriers(branch->else_body) || inside;
    }
    if (inside) holds_.insert(s);
    any = any || inside;
  }
  return any;
}

std::optional<int64_t> SidePhases::eval(ExprId e) const {
  int64_t value = 0;
  if (p_.exprs.is_const_int(e, &value)) return value;
  ExprPool pool;
  if (pool.is_const_int(WithValues(p_.exprs, pool, values_).rewrite(e), &value)) return value;
  return std::nullopt;
}

void SidePhases::enter(const Loop& loop) {
  if (const auto begin = eval(loop.begin)) values_[loop.vars.front()] = *begin;
}

bool SidePhases::blocks(StmtId s) {
  if (!holds_barriers(s)) return false;
  const State before = state_;
  const auto values = values_;
  steps_ = 0;
  const bool done = run(s);
  state_ = before;
  values_ = values;
  return !done;
}

void SidePhases::pass(StmtId s) {
  if (!holds_barriers(s)) return;
  const auto values = values_;
  steps_ = 0;
  if (!run(s)) give_up(s);
  values_ = values;
}

// Its barriers may be in any phase behind it.
void SidePhases::give_up(StmtId s) {
  for_each_statement(p_, Block{s}, [&](StmtId inside, int) {
    if (const auto* op = p_.as<TileOp>(inside); op && is_barrier_op(op->kind))
      state_.unknown.insert(op->operands.front().buffer);
  });
}

bool SidePhases::run(const Block& block) {
  return std::all_of(block.begin(), block.end(), [&](StmtId s) { return run(s); });
}

// False where a wait in it is not complete.
bool SidePhases::run(StmtId s) {
  if (!holds_barriers(s)) return true;
  if (++steps_ > kSteps || ++all_steps_ > kAllSteps) {
    give_up(s);
    return true;
  }
  if (const auto* op = p_.as<TileOp>(s)) return step(*op);
  if (const auto* branch = p_.as<Branch>(s)) {
    if (const auto holds = eval(branch->condition))
      return run(*holds != 0 ? branch->then_body : branch->else_body);
    const State before = state_;
    const bool done = run(branch->then_body);
    state_ = before;
    const bool other = run(branch->else_body);
    state_ = before;
    give_up(s);
    return done && other;
  }
  const Loop& loop = *p_.as<Loop>(s);
  const VarId var = loop.vars.front();
  const auto begin = eval(loop.begin), extent = eval(loop.extents.front());
  const bool known = extent && *extent <= kTrips && !loop.condition.valid();
  const int64_t trips = !begin ? 1 : known ? *extent : kTrips;
  for (int64_t i = 0; i < trips && steps_ <= kSteps; ++i) {
    if (begin) values_[var] = *begin + i;
    if (!run(loop.body)) return false;
  }
  values_.erase(var);
  if (!begin || !known || steps_ > kSteps) give_up(s);
  return true;
}

bool SidePhases::step(const TileOp& op) {
  const Region& at = op.operands.front();
  const Buffer& tile = p_.buffer(at.buffer);
  const auto participants = barrier_participants(tile), arrivals = barrier_arrivals(tile);
  const auto index = at.offsets.empty() ? std::nullopt : eval(at.offsets.front());
  const int64_t most = participants ? *participants : arrivals.value_or(0);
  if (!index || most <= 0) state_.unknown.insert(at.buffer);
  if (state_.unknown.contains(at.buffer)) return true;
  Phase& phase = state_.phases[{at.buffer, *index}];
  if (op.kind == OpKind::mbarrier_wait) {
    const auto parity = eval(op.value);
    if (parity) return *parity == (phase.completed + 1) % 2;
    state_.unknown.insert(at.buffer);
    return true;
  }
  const bool elected = op.kind == OpKind::mbarrier_arrive && op.flag(mbarrier_arrive_attr::elected);
  phase.arrived += threads_of(op, kernel_).count / (elected ? kWarp : 1);
  const bool complete = phase.arrived >= most;
  if (complete) phase.arrived -= most, ++phase.completed;
  return op.kind != OpKind::barrier_sync || complete;
}

}  // namespace tilegen::ir
