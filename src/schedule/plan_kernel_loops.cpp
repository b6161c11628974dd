// How a kernel's blocks walk over the grid, and its loops over their tiles.
#include <algorithm>

#include "analysis/block_tree.h"
#include "analysis/idle_tiles.h"
#include "analysis/run_ahead.h"
#include "ir/statement_paths.h"
#include "schedule/grid/cluster_plan.h"
#include "schedule/grid/role_plan.h"
#include "schedule/kernel_planner.h"
#include "schedule/pipeline/in_flight_plan.h"
#include "schedule/pipeline/overlap_plan.h"
#include "schedule/pipeline/ping_pong_plan.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

// Who does what, and which points of the grid a block walks over.
Checked KernelPlanner::plan_walk(KernelSchedule& s, int64_t threads) {
  if (!target_.tensor_copy && !(given_ && (given_->roles || given_->persistence || given_->cluster)))
    return Unit{};
  int64_t own_registers = 0;
  for (const auto& [op, gemm] : gemms_) own_registers = std::max(own_registers, gemm.own_registers);
  const int64_t registers = registers_needed(p_, ops_, layouts_.values) + own_registers;
  std::vector<std::vector<std::string>> copies;
  for (const plan::PipelinePlan& c : copy_pipelines_) {
    copies.emplace_back();
    for (OpId op : produced_)
      if (std::find(c.values.begin(), c.values.end(), ops_.values[ops_.ops[op].accesses.back().value].name) !=
          c.values.end())
        copies.back().push_back(ops_.ops[op].path);
  }
  auto roles = plan_roles(kernel_, target_, threads, registers, copies, given_);
  if (!roles) return roles.error();
  if (kernel_.split) return walk_in_parts(s, std::move(*roles));
  if (in_order()) {
    s.roles = std::move(*roles);
    s.persistence.emplace();
    s.cluster.emplace();
    return Unit{};
  }
  auto persistence =
      plan_persistence(p_, kernel_, ops_, target_, registers, *roles, arena(pipelines_.slots), given_);
  if (!persistence) return persistence.error();
  auto cluster = plan_cluster(p_, kernel_, ops_, target_, produced_, layouts_, !roles->empty(), given_);
  if (!cluster) return cluster.error();
  dynamic_tiles_ = persistence->dynamic();
  if (dynamic_tiles_ && !(given_ && given_->persistence && given_->persistence->dynamic()) &&
      arena(pipelines_.slots) > target_.shared_bytes) {
    dynamic_tiles_ = false;
    *persistence = {};
    persistence->reason = "shared memory has no room for points that blocks would take";
  }
  widen_pipelines(persistence->persistent);
  s.cluster = std::move(*cluster);
  s.roles = std::move(*roles);
  s.persistence = std::move(*persistence);
  return Unit{};
}

Error KernelPlanner::no_parts(const std::string& why) const {
  return Error(DiagCode::schedule_illegal, kernel_.name,
               "blocks cannot share the iterations of a loop: " + why, "leave `split` out of the schedule",
               kernel_.location);
}

Error KernelPlanner::no_producer_of_parts() const {
  return no_parts("no producer loads its tiles, and only kernels with one have clusters");
}

// Blocks that share a loop's iterations are a cluster, and have one point.
Checked KernelPlanner::walk_in_parts(KernelSchedule& s, std::vector<plan::RolePlan> roles) {
  if (roles.empty()) return no_producer_of_parts();
  for (ValueId v : parts_)
    if (!layouts_.values[v].fragment)
      return no_parts("'" + ops_.values[v].name + "' takes more registers than there are");
  const ir::Var& part = p_.var(kernel_.split->part);
  const bool shares = !analysis::sum_shares(p_, index_, ops_).empty();
  s.split = split_plan(*kernel_.split, shares ? "cluster_shares" : "cluster");
  s.cluster = plan::ClusterPlan{s.split->parts, part.name, "the blocks of a point share a loop's iterations"};
  s.persistence.emplace().reason = "the blocks of a point share a loop's iterations";
  s.roles = std::move(roles);
  return Unit{};
}

// Of the form that the kernel has.
plan::SplitPlan KernelPlanner::split_plan(const ir::Kernel::Split& form, const char* through) const {
  plan::SplitPlan split;
  p_.exprs.is_const_int(kernel_.grid.front(), &split.parts);
  split.loop = paths_[form.loop.value];
  split.through = through;
  return split;
}

// Of the registers with the sums of a loop that blocks share.
int64_t KernelPlanner::parts_bytes(analysis::ValuePlans values) const {
  int64_t bytes = 0;
  for (ValueId v : parts_)
    if (values[v].fragment)
      bytes += values[v].fragment->registers() * values[v].fragment->threads() *
               ir::dtype_bytes(p_.buffer(ops_.values[v].buffer).type);
  return bytes;
}

// Tiles that are filled once whenever their block runs have a second slot where it runs again and there is
// room: those of the next time come beside the last products of this one.
void KernelPlanner::widen_pipelines(bool persistent) {
  const analysis::BlockTree tree(p_, kernel_);
  const auto in_loop = [&](const plan::PipelinePlan& c) {
    return std::any_of(ops_.ops.begin(), ops_.ops.end(), [&](const KernelOp& op) {
      const auto around = tree.around(op.stmt);
      return produced_.count(ops_.id_of(op)) &&
             ops_.values[op.accesses.back().value].name == c.values.front() &&
             std::any_of(around.begin(), around.end(), [&](ir::StmtId s) { return p_.as<ir::Loop>(s); });
    });
  };
  for (const plan::PipelinePlan& c : copy_pipelines_) {
    if (!c.loop.empty() || !(persistent || in_loop(c))) continue;
    std::map<ValueId, int64_t> slots = pipelines_.slots;
    const plan::PipelinePlan* given = given_ ? plan::find_pipeline(*given_, c.name) : nullptr;
    bool one = given && given->slots == 1;
    for (const std::string& name : c.values)
      if (const plan::ValuePlan* tile = given_ ? plan::find_value(*given_, name) : nullptr)
        one = one || tile->slots == 1;
    if (one) continue;
    for (ValueId v : layouts_.values.ids())
      if (std::find(c.values.begin(), c.values.end(), layouts_.values[v].value) != c.values.end())
        slots[v] = 2;
    if (arena(slots) > target_.shared_bytes) continue;
    pipelines_.slots = slots;
    for (auto [value, count] : slots) layouts_.values[value].slots = count;
  }
}

// Of products that are not refused by now, and of tiles that threads read then.
void KernelPlanner::find_loads(const TensorLoads& found) {
  tensor_loads_ = found;
  for (const auto& [op, why] : refused_) tensor_loads_.products.erase(op);
  find_tile_loads(p_, index_, ops_, dependences_, target_, given_, options_.tensor_copies, tensor_loads_);
  tensor_loads_.by_threads.insert(left_before_.begin(), left_before_.end());
  for (const auto& [op, load] : tensor_loads_.tiles) tensor_loads_.by_threads.erase(op);
  left_before_ = tensor_loads_.by_threads;
  tensor_loads_.by_threads.insert(by_threads_.begin(), by_threads_.end());
  for (const auto& [op, why] : by_threads_) tensor_loads_.tiles.erase(op);
}

// Products that are loaded for, but which warps do better or alone can: where the loads matter they are those
// of tiles that threads read.
Refusals KernelPlanner::left_to_warps() const {
  const auto by_warpgroups = [&](const auto& f) {
    return gemms_.at(f.first).engine == Engine::warpgroup_mma;
  };
  const auto& products = tensor_loads_.products;
  const bool beside = std::any_of(products.begin(), products.end(), by_warpgroups);
  const bool asked = given_ && std::any_of(given_->ops.begin(), given_->ops.end(), [](const plan::OpPlan& g) {
                       return g.engine == Engine::tensor_copy;
                     });
  Refusals left;
  for (const auto& f : products) {
    const std::string& why = gemms_.at(f.first).no_warpgroups;
    if (!by_warpgroups(f) && (beside || asked))
      left.emplace(f.first, why.empty() ? "the schedule gives another instruction" : why);
  }
  return left;
}

// Warpgroups tell the producer that they have read a tile.
Refusals KernelPlanner::unfit_threads(int64_t threads) const {
  Refusals unfit;
  if (threads % target_.warpgroup == 0) return unfit;
  for (const auto& [copy, load] : tensor_loads_.tiles)
    unfit.emplace(copy, std::to_string(threads) + " threads are no whole warpgroups of " +
                            std::to_string(target_.warpgroup) + ", which hand tiles back to a producer");
  return unfit;
}

// The plan of a loop of one stage; nullptr: it has more, or is none.
const plan::LoopPlan* KernelPlanner::one_stage(ir::StmtId loop) const {
  if (!loop.valid()) return nullptr;
  const std::string path = paths_[loop.value];
  for (const plan::LoopPlan& l : pipelines_.loops)
    if (l.loop == path && l.num_stages < 2) return &l;
  return nullptr;
}

// One slot leaves a producer something to run beside where products work on other tiles of the loop.
bool KernelPlanner::overlaps_in_one_slot(ir::StmtId loop) const {
  const auto inside = analysis::ops_inside(p_, ops_, *p_.as<ir::Loop>(loop));
  const auto beside_products = [&](OpId copy) {
    if (std::find(inside.begin(), inside.end(), &ops_.ops[copy]) == inside.end()) return false;
    const auto beside = analysis::ops_beside_idle_tile(p_, ops_, *p_.as<ir::Loop>(loop),
                                                       ops_.ops[copy].accesses.back().value);
    return std::any_of(beside.begin(), beside.end(), [&](const KernelOp* op) {
      return tensor_loads_.products.count(ops_.id_of(*op)) != 0;
    });
  };
  return std::any_of(tensor_loads_.products.begin(), tensor_loads_.products.end(), [&](const auto& product) {
    const ProductLoads& load = product.second;
    return load.loop == loop && std::any_of(load.copies.begin(), load.copies.end(), beside_products);
  });
}

// Whether a producer's copies run beside something in every loop that has one.
bool KernelPlanner::produced_loops_overlap() {
  // Slots of tiles that threads could copy themselves are the first to go, where a second stage is wanted.
  Refusals alone, crowded;
  for (const auto& [product, load] : tensor_loads_.products) {
    const plan::LoopPlan* l = one_stage(load.loop);
    if (!l) continue;
    const bool overlaps = overlaps_in_one_slot(load.loop);
    if (!overlaps)
      alone[product] = "its loop has one stage (" + l->reason + "), a producer would have nothing to overlap";
    if (overlaps && p_.as<ir::Loop>(load.loop)->num_stages == 1) continue;
    for (const auto& [copy, tile] : tensor_loads_.tiles)
      if (tile.loop == load.loop)
        crowded.emplace(copy, "with slots for its tile the loop would have one stage");
  }
  for (const auto& [copy, load] : tensor_loads_.tiles)
    if (const plan::LoopPlan* l = one_stage(load.loop); l && load.alone)
      crowded.emplace(copy,
                      "its loop has one stage (" + l->reason + "), a producer would have nothing to overlap");
  return leave_to_threads(crowded) ? false : !refuse(alone);
}

// Cycles of products, and what stands between them.
PingPongFacts KernelPlanner::ping_pong_facts(int64_t threads) const {
  PingPongFacts facts{target_, {}, {}, {}};
  facts.threads = threads;
  for (const auto& [product, load] : tensor_loads_.products)
    if (load.direct) facts.products[&ops_.ops[product]] = gemms_.at(product).cycles;
  for (OpId op : produced_) facts.copies.insert(&ops_.ops[op]);
  for (const KernelOp& op : ops_.ops)
    if (threads_meet_for(op)) facts.meetings.insert(&op);
  return facts;
}

// A body of several iterations, each with its own registers, has addresses and row terms of all of them at
// once. By ptxas 13.0 two iterations' sums of 128x128 and what they are added to, 192 registers of two
// warpgroups, leave room for nothing else: with a factor of the row 400 bytes are spilled.
constexpr int64_t kTurnRegisters = 16;

// Beside the values of an order in which products run beside the threads' work, of two warpgroups (gradients
// with 224 words of values are not spilled) and of more, by ptxas 13.0: attention of 192 rows, 160 registers,
// is serialised with 144 words, and not with 140.
constexpr int64_t kOrderRegisters = 12, kOrderRegistersOfMany = 20;

// A computing thread has registers for the slots, and as many blocks are resident as before.
bool KernelPlanner::registers_fit(const std::map<ValueId, int64_t>& slots, int64_t threads) const {
  IdVector<ValueId, plan::ValuePlan> values = layouts_.values;
  int64_t own = 0;
  for (const auto& [op, gemm] : gemms_) own = std::max(own, gemm.own_registers);
  const int64_t before = registers_needed(p_, ops_, values) + own;
  for (auto [value, count] : slots) values[value].slots = count;
  const int64_t needed = registers_needed(p_, ops_, values) + own;
  const bool in_turn = std::any_of(slots.begin(), slots.end(), [](const auto& s) { return s.second > 1; });
  const int64_t most = target::most_consumer_registers(target_, threads) - (in_turn ? kTurnRegisters : 0);
  if (needed > most) return false;
  const auto resident = [&](int64_t registers) {
    return std::min(target_.shared_bytes / std::max<int64_t>(1, arena(pipelines_.slots)),
                    target_.registers_per_multiprocessor / (registers * (threads + target_.warp)));
  };
  return resident(needed) >= resident(before);
}

// The order of issue of loops with a producer.
Checked KernelPlanner::order_products(const PingPongFacts& facts) {
  if (in_order()) return Unit{};
  OverlapFacts overlap{facts, {}, 0, [&](const auto& slots) { return registers_fit(slots, facts.threads); },
                       {},    {}};
  const bool many = facts.threads > 2 * target_.warpgroup;
  overlap.missing_words = fragment_words(p_, ops_, layouts_.values) +
                          (many ? kOrderRegistersOfMany : kOrderRegisters) -
                          target::most_consumer_registers(target_, facts.threads);
  const IdVector<ValueId, int64_t> bytes = value_bytes(p_, ops_, layouts_.values, target_);
  for (const plan::PipelinePlan& c : copy_pipelines_) {
    std::set<ValueId>& values = overlap.handed_over.emplace_back();
    for (ValueId v : layouts_.values.ids())
      if (!c.loop.empty() &&
          std::find(c.values.begin(), c.values.end(), layouts_.values[v].value) != c.values.end()) {
        values.insert(v);
        overlap.tile_bytes[v] = bytes[v];
      }
  }
  for (ValueId v : layouts_.values.ids()) {
    const plan::ValuePlan& value = layouts_.values[v];
    const bool converted =
        std::any_of(layouts_.conversions.begin(), layouts_.conversions.end(),
                    [&](const plan::ConversionPlan& c) { return c.value == value.value; }) ||
        std::any_of(layouts_.ops.begin(), layouts_.ops.end(), [&](const plan::OpPlan& op) {
          return std::find(op.through_memory.begin(), op.through_memory.end(), value.value) !=
                 op.through_memory.end();
        });
    if (!value.memory && value.fragment && !converted)
      overlap.registers[v] = fragment_words(p_, ops_.values[v], value);
    const plan::ValuePlan* given = given_ ? plan::find_value(*given_, value.value) : nullptr;
    if (given && !value.memory && given->slots > 1) pipelines_.slots[v] = given->slots;
  }
  std::set<ir::StmtId> loops;
  for (const auto& [product, load] : tensor_loads_.products)
    if (load.direct) loops.insert(load.loop);
  for (ir::StmtId loop : loops)
    for (plan::LoopPlan& l : pipelines_.loops) {
      if (l.loop != paths_[loop.value] || alternations_.count(loop)) continue;
      const plan::LoopPlan* given = given_ ? plan::find_loop(*given_, l.loop) : nullptr;
      std::string note;
      Checked ok = order_loop(p_, ops_, dependences_, loop, overlap, given && !given->stages.empty(), l,
                              pipelines_.slots, note);
      if (!ok) return ok;
      if (!note.empty()) notes_.push_back({l.loop, note});
    }
  return Unit{};
}

// Shared memory that threads write, or a tensor that the program writes, may need a barrier before the
// op or in it.
bool KernelPlanner::threads_meet_for(const KernelOp& op) const {
  const auto load = tensor_loads_.products.find(ops_.id_of(op));
  for (const analysis::ThreadWrittenOperand& w : written_) {
    const bool before = load != tensor_loads_.products.end() && load->second.loop.valid() &&
                        !analysis::written_inside(p_, ops_, w, *p_.as<ir::Loop>(load->second.loop));
    for (const analysis::OpAccess& a : op.accesses)
      if (a.value == w.value && !w.own_rows && !before) return true;
  }
  const auto shared = [&](ValueId value) {
    return layouts_.values[value].memory && !engine_values_.count(value);
  };
  for (const analysis::OpAccess& a : op.accesses)
    if (a.value.valid() ? shared(a.value) : !p_.buffer(a.buffer).read_only) return true;
  for (const auto& [where, value] : ops_.scalar_reads)
    if (where.first == op.stmt && value.valid() && shared(value)) return true;
  if (const auto gemm = gemms_.find(ops_.id_of(op));
      gemm != gemms_.end() && (gemm->second.a_copy || gemm->second.b_copy))
    return true;
  return std::any_of(scratch_.begin(), scratch_.end(),
                     [&](const Scratch& s) { return s.statement == op.path; });
}

// Of loops that a producer fills.
Checked KernelPlanner::plan_loop_ends() {
  Checked result = Unit{};
  InFlightFacts facts;
  facts.copies = produced_;
  for (OpId i : ops_.ops.ids())
    if (layouts_.ops[i].engine == Engine::warpgroup_mma) facts.products.insert(i);
  for (ValueId v : layouts_.values.ids())
    if (!layouts_.values[v].memory) facts.registers.insert(v);
  ir::for_each_statement(p_, kernel_.body, [&](ir::StmtId id, int) {
    const auto* loop = p_.as<ir::Loop>(id);
    const auto own = std::find_if(pipelines_.loops.begin(), pipelines_.loops.end(),
                                  [&](const plan::LoopPlan& l) { return l.loop == paths_[id.value]; });
    if (!loop || own == pipelines_.loops.end() || !result) return;
    bool produced = false;
    facts.rotates_registers = false;
    for (const KernelOp* op : analysis::ops_inside(p_, ops_, *loop)) {
      produced = produced || produced_.count(ops_.id_of(*op)) > 0;
      for (const analysis::OpAccess& a : op->accesses)
        facts.rotates_registers = facts.rotates_registers ||
                                  (facts.registers.count(a.value) > 0 &&
                                   pipelines_.slots.count(a.value) > 0 && pipelines_.slots.at(a.value) > 1);
    }
    if (alternates(*own))
      own->drained = true;
    else if (produced)
      result =
          plan_in_flight(p_, ops_, id, facts, given_ ? plan::find_loop(*given_, own->loop) : nullptr, *own);
  });
  return result;
}

// After the order of issue.
Checked KernelPlanner::plan_ping_pong_loops(const PingPongFacts& facts) {
  std::map<std::string, ir::StmtId> loops;
  ir::for_each_statement(p_, kernel_.body, [&](ir::StmtId id, int) { loops.emplace(paths_[id.value], id); });
  for (plan::LoopPlan& l : pipelines_.loops) {
    if (alternates(l)) continue;
    const plan::LoopPlan* given = given_ ? plan::find_loop(*given_, l.loop) : nullptr;
    const std::optional<bool> asked = in_order() ? std::optional(false)
                                      : given    ? given->ping_pong
                                                 : std::nullopt;
    if (Checked ok = plan_ping_pong(p_, ops_, loops.at(l.loop), facts, asked, l); !ok) return ok;
  }
  return Unit{};
}

}  // namespace tilegen::schedule
