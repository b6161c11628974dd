#include "schedule/pipeline/ping_pong_plan.h"

#include <algorithm>
#include <cmath>

#include "analysis/run_ahead.h"
#include "cost/expression_work.h"
#include "support/diag_codes.h"
#include "thread/named_barriers.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;

namespace {

// Turns are planned where the threads' work on elements takes this share of the products' cycles. Less of it
// hides behind the products in any order; where there is much more, matrix units idle in any order.
constexpr double kMinShare = 0.25, kMaxShare = 2;
// A turn goes from the first product of an iteration to the last: what threads do in between no other
// warpgroup does at that time. Of their work it is this share at most (chunk scan of Mamba-2, where 0.9 of it
// stands there: turns take 1.10 of the time without).
constexpr double kMaxBetween = 0.5;

// Issue slots of an element, `special` and `convert` of functions and conversions.
double slots_of(const ir::ExprPool& e, const ir::ExprNode& n, double special, double convert) {
  switch (n.op) {
    case ir::ExprOp::cast:
      return ir::is_float(n.type) != ir::is_float(e.type(n.a)) ? convert : 1;
    case ir::ExprOp::exp:
    case ir::ExprOp::exp2:
    case ir::ExprOp::log:
    case ir::ExprOp::log2:
    case ir::ExprOp::sqrt:
    case ir::ExprOp::rsqrt:
    case ir::ExprOp::tanh:
    case ir::ExprOp::div:
      return special;
    case ir::ExprOp::erf:
    case ir::ExprOp::sigmoid:
    case ir::ExprOp::exp10:
    case ir::ExprOp::expm1:
    case ir::ExprOp::log1p:
    case ir::ExprOp::cbrt:
    case ir::ExprOp::asin:
    case ir::ExprOp::acos:
    case ir::ExprOp::atan:
    case ir::ExprOp::atan2:
    case ir::ExprOp::erfc:
      return 2 * special;
    case ir::ExprOp::sin:
    case ir::ExprOp::cos:
    case ir::ExprOp::tan:
    case ir::ExprOp::pow:
    case ir::ExprOp::fmod:
      return 4 * special;
    default:
      return 1;
  }
}

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
    const std::vector<double> extents = cost::loop_extents(p, *loop);
    cost::for_each_body_node(p, *loop, t, [&](const cost::BodyNode& n) {
      if (!n.element || n.node.op == ir::ExprOp::load) return;
      double points = 1;
      for (size_t d = 0; d < extents.size(); ++d)
        if ((n.along >> d & 1) != 0) points *= extents[d];
      slots += points *
               slots_of(p.exprs, n.node, t.plain_lanes / t.special_lanes, t.plain_lanes / t.convert_lanes);
    });
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
  double products = 0, threads = 0, between = 0, since_product = 0;
  for (const KernelOp* op : order) {
    if (const auto product = facts.products.find(op); product != facts.products.end()) {
      if (products > 0) between += since_product;
      products += product->second;
      since_product = 0;
      continue;
    }
    const double cycles = thread_cycles(p, *op, facts.target);
    threads += cycles;
    since_product += cycles;
  }
  if (products == 0 || threads == 0) return Unit{};
  const double share = threads / products;
  std::string work = "their work on elements takes about " + percent(share) + " of the products' cycles";
  if (between > kMaxBetween * threads)
    work += ", and " + percent(between / threads) + " of it stands between the products of an iteration";
  plan.ping_pong =
      why.empty() && share >= kMinShare && share <= kMaxShare && between <= kMaxBetween * threads;
  plan.reason += *plan.ping_pong ? "; warpgroups take turns with the matrix units, " + work
                                 : "; warpgroups take no turns: " + (why.empty() ? work : why);
  return Unit{};
}

}  // namespace tilegen::schedule
