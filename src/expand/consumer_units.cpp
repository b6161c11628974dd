#include "expand/consumer_units.h"

#include <algorithm>

namespace tilegen::expand {

ConsumerUnits::ConsumerUnits(Expander& x, const ir::Loop& loop, StmtId id) : x_(x) {
  const plan::LoopPlan* plan = plan::find_loop(x.schedule(), x.path(id));
  ordered = plan && plan->ping_pong.value_or(false);
  std::vector<std::pair<size_t, ConsumerUnit>> found;  // by place in the schedule's order
  for (StmtId s : loop.body) {
    if (x.fills_pipeline(s)) continue;
    ConsumerUnit u;
    u.stmt = s;
    size_t at = found.size();
    if (const KernelOp* op = first_op(s)) {
      const plan::OpPlan* how = x.plan_of(*op);
      const auto* product = x.program().as<ir::TileOp>(s);
      u.product = product && how && how->engine == plan::Engine::warpgroup_mma;
      u.waits = u.product && product->flag(ir::gemm_attr::promote);
      for (size_t i = 0; plan && i < plan->stages.size(); ++i)
        if (plan->stages[i].first == op->path) {
          at = i;
          u.lag = std::max<int64_t>(0, plan->stages[i].second - (plan->num_stages - 1));
        }
    }
    touched(s, u);
    lagging = lagging || u.lag > 0;
    found.push_back({at, std::move(u)});
  }
  if (plan && plan->stages.size() >= found.size())
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [at, u] : found) units.push_back(std::move(u));
  for (size_t i = 0; i < x.pipelines().size(); ++i)
    if (x.pipelines()[i].transport == Transport::tensor_copy) use_of(static_cast<int>(i), id);
}

// Of a statement, which may be a branch or a loop.
const KernelOp* ConsumerUnits::first_op(StmtId id) const {
  const ir::Block one = {id};
  const KernelOp* first = nullptr;
  ir::for_each_statement(x_.program(), one, [&](StmtId inside, int) {
    if (!first) first = x_.op(inside);
  });
  return first;
}

void ConsumerUnits::touched(StmtId id, ConsumerUnit& u) const {
  const ir::Block one = {id};
  const auto concerns = [&](int value) {
    return value >= 0 && (x_.in_registers(value) || x_.is_written_operand(value));
  };
  ir::for_each_statement(x_.program(), one, [&](StmtId s, int) {
    if (const KernelOp* op = x_.op(s))
      for (const analysis::OpAccess& a : op->accesses) {
        if (!concerns(a.value)) continue;
        if (a.read) u.reads.insert(a.value);
        if (a.write) (x_.in_turn(a.value) ? u.in_turn : u.writes).insert(a.value);
      }
    for (const auto& [where, value] : x_.ops().scalar_reads)
      if (where.first == s && concerns(value)) u.reads.insert(value);
  });
}

void ConsumerUnits::use_of(int pipeline, StmtId loop) {
  const Pipeline& line = x_.pipelines()[static_cast<size_t>(pipeline)];
  std::vector<size_t> users;
  for (size_t u = 0; u < units.size(); ++u)
    if (x_.touches(units[u].stmt, line.values)) users.push_back(u);
  if (!line.loop.valid()) {
    if (!users.empty()) once.push_back(pipeline);
    return;
  }
  if (line.loop != loop) return;
  const auto products = std::count_if(users.begin(), users.end(), [&](size_t u) { return units[u].product; });
  if (users.empty() || (products > 0 && products != static_cast<std::ptrdiff_t>(users.size())))
    return x_.fail(x_.path(loop),
                   "channel '" + line.name + "' is used by products of warpgroups and by threads, or by none",
                   "leave `channels` out of the schedule to have them planned");
  const auto by_time = [&](size_t a, size_t b) {
    return std::pair(units[a].lag, a) < std::pair(units[b].lag, b);
  };
  units[*std::min_element(users.begin(), users.end(), by_time)].first.push_back(pipeline);
  units[*std::max_element(users.begin(), users.end(), by_time)].last.push_back(pipeline);
}

}  // namespace tilegen::expand
