#include "schedule/overlap_plan.h"

#include <algorithm>
#include <optional>

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;

namespace {

// An op of the loop's body, in the order of issue.
struct IssuedOp {
  const KernelOp* op = nullptr;
  int64_t lag = 0;  // iterations behind the newest under way
};

// A statement of the loop's body, a branch with all ops in it.
struct Issue {
  ir::StmtId stmt;
  std::vector<const KernelOp*> ops;
  bool product = false;
  int64_t lag = 0;
};

class Overlap {
 public:
  // Tiles that `copies` fill have a slot for each iteration: these conflict with nothing.
  Overlap(const ir::Program& p, const KernelOps& ops, const analysis::DependenceGraph& dependences,
          const ir::Loop& loop, const std::set<const KernelOp*>& products,
          const std::set<const KernelOp*>& copies) {
    std::set<int> slotted;
    for (const KernelOp* copy : copies)
      for (const analysis::OpAccess& a : copy->accesses)
        if (a.write) slotted.insert(a.value);
    std::map<ir::StmtId, const KernelOp*> op_of;
    for (const KernelOp& op : ops.ops) op_of[op.stmt] = &op;
    std::map<analysis::OpId, size_t> unit_of;
    for (ir::StmtId id : loop.body) {
      Issue u;
      u.stmt = id;
      const ir::Block one = {id};
      ir::for_each_statement(p, one, [&](ir::StmtId inside, int) {
        const auto op = op_of.find(inside);
        if (op == op_of.end() || copies.count(op->second)) return;
        u.ops.push_back(op->second);
        u.product = u.product || products.count(op->second) > 0;
        unit_of[ops.id_of(*op->second)] = units_.size();
      });
      if (!u.ops.empty()) units_.push_back(std::move(u));
    }
    for (const analysis::Dependence& d : dependences.edges()) {
      const auto from = unit_of.find(d.from), to = unit_of.find(d.to);
      if (d.distance > 0 || from == unit_of.end() || to == unit_of.end()) continue;
      if (d.place.value && slotted.count(static_cast<int>(d.place.value.value))) continue;
      conflicts_.emplace(from->second, to->second);
      if (d.kind == analysis::DependenceKind::flow) flows_.emplace(from->second, to->second);
    }
  }

  std::vector<Issue>& units() { return units_; }

  // Of two units in program order: the later one depends on the earlier one, or reads what it writes.
  bool conflict(size_t a, size_t b) const { return conflicts_.count({a, b}) > 0; }
  bool feeds(size_t a, size_t b) const { return flows_.count({a, b}) > 0; }

  // Every product behind what it needs, by as many iterations as there are products whose sums threads work
  // on in between; all else as early as it can be.
  int64_t assign_lags() {
    std::vector<int64_t> ready(units_.size(), 0);  // lag of a product that uses the result
    int64_t most = 0;
    for (size_t b = 0; b < units_.size(); ++b) {
      Issue& u = units_[b];
      for (size_t a = 0; a < b; ++a) {
        if (conflict(a, b)) u.lag = std::max(u.lag, units_[a].lag);
        if (!feeds(a, b)) continue;
        if (u.product && !units_[a].product) u.lag = std::max(u.lag, ready[a]);
        ready[b] = std::max(ready[b], units_[a].product ? units_[a].lag + 1 : ready[a]);
      }
      most = std::max(most, u.lag);
    }
    return most;
  }

  // What only later products need is done beside the next iteration's first ones, unless those would wait for
  // it.
  void delay() {
    for (size_t i = units_.size(); i-- > 0;) {
      Issue& u = units_[i];
      if (u.product || u.lag > 0) continue;
      bool needed = false, later = true;
      for (size_t b = i + 1; b < units_.size(); ++b)
        if (feeds(i, b)) {
          needed = true;
          later = later && units_[b].lag > 0;
        }
      if (!needed || !later) continue;
      u.lag = 1;
      if (!legal_lags() || !order() || holds_up(i)) u.lag = 0;
    }
  }

  bool legal_lags() const {
    for (size_t b = 0; b < units_.size(); ++b)
      for (size_t a = 0; a < b; ++a)
        if (conflict(a, b) && (units_[b].lag < units_[a].lag || units_[b].lag > units_[a].lag + 1))
          return false;
    return true;
  }

  // Unit `first` is issued in front of `then`.
  bool precedes(size_t first, size_t then) const {
    const Issue &f = units_[first], &t = units_[then];
    if (!conflict(std::min(first, then), std::max(first, then))) return false;
    return f.lag == t.lag ? first < then : first > then && f.lag > t.lag;
  }

  // Products as early as possible, what lags in front of the rest. Nothing when units wait for each other.
  std::optional<std::vector<size_t>> order() const {
    std::vector<size_t> order;
    std::vector<bool> issued(units_.size(), false);
    while (order.size() < units_.size()) {
      size_t best = units_.size();
      for (size_t i = 0; i < units_.size(); ++i) {
        if (issued[i]) continue;
        bool ready = true;
        for (size_t j = 0; j < units_.size(); ++j) ready = ready && (issued[j] || !precedes(j, i));
        if (!ready) continue;
        auto rank = [&](size_t u) { return std::make_pair(units_[u].product, units_[u].lag); };
        if (best == units_.size() || rank(i) > rank(best)) best = i;
      }
      if (best == units_.size()) return std::nullopt;
      issued[best] = true;
      order.push_back(best);
    }
    return order;
  }

 private:
  // A product of the newest iteration could not be issued before unit `from` is done.
  bool holds_up(size_t from) const {
    std::vector<size_t> todo = {from};
    std::set<size_t> seen;
    while (!todo.empty()) {
      const size_t at = todo.back();
      todo.pop_back();
      if (!seen.insert(at).second) continue;
      if (units_[at].product && units_[at].lag == 0) return true;
      for (size_t i = 0; i < units_.size(); ++i)
        if (precedes(at, i)) todo.push_back(i);
    }
    return false;
  }

  std::vector<Issue> units_;
  std::set<std::pair<size_t, size_t>> conflicts_, flows_;  // units of one iteration, in program order
};

// Nothing where no op gains by lagging; then `reason` says why where a product waits for another.
std::optional<std::vector<IssuedOp>> plan_overlap(const ir::Program& p, const KernelOps& ops,
                                                  const analysis::DependenceGraph& dependences,
                                                  const ir::Loop& loop,
                                                  const std::set<const KernelOp*>& products,
                                                  const std::set<const KernelOp*>& copies,
                                                  std::string* reason) {
  auto refuse = [&](const char* why) {
    *reason = why;
    return std::nullopt;
  };
  Overlap overlap(p, ops, dependences, loop, products, copies);
  const int64_t most = overlap.assign_lags();
  if (most == 0) return std::nullopt;
  if (most > 1) return refuse("more than two products wait for each other");
  if (!overlap.legal_lags()) return refuse("a value would have to live in two iterations at once");
  overlap.delay();
  const auto order = overlap.order();
  if (!order) return refuse("a value would have to live in two iterations at once");
  std::vector<IssuedOp> list;
  for (size_t i : *order)
    for (const KernelOp* op : overlap.units()[i].ops) list.push_back({op, overlap.units()[i].lag});
  return list;
}

// Why ops may not be issued in this order; empty when they may.
std::string order_refusal(const ir::Program& p, const KernelOps& ops,
                          const analysis::DependenceGraph& dependences, const ir::Loop& loop,
                          const std::vector<IssuedOp>& order, const std::set<const KernelOp*>& copies) {
  Overlap overlap(p, ops, dependences, loop, {}, copies);
  std::vector<Issue>& units = overlap.units();
  std::vector<size_t> place(units.size(), order.size());
  std::set<const KernelOp*> seen;
  for (const IssuedOp& o : order) {
    if (!seen.insert(o.op).second) return o.op->path + " stands in it twice";
    if (o.lag < 0 || o.lag > 1) return o.op->path + " is in a stage that the loop does not have";
  }
  if (!order.empty() && std::all_of(order.begin(), order.end(), [](const IssuedOp& o) { return o.lag > 0; }))
    return "all ops lag, and none works on the newest iteration";
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t k = 0; k < units[u].ops.size(); ++k) {
      const KernelOp& op = *units[u].ops[k];
      size_t at = 0;
      while (at < order.size() && order[at].op != &op) ++at;
      if (at == order.size()) return op.path + " is missing";
      if (k == 0) {
        place[u] = at;
        units[u].lag = order[at].lag;
      } else if (at != place[u] + k || order[at].lag != units[u].lag) {
        return op.path + " is issued apart from " + units[u].ops[0]->path + " of the same branch or loop";
      }
    }
  for (size_t b = 0; b < units.size(); ++b)
    for (size_t a = 0; a < b; ++a) {
      if (!overlap.conflict(a, b)) continue;
      const int64_t behind = units[b].lag - units[a].lag;
      const bool first = place[a] < place[b];
      if (behind < 0 || behind > 1 || (behind == 0 ? !first : first))
        return units[b].ops[0]->path + " would not see what " + units[a].ops[0]->path +
               " leaves, or the other way round";
    }
  return "";
}

}  // namespace

Checked order_loop(const ir::Program& p, const KernelOps& ops, analysis::LoopDependences& dependences,
                   ir::StmtId loop, const std::set<const KernelOp*>& products,
                   const std::set<const KernelOp*>& copies, bool given, plan::LoopPlan& plan,
                   std::string& note) {
  const auto& statement = *p.as<ir::Loop>(loop);
  const int64_t newest = plan.num_stages - 1;
  if (given) {
    std::vector<IssuedOp> order;
    for (const auto& [path, stage] : plan.stages)
      for (const KernelOp& op : ops.ops)
        if (op.path == path && !copies.count(&op)) order.push_back({&op, stage - newest});
    if (std::string why = order_refusal(p, ops, dependences.of(loop), statement, order, copies); !why.empty())
      return Error(DiagCode::schedule_illegal, plan.loop,
                   "the given order of the loop's ops is not legal: " + why,
                   "leave `stages` out to have it planned", p.stmts[loop.value].location);
    return Unit{};
  }
  std::string why;
  const auto order = plan_overlap(p, ops, dependences.of(loop), statement, products, copies, &why);
  if (!why.empty()) note = "products do not run beside other work: " + why;
  if (!order) return Unit{};
  std::erase_if(plan.stages, [&](const auto& s) {
    return std::any_of(order->begin(), order->end(),
                       [&](const IssuedOp& o) { return o.op->path == s.first; });
  });
  for (const IssuedOp& o : *order) plan.stages.push_back({o.op->path, newest + o.lag});
  plan.reason +=
      "; products that wait for others lag an iteration behind, so that both run beside the threads' work";
  return Unit{};
}

}  // namespace tilegen::schedule
