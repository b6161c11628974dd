#include "lower/channel_units.h"

#include <algorithm>

namespace tilegen::lower {

ChannelUnits::ChannelUnits(KernelLowering& k, const ir::Loop& loop, const std::string& origin)
    : k_(k), origin_(origin) {
  const plan::LoopPlan* plan = plan::find_loop(k_.schedule_, origin_);
  turns = plan && plan->ping_pong.value_or(false);
  std::vector<size_t> place;
  for (ir::StmtId id : loop.body) {
    if (k_.fills_channel(id)) continue;
    ChannelUnit u;
    u.stmt = id;
    size_t at = units.size();
    if (const analysis::KernelOp* op = first_op(id)) {
      const plan::OpPlan* how = plan::find_op(k_.schedule_, op->path);
      u.product = how && how->engine == plan::Engine::warpgroup_mma;
      u.waits = u.product && k_.p_.as<ir::TileOp>(id)->flag(ir::gemm_attr::promote);
      for (size_t i = 0; plan && i < plan->stages.size(); ++i)
        if (plan->stages[i].first == op->path) {
          at = i;
          u.lag = std::max<int64_t>(0, plan->stages[i].second - (plan->num_stages - 1));
        }
    }
    touched(id, u);
    place.push_back(at);
    lagging = lagging || u.lag > 0;
    units.push_back(std::move(u));
  }
  std::vector<size_t> order(units.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const bool listed = plan && plan->stages.size() >= units.size();
  if (listed)
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place[a] < place[b]; });
  std::vector<ChannelUnit> sorted;
  for (size_t i : order) sorted.push_back(std::move(units[i]));
  units = std::move(sorted);
  for (const Channel& c : k_.channels_) use_of(c);
}

// Of a statement, which may be a branch or a loop.
const analysis::KernelOp* ChannelUnits::first_op(ir::StmtId id) const {
  const ir::Block one = {id};
  const analysis::KernelOp* first = nullptr;
  ir::for_each_statement(k_.p_, one, [&](ir::StmtId inside, int) {
    const auto op = k_.op_of_.find(inside);
    if (!first && op != k_.op_of_.end()) first = op->second;
  });
  return first;
}

void ChannelUnits::touched(ir::StmtId id, ChannelUnit& u) const {
  const ir::Block one = {id};
  auto concerns = [&](int value) {
    return value >= 0 && (k_.in_registers(value) || k_.is_written_operand(value));
  };
  ir::for_each_statement(k_.p_, one, [&](ir::StmtId s, int) {
    if (const auto it = k_.op_of_.find(s); it != k_.op_of_.end())
      for (const analysis::OpAccess& a : it->second->accesses) {
        if (!concerns(a.value)) continue;
        if (a.read) u.reads.insert(a.value);
        if (a.write) (k_.in_turn(a.value) ? u.turns : u.writes).insert(a.value);
      }
    for (const auto& [where, value] : k_.ops_.scalar_reads)
      if (where.first == s && concerns(value)) u.reads.insert(value);
  });
}

// A statement, which may be a branch or a loop.
bool ChannelUnits::uses(ir::StmtId id, const Channel& c) const {
  const ir::Block one = {id};
  bool any = false;
  ir::for_each_statement(k_.p_, one, [&](ir::StmtId inside, int) {
    const auto op = k_.op_of_.find(inside);
    if (op == k_.op_of_.end()) return;
    const auto& accesses = op->second->accesses;
    any = any || std::any_of(accesses.begin(), accesses.end(),
                             [&](const auto& a) { return c.values.count(a.value) > 0; });
  });
  return any;
}

void ChannelUnits::use_of(const Channel& c) {
  std::vector<size_t> users;
  for (size_t u = 0; u < units.size(); ++u)
    if (uses(units[u].stmt, c)) users.push_back(u);
  if (c.plan->loop.empty()) {
    if (!users.empty()) once.push_back(&c);
    return;
  }
  if (c.plan->loop != origin_) return;
  const auto products = std::count_if(users.begin(), users.end(), [&](size_t u) { return units[u].product; });
  if (users.empty() || (products > 0 && products != static_cast<std::ptrdiff_t>(users.size())))
    return k_.fail(
        DiagCode::schedule_illegal, origin_,
        "channel '" + c.plan->name + "' is used by products of warpgroups and by threads, or by none",
        "leave `channels` out of the schedule to have them planned");
  const auto by_time = [&](size_t a, size_t b) {
    return std::pair(units[a].lag, a) < std::pair(units[b].lag, b);
  };
  units[*std::min_element(users.begin(), users.end(), by_time)].first.push_back(&c);
  units[*std::max_element(users.begin(), users.end(), by_time)].last.push_back(&c);
}

}  // namespace tilegen::lower
