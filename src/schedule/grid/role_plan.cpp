#include "schedule/grid/role_plan.h"

#include <algorithm>

#include "analysis/block_work.h"
#include "analysis/empty_tiles.h"
#include "support/checked.h"

namespace tilegen::schedule {

namespace {

constexpr int64_t kOtherRegisters = 32;  // addresses, barriers, loop counters
constexpr int64_t kLoadsInFlight = 32;   // elements of tensors that a loop over a fragment reads

std::string number(int64_t v) { return std::to_string(v); }

// Empty when a multiprocessor can have them.
std::string roles_refusal(const target::Target& t, int64_t threads, const plan::RolePlan& r) {
  const int64_t all = threads + r.producer_threads;
  if (r.producer_threads % t.warp != 0 || all > t.max_threads)
    return number(r.producer_threads) + " producing threads beside " + number(threads) +
           " are not possible on " + t.name;
  if (r.producer_registers == 0 && r.consumer_registers == 0) return "";
  if (r.producer_registers == 0 || r.consumer_registers == 0)
    return std::string("registers are given for the ") +
           (r.producer_registers == 0 ? "consuming" : "producing") + " threads only, both roles' are needed";
  for (int64_t registers : {r.producer_registers, r.consumer_registers})
    if (registers % t.register_unit != 0 || registers < t.min_role_registers ||
        registers > t.max_role_registers)
      return number(registers) + " registers are no multiple of " + number(t.register_unit) + " from " +
             number(t.min_role_registers) + " to " + number(t.max_role_registers);
  if (r.producer_threads % t.warpgroup != 0 || threads % t.warpgroup != 0)
    return "registers are moved between whole warpgroups of " + number(t.warpgroup) + " threads";
  const int64_t entry = std::min<int64_t>(t.registers_per_multiprocessor / all, t.registers_per_thread) /
                        t.register_unit * t.register_unit;
  if (r.producer_registers * r.producer_threads + r.consumer_registers * threads > entry * all)
    return "the roles' registers are more than the " + number(entry) + " that each of " + number(all) +
           " threads is launched with";
  return "";
}

// Of the ways that have what is said: the first that leaves computing threads enough registers, or that with
// most.
const target::RoleRegisters* best_way(const std::vector<target::RoleRegisters>& ways, int64_t registers,
                                      const plan::RolePlan& said) {
  const auto is = [](int64_t wanted, int64_t has) { return wanted == plan::kOpen || wanted == has; };
  const target::RoleRegisters* best = nullptr;
  for (const target::RoleRegisters& w : ways) {
    if (!is(said.producer_threads, w.producer_threads) || !is(said.producer_registers, w.producer) ||
        !is(said.consumer_registers, w.consumer))
      continue;
    if (!best || (best->at_most < registers && w.at_most > best->at_most)) best = &w;
  }
  return best;
}

// What is not said is planned for what is.
plan::RolePlan completed(plan::RolePlan said, const std::vector<target::RoleRegisters>& ways,
                         int64_t registers, bool produced) {
  const target::RoleRegisters* way =
      produced && said.producer_threads != 0 ? best_way(ways, registers, said) : nullptr;
  const auto fill = [](int64_t& field, int64_t planned) {
    if (field == plan::kOpen) field = planned;
  };
  fill(said.producer_threads, way ? way->producer_threads : 0);
  fill(said.producer_registers, way ? way->producer : 0);
  fill(said.consumer_registers, way ? way->consumer : 0);
  return said;
}

// A loop over elements reads a tensor's, other ones for each.
bool reads_elements(const ir::Program& p, const analysis::KernelOp& op) {
  if (p.as<ir::TileOp>(op.stmt) != nullptr || op.form != analysis::OpForm::element) return false;
  return std::any_of(op.view.accesses.begin(), op.view.accesses.end(), [&](const ops::ElementAccess& a) {
    return !a.write && p.buffer(a.buffer).scope == ir::MemScope::global &&
           std::any_of(a.dim_of.begin(), a.dim_of.end(), [](int dim) { return dim != ops::kUniformIndex; });
  });
}

}  // namespace

int64_t registers_needed(const ir::Program& p, const analysis::KernelOps& ops,
                         const std::vector<plan::ValuePlan>& values) {
  int64_t needed = kOtherRegisters;
  if (std::any_of(ops.ops.begin(), ops.ops.end(),
                  [&](const analysis::KernelOp& op) { return reads_elements(p, op); }))
    needed += kLoadsInFlight;
  for (size_t v = 0; v < values.size(); ++v)
    if (values[v].fragment)
      needed += ceil_div(values[v].fragment->registers() * std::max<int64_t>(1, values[v].slots) *
                             ir::dtype_bytes(p.buffer(ops.values[v].buffer).type),
                         int64_t{4});
  return needed;
}

Expected<plan::RolePlan> plan_roles(const ir::Kernel& kernel, const target::Target& t, int64_t threads,
                                    int64_t registers, bool produced, const plan::KernelSchedule* given) {
  auto illegal = [&](std::string why) {
    return Error(DiagCode::schedule_illegal, kernel.name, "the given roles are not possible: " + why,
                 "leave `roles` out to have them planned", kernel.location);
  };
  const std::vector<target::RoleRegisters> ways = target::role_registers(t, threads);
  if (given && given->roles) {
    const plan::RolePlan r = completed(*given->roles, ways, registers, produced);
    if (r.producer_threads > 0 && !produced)
      return illegal("no tile comes by tensor copies, a producer has nothing to do");
    if (r.producer_threads == 0 && (r.producer_registers != 0 || r.consumer_registers != 0))
      return illegal("registers without a producer");
    if (std::string why = roles_refusal(t, threads, r); !why.empty()) return illegal(std::move(why));
    return r;
  }
  plan::RolePlan roles;
  if (!produced) {
    roles.reason = "no tile of a pipelined loop comes by tensor copies";
    return roles;
  }
  const target::RoleRegisters* best = best_way(ways, registers, {plan::kOpen, plan::kOpen, plan::kOpen, ""});
  if (!best) return illegal("no room for a producer beside " + number(threads) + " threads");
  roles.producer_threads = best->producer_threads;
  roles.producer_registers = best->producer;
  roles.consumer_registers = best->consumer;
  roles.reason = "computing threads need about " + number(registers) + " registers and may have " +
                 number(best->at_most);
  return roles;
}

namespace {

// Empty when blocks can walk over points as given.
std::string walk_refusal(const plan::PersistencePlan& given, const plan::RolePlan& roles,
                         const plan::KernelSchedule& schedule, bool some_idle) {
  if (!given.order.empty() && given.order != "static" && given.order != "dynamic")
    return "order '" + given.order + "' is neither 'static' nor 'dynamic'";
  const bool skips = given.skip_empty_tiles.value_or(false);
  if (!given.persistent)
    return given.order == "dynamic" || skips ? "blocks of one tile have no order of tiles" : "";
  if (roles.producer_threads == 0) return "it needs a producer, which the kernel has not";
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
                                                 int64_t threads, int64_t registers,
                                                 const plan::RolePlan& roles, int64_t arena_bytes,
                                                 const plan::KernelSchedule* given) {
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
  if (roles.producer_threads == 0) {
    plan.reason = "no producer that could run ahead into the next tile";
    return plan;
  }
  const bool differ = analysis::blocks_differ(p, kernel);
  if (differ && given && given->cluster && given->cluster->blocks > 1) {
    plan.reason =
        "blocks have different amounts of work: the device hands out the next cluster wherever one ends";
    return plan;
  }
  const int64_t all = threads + roles.producer_threads;
  const int64_t by_memory = (t.shared_bytes + reserved) / (arena_bytes + reserved);
  const int64_t by_registers =
      roles.consumer_registers > 0
          ? 1
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
