#include "sync/transaction_order.h"

#include <algorithm>
#include <numeric>

#include "arith/context.h"
#include "arith/period.h"
#include "arith/prove.h"
#include "thread/index_program.h"
#include "thread/sync_accesses.h"
#include "thread/warp_arrival.h"

namespace tilegen::sync {

using thread::StmtId;

namespace {

constexpr int64_t kMaxPeriod = 4096;

constexpr size_t kMaxChoices = 8;  // what is outstanding is told apart by each

// b < a where the condition is a <= b, and the other way around.
bool are_opposite(const ir::ExprPool& e, ir::ExprId a, ir::ExprId b) {
  const ir::ExprNode &x = e[a], &y = e[b];
  using ir::ExprOp;
  if (x.op == ExprOp::logical_not || y.op == ExprOp::logical_not)
    return (x.op == ExprOp::logical_not && x.a == b) || (y.op == ExprOp::logical_not && y.a == a);
  if ((x.op == ExprOp::eq && y.op == ExprOp::ne) || (x.op == ExprOp::ne && y.op == ExprOp::eq))
    return x.a == y.a && x.b == y.b;
  const bool compare =
      (x.op == ExprOp::lt && y.op == ExprOp::le) || (x.op == ExprOp::le && y.op == ExprOp::lt);
  return compare && !ir::is_float(e.type(x.a)) && x.a == y.b && x.b == y.a;
}

}  // namespace

bool TransactionOrder::is_of_threads(ir::ExprId condition) const {
  const thread::IndexProgram program(p_.exprs, condition);
  const auto& vars = program.vars();
  return p_.thread_var.valid() && !program.reads_memory() &&
         std::all_of(vars.begin(), vars.end(), [&](ir::VarId v) { return v == p_.thread_var; });
}

bool TransactionOrder::is_fixed(ir::ExprId condition) const {
  const thread::IndexProgram program(p_.exprs, condition);
  const auto& vars = program.vars();
  return !program.reads_memory() && std::all_of(vars.begin(), vars.end(), [&](ir::VarId v) {
    const ir::VarKind kind = p_.vars[v.value].kind;
    return kind == ir::VarKind::dim || kind == ir::VarKind::scalar ||
           (kind == ir::VarKind::block_index && !p_.dynamic_tiles);
  });
}

std::optional<TransactionOrder::Choice> TransactionOrder::choice_of(ir::ExprId condition) const {
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i] == condition) return Choice{uint32_t{1} << i, false};
    if (are_opposite(p_.exprs, choices_[i], condition)) return Choice{uint32_t{1} << i, true};
  }
  return std::nullopt;
}

// What facts of the launch leave; -1: many.
int64_t TransactionOrder::most_trips(ir::ExprId extent) const {
  ir::ExprPool pool = p_.exprs;
  arith::Context ctx(pool);
  for (size_t v = 0; v < p_.vars.size(); ++v)
    if (const ir::Var& var = p_.vars[v]; var.type == ir::DType::i64 && var.kind == ir::VarKind::dim)
      ctx.bind(ir::VarId(v), var.lower, var.upper, var.divisor);
  const int64_t most = arith::range_of(ctx, extent).hi;
  return most >= 0 && most <= kMaxPeriod ? most : -1;
}

TransactionOrder::TransactionOrder(const thread::ThreadProgram& p, bool named) : p_(p), named_(named) {
  const bool roles = std::any_of(p.body.begin(), p.body.end(), [&](StmtId s) {
    return std::holds_alternative<thread::Roles>(p.stmts[s.value].node);
  });
  if (!thread::has_program_barriers(p) || roles) return;
  collect(p.body, {});
  for (const thread::TransactionBarriers& b : p.barriers) most_ = std::max(most_, b.count);
}

void TransactionOrder::collect(const thread::Block& b, const Around& around) {
  for (StmtId s : b) {
    ++position_;
    const thread::StmtNode& node = p_.stmts[s.value].node;
    const size_t before = points_.size();
    const auto* one = std::get_if<thread::OneThread>(&node);
    const auto* a = one ? thread::warp_arrival(p_, *one) : std::get_if<thread::TransactionArrive>(&node);
    if (a != nullptr) {
      add(around, {s, true, false, a->copies, false, a->barriers, a->index, {}, {}, -1, -1, false, 0});
    } else if (const auto* w = std::get_if<thread::TransactionWait>(&node)) {
      add(around, {s, false, true, false, false, w->barriers, w->index, {}, {}, -1, -1, false, 0});
    } else if (const auto* b = std::get_if<thread::Barrier>(&node);
               named_ && b != nullptr && thread::is_of_program(p_, *b)) {
      add(around, {s, true, !b->arrive_only, false, true, b->id, {}, {}, {}, -1, -1, false, 0});
    } else if (const auto* branch = std::get_if<thread::Branch>(&node)) {
      const bool of_threads = is_of_threads(branch->condition);
      const size_t choices = choices_.size();
      bool chosen = !of_threads && choice_of(branch->condition).has_value();
      if (!of_threads && !chosen && choices < kMaxChoices && is_fixed(branch->condition)) {
        choices_.push_back(branch->condition);
        chosen = true;
      }
      for (const bool taken : {true, false}) {
        Around inside = around;
        if (of_threads) inside.of_threads.emplace_back(branch->condition, taken);
        inside.always = around.always && (of_threads || chosen);
        collect(taken ? branch->then_body : branch->else_body, inside);
      }
      if (points_.size() == before) choices_.resize(choices);
    } else if (const auto* loop = std::get_if<thread::Loop>(&node)) {
      Around inside = around;
      inside.loop = loop->var;
      inside.trips = -1;
      inside.most = -1;
      if (!p_.exprs.is_const_int(loop->extent, &inside.trips)) inside.most = most_trips(loop->extent);
      inside.always = true;
      collect(loop->body, inside);
      const auto of_phases = [](const Point& point) { return !point.named; };
      if (std::any_of(points_.begin() + static_cast<std::ptrdiff_t>(before), points_.end(), of_phases))
        loops_.insert(loop->var);
    } else {
      for (const thread::Block* inside : thread::blocks_inside(node)) collect(*inside, around);
    }
  }
}

void TransactionOrder::add(const Around& around, Point point) {
  point.warps = warps_of(around);
  point.loop = around.loop;
  point.trips = around.trips;
  point.most = around.most;
  point.always = around.always;
  point.position = position_;
  by_stmt_[point.stmt] = points_.size();
  points_.push_back(point);
}

// Whole warps, one behind the other; none where it is of others.
WarpRange TransactionOrder::warps_of(const Around& around) const {
  const int64_t warp = std::max(p_.machine.warp, 1);
  thread::PointValues values(p_.vars.size());
  std::vector<bool> here(static_cast<size_t>(p_.threads), true);
  for (const auto& [condition, taken] : around.of_threads) {
    const thread::IndexProgram program(p_.exprs, condition);
    for (int64_t t = 0; t < p_.threads; ++t) {
      values.set(p_.thread_var, t);
      if ((program.eval(values).value_or(!taken) != 0) != taken) here[static_cast<size_t>(t)] = false;
    }
  }
  const int64_t first = std::find(here.begin(), here.end(), true) - here.begin();
  const int64_t count = std::count(here.begin(), here.end(), true);
  const bool together =
      std::all_of(here.begin() + first, here.begin() + first + count, [](bool h) { return h; });
  if (!together || first % warp != 0 || count % warp != 0) return {};
  return {first / warp, count / warp};
}

const TransactionOrder::Point* TransactionOrder::find(StmtId s) const {
  const auto it = by_stmt_.find(s);
  return it == by_stmt_.end() ? nullptr : &points_[it->second];
}

std::optional<int64_t> TransactionOrder::iterations_back(const Point& arrival, const Point& wait,
                                                         int64_t most) const {
  if (arrival.barriers != wait.barriers || arrival.loop != wait.loop || !arrival.always ||
      arrival.warps.count == 0)
    return std::nullopt;
  if (arrival.named || wait.named) return std::nullopt;
  const bool in_front = arrival.position < wait.position;
  const thread::IndexProgram at(p_.exprs, arrival.index), of(p_.exprs, wait.index);
  thread::PointValues values(p_.vars.size());
  const auto same = [&](int64_t back, int64_t iteration) {
    if (wait.loop.valid()) values.set(wait.loop, iteration - back);
    const auto there = at.eval(values);
    if (wait.loop.valid()) values.set(wait.loop, iteration);
    return there.has_value() && there == of.eval(values);
  };
  if (!wait.loop.valid()) return in_front && same(0, 0) ? std::optional<int64_t>(0) : std::nullopt;
  int64_t trips = wait.trips;
  const int64_t period = trips >= 0 ? trips : period_of(arrival, wait);
  if (trips < 0 && period < 0) trips = wait.most;  // no iteration beyond is looked at
  if (trips < 0 && period < 0) return std::nullopt;
  if (std::max(trips, period) > kMaxPeriod) return std::nullopt;
  for (int64_t back = in_front ? 0 : 1; back <= most; ++back) {
    const int64_t end = trips >= 0 ? trips : back + period;
    bool all = back < end;
    for (int64_t k = back; all && k < end; ++k) all = same(back, k);
    if (all) return back;
  }
  return std::nullopt;
}

// Iterations after which both name the same barriers again; -1: none are known.
int64_t TransactionOrder::period_of(const Point& arrival, const Point& wait) const {
  ir::ExprPool pool = p_.exprs;
  arith::Context ctx(pool);
  ctx.bind(wait.loop, 0, thread::kMaxIterations);
  const auto of_arrival = arith::period_of(ctx, arrival.index, wait.loop, kMaxPeriod),
             of_wait = arith::period_of(ctx, wait.index, wait.loop, kMaxPeriod);
  return of_arrival && of_wait ? std::lcm(*of_arrival, *of_wait) : -1;
}

bool TransactionOrder::is_one_party(const WarpRange& warps) const {
  const int64_t end = warps.first + warps.count;
  return std::all_of(points_.begin(), points_.end(), [&](const Point& at) {
    const int64_t first = at.warps.first, last = first + at.warps.count;
    return at.named || last <= warps.first || end <= first || (first <= warps.first && end <= last);
  });
}

}  // namespace tilegen::sync
