#include "schedule/grid/role_plan.h"

#include <algorithm>
#include <map>

#include "analysis/block_work.h"
#include "analysis/empty_tiles.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::ValueId;

namespace {

constexpr int64_t kOtherRegisters = 32;  // addresses, barriers, loop counters
constexpr int64_t kLoadsInFlight = 32;   // elements of tensors that a loop over a fragment reads

std::string number(int64_t v) { return std::to_string(v); }

// Empty when a multiprocessor can have them.
std::string roles_refusal(const target::Target& t, const std::vector<plan::RolePlan>& roles) {
  int64_t all = 0, asked = 0;
  for (const plan::RolePlan& r : roles) all += r.warps * t.warp;
  if (all > t.max_threads)
    return number(all - roles[0].warps * t.warp) + " producing threads beside " +
           number(roles[0].warps * t.warp) + " are not possible on " + t.name;
  const auto as_launched = [](const plan::RolePlan& r) { return r.registers == 0; };
  if (std::all_of(roles.begin(), roles.end(), as_launched)) return "";
  if (const auto r = std::find_if(roles.begin(), roles.end(), as_launched); r != roles.end())
    return "registers are given for other roles than '" + r->name + "', all roles' are needed";
  for (const plan::RolePlan& r : roles)
    if (r.registers % t.register_unit != 0 || r.registers < t.min_role_registers ||
        r.registers > t.max_role_registers)
      return number(r.registers) + " registers are no multiple of " + number(t.register_unit) + " from " +
             number(t.min_role_registers) + " to " + number(t.max_role_registers);
  for (const plan::RolePlan& r : roles) {
    if (r.warps * t.warp % t.warpgroup != 0)
      return "registers are moved between whole warpgroups of " + number(t.warpgroup) + " threads";
    asked += r.registers * r.warps * t.warp;
  }
  const int64_t entry = std::min<int64_t>(t.registers_per_multiprocessor / all, t.registers_per_thread) /
                        t.register_unit * t.register_unit;
  if (asked > entry * all)
    return "the roles' registers are more than the " + number(entry) + " that each of " + number(all) +
           " threads is launched with";
  return "";
}

// Of the ways that have what is said of the roles: the first that leaves computing threads enough registers,
// or that with most. Null: none.
const target::RoleRegisters* best_way(const target::Target& t, const std::vector<target::RoleRegisters>& ways,
                                      int64_t registers, const std::vector<plan::RolePlan>& said) {
  const auto is = [](int64_t wanted, int64_t has) { return wanted == plan::kOpen || wanted == has; };
  const target::RoleRegisters* best = nullptr;
  for (const target::RoleRegisters& w : ways) {
    const bool fits = is(said[0].registers, w.consumer) &&
                      std::all_of(said.begin() + 1, said.end(), [&](const plan::RolePlan& r) {
                        return is(r.warps, w.producer_threads / t.warp) && is(r.registers, w.producer);
                      });
    if (fits && (!best || (best->at_most < registers && w.at_most > best->at_most))) best = &w;
  }
  return best;
}

// What is not said is planned for what is: as one of the ways has it; else, where registers are moved,
// producers have the fewest, and computing threads what is left.
void complete(const target::Target& t, const target::RoleRegisters* way, std::vector<plan::RolePlan>& roles) {
  const auto fill = [](int64_t& field, int64_t planned) {
    if (field == plan::kOpen) field = planned;
  };
  const bool moved =
      std::any_of(roles.begin(), roles.end(), [](const plan::RolePlan& r) { return r.registers > 0; });
  int64_t all = roles[0].warps, others = 0;
  for (size_t r = 1; r < roles.size(); ++r) {
    fill(roles[r].warps, way ? way->producer_threads / t.warp : moved ? t.warpgroup / t.warp : 1);
    fill(roles[r].registers, way ? way->producer : moved ? t.min_role_registers : 0);
    all += roles[r].warps;
    others += roles[r].warps * roles[r].registers;
  }
  const auto units = [&](int64_t registers) { return registers / t.register_unit * t.register_unit; };
  const int64_t entry =
      units(std::min<int64_t>(t.registers_per_multiprocessor / (all * t.warp), t.registers_per_thread));
  const int64_t rest =
      std::min(units((entry * all - others) / roles[0].warps), units(t.registers_per_thread));
  fill(roles[0].registers, way ? way->consumer : moved ? rest : 0);
}

// Which copies a producer makes.
class CopyLists {
 public:
  CopyLists(const std::vector<std::vector<std::string>>& produced, std::vector<plan::RolePlan>& roles)
      : produced_(produced), roles_(roles) {}

  // Empty when every copy has one role, and those of a pipeline the same.
  std::string settle() {
    if (!roles_[0].ops.empty())
      return "role '" + roles_[0].name + "' is the first, which has the operations that no other lists";
    plan::RolePlan* rest = nullptr;
    for (size_t r = 1; r < roles_.size(); ++r) {
      if (roles_[r].ops.empty()) {
        if (rest) return "neither '" + rest->name + "' nor '" + roles_[r].name + "' lists operations";
        rest = &roles_[r];
      }
      for (const std::string& op : roles_[r].ops) {
        if (!is_produced(op))
          return "role '" + roles_[r].name + "' lists '" + op + "', which is no tensor copy to a tile";
        if (const auto [other, fresh] = role_of_.emplace(op, &roles_[r]); !fresh)
          return "roles '" + other->second->name + "' and '" + roles_[r].name + "' both list '" + op + "'";
      }
    }
    for (const auto& pipeline : produced_)
      for (const std::string& op : pipeline) {
        if (!rest && !role_of_.count(op)) return "no role lists '" + op + "'";
        role_of_.emplace(op, rest);
      }
    for (const auto& pipeline : produced_)
      for (const std::string& op : pipeline)
        if (role_of_[op] != role_of_[pipeline.front()])
          return "'" + pipeline.front() + "' and '" + op + "' fill one pipeline, but are of two roles";
    for (size_t r = 1; r < roles_.size(); ++r) {
      roles_[r].ops.clear();
      for (const auto& pipeline : produced_)
        for (const std::string& op : pipeline)
          if (role_of_[op] == &roles_[r]) roles_[r].ops.push_back(op);
      if (roles_[r].ops.empty()) return "nothing is left for role '" + roles_[r].name + "'";
    }
    return "";
  }

 private:
  bool is_produced(const std::string& op) const {
    return std::any_of(produced_.begin(), produced_.end(), [&](const auto& pipeline) {
      return std::find(pipeline.begin(), pipeline.end(), op) != pipeline.end();
    });
  }

  const std::vector<std::vector<std::string>>& produced_;
  std::vector<plan::RolePlan>& roles_;
  std::map<std::string, const plan::RolePlan*> role_of_;
};

// A loop over elements reads a tensor's, other ones for each.
bool reads_elements(const ir::Program& p, const analysis::KernelOp& op) {
  if (p.as<ir::TileOp>(op.stmt) != nullptr || op.form != analysis::OpForm::element) return false;
  return std::any_of(op.view.accesses.begin(), op.view.accesses.end(), [&](const ops::ElementAccess& a) {
    return !a.write && p.buffer(a.buffer).scope == ir::MemScope::global &&
           std::any_of(a.dim_of.begin(), a.dim_of.end(), [](int dim) { return dim != ops::kUniformIndex; });
  });
}

}  // namespace

int64_t fragment_words(const ir::Program& p, const analysis::Value& value, const plan::ValuePlan& plan) {
  return ceil_div(plan.fragment->registers() * ir::dtype_bytes(p.buffer(value.buffer).type), int64_t{4});
}

int64_t fragment_words(const ir::Program& p, const analysis::KernelOps& ops, analysis::ValuePlans values) {
  int64_t sum = 0;
  for (ValueId v : values.ids())
    if (values[v].fragment)
      sum += std::max<int64_t>(1, values[v].slots) * fragment_words(p, ops.values[v], values[v]);
  return sum;
}

int64_t registers_needed(const ir::Program& p, const analysis::KernelOps& ops, analysis::ValuePlans values) {
  const bool loads = std::any_of(ops.ops.begin(), ops.ops.end(),
                                 [&](const analysis::KernelOp& op) { return reads_elements(p, op); });
  return kOtherRegisters + (loads ? kLoadsInFlight : 0) + fragment_words(p, ops, values);
}

Expected<std::vector<plan::RolePlan>> plan_roles(const ir::Kernel& kernel, const target::Target& t,
                                                 int64_t threads, int64_t registers,
                                                 const std::vector<std::vector<std::string>>& produced,
                                                 const plan::KernelSchedule* given) {
  auto illegal = [&](std::string why) {
    return Error(DiagCode::schedule_illegal, kernel.name, "the given roles are not possible: " + why,
                 "leave `roles` out to have them planned", kernel.location);
  };
  const bool said = given && given->roles;
  std::vector<plan::RolePlan> roles;
  if (said) {
    roles = *given->roles;
    if (roles.size() == 1) return illegal("one role alone has all operations, for which the list is empty");
    if (!roles.empty() && produced.empty())
      return illegal("no tile comes by tensor copies, a producer has nothing to do");
  } else if (!produced.empty()) {
    roles.resize(2);
    roles[0].name = "consumer";
    roles[1].name = "producer";
  }
  if (roles.empty()) return roles;
  if (std::string why = CopyLists(produced, roles).settle(); !why.empty()) return illegal(std::move(why));
  if (roles[0].warps != plan::kOpen && roles[0].warps * t.warp != threads)
    return illegal("role '" + roles[0].name + "' has " + number(roles[0].warps) +
                   " warps, but computing are " + number(threads) + " threads");
  roles[0].warps = threads / t.warp;
  const auto ways = target::role_registers(t, threads, static_cast<int64_t>(roles.size()) - 1);
  const target::RoleRegisters* best = best_way(t, ways, registers, roles);
  if (!said) {
    if (!best) return illegal("no room for a producer beside " + number(threads) + " threads");
    roles[1].reason = "computing threads need about " + number(registers) + " registers and may have " +
                      number(best->at_most);
  }
  complete(t, best, roles);
  if (std::string why = roles_refusal(t, roles); said && !why.empty()) return illegal(std::move(why));
  return roles;
}

namespace {

// Empty when blocks can walk over points as given.
std::string walk_refusal(const plan::PersistencePlan& given, const std::vector<plan::RolePlan>& roles,
                         const plan::KernelSchedule& schedule, bool some_idle) {
  if (!given.order.empty() && given.order != "static" && given.order != "dynamic")
    return "order '" + given.order + "' is neither 'static' nor 'dynamic'";
  const bool skips = given.skip_empty_tiles.value_or(false);
  if (!given.persistent)
    return given.order == "dynamic" || skips ? "blocks of one tile have no order of tiles" : "";
  if (roles.empty()) return "it needs a producer, which the kernel has not";
  if (given.dynamic() && schedule.cluster && schedule.cluster->blocks > 1)
    return "blocks of a cluster compute their tiles together, and a dynamic tile scheduler gives one to each";
  if (skips && !given.dynamic()) return "only a dynamic tile scheduler skips tiles ('skip_empty_tiles')";
  if (skips && !some_idle)
    return "no tile can be skipped ('skip_empty_tiles'): at each, a block may write a tensor, as far as "
           "block "
           "indices, sizes and readonly tensors tell";
  return "";
}

}  // namespace

Expected<plan::PersistencePlan> plan_persistence(const ir::Program& p, const ir::Kernel& kernel,
                                                 const analysis::KernelOps& ops, const target::Target& t,
                                                 int64_t registers, const std::vector<plan::RolePlan>& roles,
                                                 int64_t arena_bytes, const plan::KernelSchedule* given) {
  const int64_t reserved = t.reserved_shared_bytes;
  if (given && given->persistence) {
    const bool some_idle = !analysis::store_tests(p, kernel, ops).empty(),
               clustered = given->cluster && given->cluster->blocks > 1;
    plan::PersistencePlan walk = *given->persistence;
    if (walk.persistent && walk.order.empty())
      walk.order = analysis::blocks_differ(p, kernel) && !clustered ? "dynamic" : "static";
    if (walk.dynamic() && !walk.skip_empty_tiles) walk.skip_empty_tiles = some_idle;
    if (const std::string why = walk_refusal(walk, roles, *given, some_idle); !why.empty())
      return Error(DiagCode::schedule_illegal, kernel.name, "the given persistence is not possible: " + why,
                   "leave `persistence` out to have it planned", kernel.location);
    return walk;
  }
  plan::PersistencePlan plan;
  if (roles.empty()) {
    plan.reason = "no producer that could run ahead into the next tile";
    return plan;
  }
  const bool differ = analysis::blocks_differ(p, kernel);
  if (differ && given && given->cluster && given->cluster->blocks > 1) {
    plan.reason =
        "blocks have different amounts of work: the device hands out the next cluster wherever one ends";
    return plan;
  }
  int64_t all = 0;
  for (const plan::RolePlan& r : roles) all += r.warps * t.warp;
  const int64_t by_memory = (t.shared_bytes + reserved) / (arena_bytes + reserved);
  // `registers` is what the code may come to need, mostly more than it takes: where units that issue keep
  // whole warps' registers (target/resident_blocks.h) would be too strict a rule for it.
  const int64_t by_registers =
      roles[0].registers > 0 ? 1
                             : t.registers_per_multiprocessor /
                                   (all * ceil_div(registers, int64_t{t.register_unit}) * t.register_unit);
  const int64_t blocks = std::max<int64_t>(1, std::min(by_memory, by_registers));
  plan.persistent = blocks == 1;
  if (plan.persistent) plan.order = "static";
  if (plan.persistent && differ) {
    plan.order = "dynamic";
    plan.reason =
        "one block fills a multiprocessor, and tiles have different amounts of work: each block takes its "
        "next "
        "one when it is done, whose loads run beside the epilogue of this one";
    plan.skip_empty_tiles = !analysis::store_tests(p, kernel, ops).empty();
    return plan;
  }
  plan.reason =
      blocks == 1
          ? "one block fills a multiprocessor: loads of its next tile run beside the epilogue of this one"
          : number(blocks) + " blocks of a multiprocessor run beside each other's epilogue";
  return plan;
}

}  // namespace tilegen::schedule
