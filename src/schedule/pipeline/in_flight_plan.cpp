#include "schedule/pipeline/in_flight_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::OpId;
using analysis::ValueId;

namespace {

// A statement of the loop's body, in the order of issue.
struct BodyUnit {
  size_t place = 0;  // in the order
  int64_t lag = 0;   // iterations behind the newest
  bool product = false;
  bool awaits_all = false;          // a branch or loop with products of its own
  std::set<ValueId> reads, writes;  // values in registers
};

std::vector<BodyUnit> units_of(const ir::Program& p, const analysis::KernelOps& ops, const ir::Loop& loop,
                               const InFlightFacts& facts, const plan::LoopPlan& plan) {
  std::vector<BodyUnit> units;
  for (ir::StmtId s : loop.body) {
    BodyUnit u;
    u.place = units.size();
    bool first = true;
    const ir::Block one = {s};
    ir::for_each_statement(p, one, [&](ir::StmtId inside, int) {
      for (OpId i : ops.ops.ids()) {
        const KernelOp& op = ops.ops[i];
        if (op.stmt != inside || facts.copies.count(i)) continue;
        for (const analysis::OpAccess& a : op.accesses) {
          if (!facts.registers.count(a.value)) continue;
          if (a.read) u.reads.insert(a.value);
          if (a.write) u.writes.insert(a.value);
        }
        if (facts.products.count(i)) (inside == s ? u.product : u.awaits_all) = true;
        if (!std::exchange(first, false)) continue;
        for (size_t at = 0; at < plan.stages.size(); ++at)
          if (plan.stages[at].first == op.path) {
            u.place = at;
            u.lag = std::max<int64_t>(0, plan.stages[at].second - (plan.num_stages - 1));
          }
      }
    });
    if (!first) units.push_back(std::move(u));
  }
  std::stable_sort(units.begin(), units.end(),
                   [](const BodyUnit& a, const BodyUnit& b) { return a.place < b.place; });
  return units;
}

bool meet(const std::set<ValueId>& a, const std::set<ValueId>& b) {
  return std::any_of(a.begin(), a.end(), [&](ValueId v) { return b.count(v) > 0; });
}

// The unit works on the product's sums, or writes its operand.
bool touches(const BodyUnit& u, const BodyUnit& product) {
  return !u.product &&
         (meet(u.writes, product.reads) || meet(u.writes, product.writes) || meet(u.reads, product.writes));
}

}  // namespace

Checked plan_in_flight(const ir::Program& p, const analysis::KernelOps& ops, ir::StmtId loop,
                       const InFlightFacts& facts, const plan::LoopPlan* given, plan::LoopPlan& plan) {
  const std::vector<BodyUnit> units = units_of(p, ops, *p.as<ir::Loop>(loop), facts, plan);
  const bool lags = std::any_of(units.begin(), units.end(), [](const BodyUnit& u) { return u.lag > 0; });
  // ptxas keeps sums and operands of products in flight over the end of a loop's body in place only where
  // threads do not touch them. A later unit that does so has awaited the product.
  const auto held_over = [&](const std::vector<BodyUnit>::const_iterator product) {
    const auto touched = [&](const BodyUnit& u) { return touches(u, *product); };
    return product->product && std::any_of(units.begin(), product, touched) &&
           std::none_of(product + 1, units.end(),
                        [&](const BodyUnit& u) { return u.awaits_all || touched(u); });
  };
  bool touched = false;
  for (auto u = units.begin(); u != units.end(); ++u) touched = touched || held_over(u);
  plan.drained = facts.rotates_registers || (!lags && touched);
  const auto illegal = [&](const char* field, const char* value, const char* why) {
    return Error(DiagCode::schedule_illegal, plan.loop,
                 std::string("the schedule gives `") + field + "` " + value + ", but " + why,
                 std::string("leave `") + field + "` out to have it planned", p.stmts[loop.value].location);
  };
  if (given && given->drained) {
    if (!*given->drained && facts.rotates_registers)
      return illegal("drained", "false", "its iterations hold values in other registers, in turn");
    plan.drained = given->drained;
  }
  const bool may_peek = lags && !*plan.drained && units.front().product && units.front().lag == 0;
  if (given && given->peek.value_or(false) && !may_peek)
    return illegal("peek", "true",
                   "an iteration does not begin with a product's wait while the one before has work left");
  // After a product there is nothing to gain: the matrix units have work.
  plan.peek = given && given->peek ? *given->peek : may_peek && !units.back().product;
  return Unit{};
}

}  // namespace tilegen::schedule
