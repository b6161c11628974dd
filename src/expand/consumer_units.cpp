#include "expand/consumer_units.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/op_kinds.h"

namespace tilegen::expand {

ConsumerUnits::ConsumerUnits(Expander& x, const ir::Loop& loop, StmtId id, bool in_order) : x_(x) {
  const plan::LoopPlan* plan = in_order ? nullptr : plan::find_loop(x.schedule(), x.path(id));
  ordered = plan && plan->ping_pong.value_or(false);
  alternating = plan && plan->alternating.value_or(false);
  std::vector<std::pair<size_t, ConsumerUnit>> found;  // by place in the schedule's order
  StmtId fill;
  for (StmtId s : loop.body) {
    if (x.fills_pipeline(s) && x.op(s)) continue;
    if (x.elided(s)) {
      fill = s;
      continue;
    }
    ConsumerUnit u = unit_of(x, s);
    u.cleared_by = std::exchange(fill, StmtId());
    size_t at = found.size();
    if (const KernelOp* op = first_op(s))
      for (size_t i = 0; plan && i < plan->stages.size(); ++i)
        if (plan->stages[i].first == op->path) {
          at = i;
          u.lag = std::max<int64_t>(0, plan->stages[i].second - (plan->num_stages - 1));
        }
    most_lag = std::max(most_lag, u.lag);
    found.push_back({at, std::move(u)});
  }
  if (plan && plan->stages.size() >= found.size())
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [at, u] : found) units.push_back(std::move(u));
  for (size_t i = 0; i < x.pipelines().size(); ++i)
    if (x.pipelines()[i].transport == Transport::tensor_copy && x.pipelines()[i].loop == id)
      use_of(static_cast<int>(i));
}

// Of a statement, which may be a branch or a loop.
const KernelOp* ConsumerUnits::first_op(StmtId id) const {
  const ir::Block one = {id};
  const KernelOp* first = nullptr;
  ir::for_each_statement(x_.program(), one, [&](StmtId inside, int) {
    if (!first && !x_.fills_pipeline(inside)) first = x_.op(inside);
  });
  return first;
}

bool meet(const std::set<ValueId>& a, const std::set<ValueId>& b) {
  return std::any_of(a.begin(), a.end(), [&](ValueId v) { return b.count(v) > 0; });
}

bool overwrites(const ConsumerUnit& product) {
  return product.cleared_by.valid() || !meet(product.reads, product.writes);
}

std::set<ValueId> operands(const ConsumerUnit& product) {
  std::set<ValueId> only;
  std::set_difference(product.reads.begin(), product.reads.end(), product.writes.begin(),
                      product.writes.end(), std::inserter(only, only.end()));
  return only;
}

ConsumerUnit unit_of(const Expander& x, StmtId id) {
  ConsumerUnit u;
  u.stmt = id;
  u.product = x.is_product(id);
  u.waits = u.product && x.program().as<ir::TileOp>(id)->flag(ir::gemm_attr::promote);
  u.holds_products = x.holds_products(id);
  const ir::Block one = {id};
  const auto concerns = [&](ValueId value) {
    return value.valid() && (x.in_registers(value) || x.is_written_operand(value));
  };
  ir::for_each_statement(x.program(), one, [&](StmtId s, int) {
    if (const KernelOp* op = x.op(s))
      for (const analysis::OpAccess& a : op->accesses) {
        if (!concerns(a.value)) continue;
        if (a.read) u.reads.insert(a.value);
        if (a.write) (x.has_slots(a.value) ? u.slotted : u.writes).insert(a.value);
      }
    for (const auto& [where, value] : x.ops().scalar_reads)
      if (where.first == s && concerns(value)) u.reads.insert(value);
  });
  if (u.product)
    for (ValueId v : operands(u))
      if (x.in_registers(v)) u.registers.insert(v);
  return u;
}

void ConsumerUnits::use_of(int pipeline) {
  const Pipeline& line = x_.pipelines()[static_cast<size_t>(pipeline)];
  std::vector<size_t> users;
  for (size_t u = 0; u < units.size(); ++u)
    if (x_.touches(units[u].stmt, line.values)) users.push_back(u);
  if (users.empty())
    return x_.fail(x_.ops().ops[line.copies.front()].path,
                   "pipeline '" + line.name + "' is used by nobody in the loop that fills it",
                   "leave `pipelines` out of the schedule to have them planned");
  const auto by_time = [&](size_t a, size_t b) {
    return std::pair(units[a].lag, a) < std::pair(units[b].lag, b);
  };
  units[*std::min_element(users.begin(), users.end(), by_time)].first.push_back(pipeline);
  units[*std::max_element(users.begin(), users.end(), by_time)].last.push_back(pipeline);
}

}  // namespace tilegen::expand
