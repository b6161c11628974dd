#include "schedule/pipeline/ping_pong_plan.h"

#include <algorithm>
#include <cmath>

#include "analysis/run_ahead.h"
#include "support/diag_codes.h"
#include "thread/named_barriers.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;

namespace {

// Turns are planned where the threads' work on elements takes this share of the products' cycles. Less of it
// hides behind the products in any order; where there is much more, matrix units idle in any order.
constexpr double kMinShare = 0.25, kMaxShare = 2;

// Work of an expression, by the loop variables that it differs along.
class Work {
 public:
  Work(const ir::Program& p, const ir::Loop& loop, const target::Target& t)
      : e_(p.exprs),
        special_slots_(t.plain_lanes / t.special_lanes),
        convert_slots_(t.plain_lanes / t.convert_lanes) {
    for (size_t d = 0; d < loop.vars.size(); ++d) {
      int64_t extent = 1;
      e_.is_const_int(loop.extents[d], &extent);
      extents_.emplace_back(loop.vars[d], static_cast<double>(extent));
    }
  }

  double slots = 0;

  void add(ir::ExprId root) { visit(root); }

 private:
  // Whether an element is read below, and what along which variables the node differs.
  struct Node {
    bool element = false;
    uint32_t along = 0;
  };

  Node visit(ir::ExprId id) {
    if (!id.valid()) return {};
    if (const auto known = seen_.find(id); known != seen_.end()) return known->second;
    const ir::ExprNode& n = e_[id];
    Node node;
    if (n.op == ir::ExprOp::var)
      for (size_t d = 0; d < extents_.size(); ++d)
        if (extents_[d].first == n.var()) node.along |= uint32_t{1} << d;
    if (n.op == ir::ExprOp::load) {
      node.element = true;
      for (ir::ExprId index : e_.indices(id)) node.along |= visit(index).along;
    }
    for (ir::ExprId operand : {n.a, n.b, n.c}) {
      const Node below = visit(operand);
      node.element = node.element || below.element;
      node.along |= below.along;
    }
    if (node.element && n.op != ir::ExprOp::load) slots += price(n) * points(node.along);
    seen_.emplace(id, node);
    return node;
  }

  double points(uint32_t along) const {
    double all = 1;
    for (size_t d = 0; d < extents_.size(); ++d)
      if ((along >> d & 1) != 0) all *= extents_[d].second;
    return all;
  }
  double price(const ir::ExprNode& n) const {
    switch (n.op) {
      case ir::ExprOp::cast:
        return ir::is_float(n.type) != ir::is_float(e_.type(n.a)) ? convert_slots_ : 1;
      case ir::ExprOp::exp:
      case ir::ExprOp::exp2:
      case ir::ExprOp::log:
      case ir::ExprOp::log2:
      case ir::ExprOp::sqrt:
      case ir::ExprOp::rsqrt:
      case ir::ExprOp::tanh:
      case ir::ExprOp::div:
        return special_slots_;
      case ir::ExprOp::erf:
      case ir::ExprOp::sigmoid:
        return 2 * special_slots_;
      default:
        return 1;
    }
  }

  const ir::ExprPool& e_;
  const double special_slots_, convert_slots_;  // issue slots of such an element
  std::vector<std::pair<ir::VarId, double>> extents_;
  std::map<ir::ExprId, Node> seen_;
};

std::string percent(double share) { return std::to_string(std::llround(100 * share)) + " %"; }

// Ops of the loop's threads and warpgroups in the order of issue.
std::vector<const KernelOp*> issue_order(const ir::Program& p, const KernelOps& ops, const ir::Loop& loop,
                                         const PingPongFacts& facts, const plan::LoopPlan& plan) {
  std::vector<const KernelOp*> order = analysis::ops_inside(p, ops, loop);
  std::erase_if(order, [&](const KernelOp* op) { return facts.copies.count(op) > 0; });
  auto place = [&](const KernelOp* op) {
    return std::find_if(plan.stages.begin(), plan.stages.end(),
                        [&](const auto& s) { return s.first == op->path; });
  };
  if (std::all_of(order.begin(), order.end(),
                  [&](const KernelOp* op) { return place(op) != plan.stages.end(); }))
    std::stable_sort(order.begin(), order.end(),
                     [&](const KernelOp* a, const KernelOp* b) { return place(a) < place(b); });
  return order;
}

// Why the loop's warpgroups cannot take turns; empty when they can.
std::string refusal(const std::vector<const KernelOp*>& order, const PingPongFacts& facts) {
  auto product = [&](const KernelOp* op) { return facts.products.count(op) > 0; };
  const auto first = std::find_if(order.begin(), order.end(), product);
  if (first == order.end()) return "no product of it is one of warpgroups whose tiles come from a producer";
  const int64_t warpgroups = facts.threads / facts.target.warpgroup;
  if (warpgroups < 2) return "one warpgroup computes, there is none to take turns with";
  const int64_t most = thread::max_ordered_warpgroups(facts.target.named_barriers);
  if (warpgroups > most)
    return std::to_string(warpgroups) + " warpgroups compute, there are barriers for " + std::to_string(most);
  if (std::all_of(order.begin(), order.end(), product)) return "its threads do nothing beside the products";
  const auto last = std::find_if(order.rbegin(), order.rend(), product).base();
  for (auto op = first; op != last; ++op)
    if (facts.meetings.count(*op))
      return "threads of several warpgroups meet for " + (*op)->path + ", which stands between its products";
  return "";
}

}  // namespace

double thread_cycles(const ir::Program& p, const KernelOp& op, const target::Target& t) {
  double slots = 0;
  if (const auto* tile = p.as<ir::TileOp>(op.stmt)) {
    double points = 1;
    for (int64_t extent : tile->operands[0].extents) points *= static_cast<double>(extent);
    slots = points;
  } else if (const auto* loop = p.as<ir::Loop>(op.stmt)) {
    Work work(p, *loop, t);
    ir::for_each_statement(p, loop->body, [&](ir::StmtId id, int) {
      if (const auto* store = p.as<ir::Store>(id)) work.add(store->value);
      if (const auto* branch = p.as<ir::Branch>(id)) work.add(branch->condition);
    });
    slots = work.slots;
  }
  return slots / t.plain_lanes;
}

Checked plan_ping_pong(const ir::Program& p, const KernelOps& ops, ir::StmtId loop,
                       const PingPongFacts& facts, std::optional<bool> given, plan::LoopPlan& plan) {
  const std::vector<const KernelOp*> order = issue_order(p, ops, *p.as<ir::Loop>(loop), facts, plan);
  const std::string why = refusal(order, facts);
  plan.ping_pong = given;
  if (given) {
    if (!*given || why.empty()) return Unit{};
    return Error(DiagCode::schedule_illegal, plan.loop,
                 "the schedule has the loop's warpgroups take turns (ping_pong), but " + why,
                 "leave `ping_pong` out to have it decided", p.stmts[loop.value].location);
  }
  double products = 0, threads = 0;
  for (const KernelOp* op : order) {
    const auto product = facts.products.find(op);
    product != facts.products.end() ? products += product->second
                                    : threads += thread_cycles(p, *op, facts.target);
  }
  if (products == 0 || threads == 0) return Unit{};
  const double share = threads / products;
  const std::string work =
      "their work on elements takes about " + percent(share) + " of the products' cycles";
  plan.ping_pong = why.empty() && share >= kMinShare && share <= kMaxShare;
  plan.reason += *plan.ping_pong ? "; warpgroups take turns with the matrix units, " + work
                                 : "; warpgroups take no turns: " + (why.empty() ? work : why);
  return Unit{};
}

}  // namespace tilegen::schedule
