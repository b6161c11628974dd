#include "schedule/role_plan.h"

#include <algorithm>

#include "schedule/idle_points.h"
#include "schedule/work_order.h"
#include "support/checked.h"
#include "target/role_registers.h"

namespace tilegen::schedule {

namespace {

constexpr int64_t kOtherRegisters = 32;  // addresses, barriers, loop counters
constexpr int64_t kLoadsInFlight = 32;   // elements of tensors that a loop over a fragment reads
constexpr int64_t kUnit = 8, kWarpgroup = 128, kLeast = 24, kMost = 256;

std::string number(int64_t v) { return std::to_string(v); }

// Empty when a multiprocessor can have them.
std::string roles_refusal(const target::Target& t, int64_t threads, const plan::RolePlan& r) {
  const int64_t all = threads + r.producer_threads;
  if (r.producer_threads % t.warp != 0 || all > t.max_threads)
    return number(r.producer_threads) + " producing threads beside " + number(threads) + " are not possible on " + t.name;
  if (r.producer_registers == 0 && r.consumer_registers == 0) return "";
  if (r.producer_registers == 0 || r.consumer_registers == 0)
    return std::string("registers are given for the ") + (r.producer_registers == 0 ? "consuming" : "producing") +
           " threads only, both roles' are needed";
  for (int64_t registers : {r.producer_registers, r.consumer_registers})
    if (registers % kUnit != 0 || registers < kLeast || registers > kMost)
      return number(registers) + " registers are no multiple of 8 from 24 to 256";
  if (r.producer_threads % kWarpgroup != 0 || threads % kWarpgroup != 0)
    return "registers are moved between whole warpgroups of 128 threads";
  const int64_t entry =
      std::min<int64_t>(t.registers_per_multiprocessor / all, t.registers_per_thread) / kUnit * kUnit;
  if (r.producer_registers * r.producer_threads + r.consumer_registers * threads > entry * all)
    return "the roles' registers are more than the " + number(entry) + " that each of " + number(all) +
           " threads is launched with";
  return "";
}

// A loop over elements reads a tensor's, other ones for each.
bool reads_elements(const ir::Program& p, const infer::KernelOp& op) {
  if (p.as<ir::TileOp>(op.stmt) != nullptr || op.form != infer::OpForm::element) return false;
  return std::any_of(op.view.accesses.begin(), op.view.accesses.end(), [&](const ops::ElementAccess& a) {
    return !a.write && p.buffer(a.buffer).scope == ir::MemScope::global &&
           std::any_of(a.dim_of.begin(), a.dim_of.end(), [](int dim) { return dim != ops::kUniformIndex; });
  });
}

}  // namespace

int64_t registers_needed(const ir::Program& p, const infer::KernelOps& ops, const std::vector<plan::ValuePlan>& values) {
  int64_t needed = kOtherRegisters;
  if (std::any_of(ops.ops.begin(), ops.ops.end(), [&](const infer::KernelOp& op) { return reads_elements(p, op); }))
    needed += kLoadsInFlight;
  for (size_t v = 0; v < values.size(); ++v)
    if (values[v].fragment)
      needed += ceil_div(values[v].fragment->registers() * ir::dtype_bytes(p.buffer(ops.values[v].buffer).type), int64_t{4});
  return needed;
}

Expected<plan::RolePlan> plan_roles(const ir::Kernel& kernel, const target::Target& t, int64_t threads,
                                    int64_t registers, bool produced, const plan::KernelSchedule* given) {
  auto illegal = [&](std::string why) {
    return Error(DiagCode::schedule_illegal, kernel.name, "the given roles are not possible: " + why,
                 "leave `roles` out to have them planned", kernel.location);
  };
  if (given && given->roles) {
    const plan::RolePlan& r = *given->roles;
    if (r.producer_threads > 0 && !produced) return illegal("no tile comes by tensor copies, a producer has nothing to do");
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
  const std::vector<target::RoleRegisters> ways = target::role_registers(t, threads);
  auto best = std::find_if(ways.begin(), ways.end(), [&](const auto& w) { return w.at_most >= registers; });
  if (best == ways.end())
    best = std::max_element(ways.begin(), ways.end(), [](const auto& a, const auto& b) { return a.at_most < b.at_most; });
  if (best == ways.end()) return illegal("no room for a producer beside " + number(threads) + " threads");
  roles.producer_threads = best->producer_threads;
  roles.producer_registers = best->producer;
  roles.consumer_registers = best->consumer;
  roles.reason = "computing threads need about " + number(registers) + " registers and may have " + number(best->at_most);
  return roles;
}

namespace {

// Empty when blocks can walk over points as given.
std::string walk_refusal(const plan::PersistencePlan& given, const plan::RolePlan& roles, const plan::KernelSchedule& schedule,
                         bool some_idle) {
  if (given.order != "static" && given.order != "claimed")
    return "order '" + given.order + "' is neither 'static' nor 'claimed'";
  if (!given.persistent) return given.order == "static" ? "" : "blocks of one point have no order to walk in";
  if (roles.producer_threads == 0) return "it needs a producer, which the kernel has not";
  if (given.claimed() && schedule.cluster && schedule.cluster->blocks > 1)
    return "blocks of a cluster walk their points together, none claims one for itself";
  if (given.skips_idle && !given.claimed()) return "only points that are claimed can be passed over ('skips_idle')";
  if (given.skips_idle && !some_idle)
    return "no point can be passed over ('skips_idle'): at each, a block may write a tensor, as far as block indices, sizes and what nobody "
           "writes tell";
  return "";
}

}  // namespace

Expected<plan::PersistencePlan> plan_persistence(const ir::Program& p, const ir::Kernel& kernel, const infer::KernelOps& ops,
                                                 const target::Target& t, int64_t threads, int64_t registers, const plan::RolePlan& roles,
                                                 int64_t arena_bytes, const plan::KernelSchedule* given) {
  constexpr int64_t kReserved = 1024;  // shared memory of a block that the system keeps
  if (given && given->persistence) {
    if (const std::string why = walk_refusal(*given->persistence, roles, *given, !store_tests(p, kernel, ops).empty()); !why.empty())
      return Error(DiagCode::schedule_illegal, kernel.name, "the given persistence is not possible: " + why,
                   "leave `persistence` out to have it planned", kernel.location);
    return *given->persistence;
  }
  plan::PersistencePlan plan;
  if (roles.producer_threads == 0) {
    plan.reason = "no producer that could run ahead into the next tile";
    return plan;
  }
  const bool differ = blocks_differ(p, kernel);
  if (differ && given && given->cluster && given->cluster->blocks > 1) {
    plan.reason = "blocks have different amounts of work: the device hands out the next cluster wherever one ends";
    return plan;
  }
  const int64_t all = threads + roles.producer_threads;
  const int64_t by_memory = (t.shared_bytes + kReserved) / (arena_bytes + kReserved);
  const int64_t by_registers = roles.consumer_registers > 0
                                   ? 1
                                   : t.registers_per_multiprocessor / (all * ceil_div(registers, kUnit) * kUnit);
  const int64_t blocks = std::max<int64_t>(1, std::min(by_memory, by_registers));
  plan.persistent = blocks == 1;
  if (plan.persistent && differ) {
    plan.order = "claimed";
    plan.reason = "one block fills a multiprocessor, and blocks have different amounts of work: each claims its next tile, "
                  "whose loads run beside the epilogue of this one";
    plan.skips_idle = !store_tests(p, kernel, ops).empty();
    return plan;
  }
  plan.reason = blocks == 1 ? "one block fills a multiprocessor: loads of its next tile run beside the epilogue of this one"
                            : number(blocks) + " blocks of a multiprocessor run beside each other's epilogue";
  return plan;
}

}  // namespace tilegen::schedule
