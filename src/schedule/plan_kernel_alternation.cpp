// Loops whose iterations two warpgroups have by turns (analysis/alternation.h). Where a tile of scores has as
// many rows as one warpgroup's instructions, two can only share its columns: each instruction then reads the
// rows for half as much work, and both work on elements while the matrix units idle. By turns one has the
// whole tile.
#include <algorithm>

#include "analysis/exchange.h"
#include "analysis/gemm_shape.h"
#include "analysis/run_ahead.h"
#include "ir/statement_paths.h"
#include "schedule/kernel_planner.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

namespace {

constexpr int64_t kWarpgroups = 2;

}  // namespace

std::string KernelPlanner::no_alternation(ir::StmtId id, int64_t threads) const {
  const auto why = not_alternating_.find(id);
  if (why != not_alternating_.end()) return why->second;
  if (target_.warpgroup_mma.empty()) return target_.name + " has no warpgroup instructions";
  if (threads != kWarpgroups * target_.warpgroup)
    return std::to_string(threads) + " threads compute, expected two warpgroups";
  if (in_order() || kernel_.split) return "this form of the kernel has its statements in program order";
  const auto& loop = *p_.as<ir::Loop>(id);
  const plan::LoopPlan* given = given_ ? plan::find_loop(*given_, paths_[id.value]) : nullptr;
  const int64_t stages = given && given->num_stages > 0 ? given->num_stages : loop.num_stages;
  if (stages == 1) return "it has one stage, products of the next iteration would wait for its tiles";
  const analysis::Alternation a = analysis::find_alternation(p_, ops_, id);
  if (!a.refusal.empty()) return a.refusal;
  for (const auto& list : {a.products, a.shared})
    for (OpId i : list) {
      if (ops_.ops[i].form != analysis::OpForm::contraction) continue;
      const auto load = tensor_loads_.products.find(i);
      if (load == tensor_loads_.products.end() || load->second.loop != id || !load->second.direct)
        return "no producer loads the tiles of " + ops_.ops[i].path;
    }
  for (OpId i : a.products)
    if (analysis::gemm_shape(p_, *p_.as<ir::TileOp>(ops_.ops[i].stmt)).m != target_.warpgroup_rows())
      return "the sums of " + ops_.ops[i].path + " have rows for both warpgroups";
  return "";
}

Checked KernelPlanner::find_alternations(int64_t threads) {
  alternations_.clear();
  Checked result = Unit{};
  ir::for_each_statement(p_, kernel_.body, [&](ir::StmtId id, int) {
    const auto* loop = p_.as<ir::Loop>(id);
    if (!loop || loop->kind != ir::LoopKind::pipelined || !result) return;
    const plan::LoopPlan* given = given_ ? plan::find_loop(*given_, paths_[id.value]) : nullptr;
    if (given && given->alternating == false) return;
    const std::string why = no_alternation(id, threads);
    if (not_alternating_.count(id))
      notes_.push_back({paths_[id.value], "warpgroups do not have iterations by turns: " + why});
    if (why.empty())
      alternations_.emplace(id, analysis::find_alternation(p_, ops_, id));
    else if (given && given->alternating == true)
      result =
          Error(DiagCode::schedule_illegal, paths_[id.value],
                "the schedule has warpgroups have the loop's iterations by turns (alternating), but " + why,
                "leave `alternating` out to have it decided", p_.stmts[id.value].location);
  });
  return result;
}

bool KernelPlanner::alternates(const plan::LoopPlan& l) const { return l.alternating.value_or(false); }

std::set<OpId> KernelPlanner::done_by_each(bool products) const {
  std::set<OpId> all;
  for (const auto& [loop, a] : alternations_) {
    const std::vector<OpId>& list = products ? a.products : a.work;
    all.insert(list.begin(), list.end());
  }
  return all;
}

// Of each warpgroup.
void KernelPlanner::add_handed_rows() {
  for (const auto& [loop, a] : alternations_)
    for (const analysis::Alternation::Row& r : a.rows) {
      const ValueId v = r.value;
      const ir::DType type = p_.buffer(ops_.values[v].buffer).type;
      const int64_t elements =
          analysis::exchange_layout(ops_.values[v].shape, type, target_).output_extent(0);
      const std::string& path = paths_[loop.value];
      scratch_.push_back({path, plan::Storage::scratch, path, ops_.values[v].name,
                          kWarpgroups * elements * ir::dtype_bytes(type)});
    }
}

// What is seen once engines, layouts, stages and slots are.
std::string KernelPlanner::alternation_breaks(ir::StmtId id, const analysis::Alternation& a) const {
  const auto plan = std::find_if(pipelines_.loops.begin(), pipelines_.loops.end(),
                                 [&](const plan::LoopPlan& l) { return l.loop == paths_[id.value]; });
  if (plan == pipelines_.loops.end() || plan->num_stages < 2) return "shared memory has room for one stage";
  for (const auto& list : {a.products, a.shared})
    for (OpId i : list)
      if (const auto gemm = gemms_.find(i); gemm != gemms_.end()) {
        if (gemm->second.engine != Engine::warpgroup_mma || gemm->second.a_copy || gemm->second.b_copy)
          return ops_.ops[i].path + " is no product of warpgroups by itself";
      }
  for (OpId i : a.products)
    if (layouts_.ops[i].warps_m != target_.warpgroup_warps() || layouts_.ops[i].warps_n != 1)
      return ops_.ops[i].path + " is shared by both warpgroups";
  for (const analysis::Alternation::Row& r : a.rows)
    if (!layouts_.values[r.value].fragment) return layouts_.values[r.value].value + " is held in memory";
  for (OpId i : a.work) {
    if (!layouts_.ops[i].through_memory.empty()) return ops_.ops[i].path + " takes values through memory";
    for (const Scratch& s : scratch_)
      if (s.statement == ops_.ops[i].path) return "threads of both warpgroups meet for " + ops_.ops[i].path;
    for (const analysis::OpAccess& x : ops_.ops[i].accesses) {
      if (!x.write || !layouts_.values[x.value].memory) continue;
      const auto tile =
          std::find_if(written_.begin(), written_.end(), [&](const auto& w) { return w.value == x.value; });
      const auto slots = pipelines_.slots.find(x.value);
      if (tile == written_.end() || slots == pipelines_.slots.end() || slots->second != kWarpgroups)
        return "shared memory has no room for a second '" + ops_.values[x.value].name + "'";
    }
  }
  // What is written outside of the loop would be used by both at other times.
  for (const analysis::ThreadWrittenOperand& w : written_)
    for (OpId product : w.products) {
      const bool here = std::find(a.products.begin(), a.products.end(), product) != a.products.end() ||
                        std::find(a.shared.begin(), a.shared.end(), product) != a.shared.end();
      if (here && !analysis::written_inside(p_, ops_, w, *p_.as<ir::Loop>(id)))
        return "threads write '" + ops_.values[w.value].name + "' outside of the loop";
    }
  return "";
}

bool KernelPlanner::give_up_alternations(const std::string& why) {
  if (alternations_.empty()) return false;
  for (const auto& [loop, a] : alternations_) not_alternating_.emplace(loop, why);
  alternations_.clear();
  return true;
}

bool KernelPlanner::alternations_hold() {
  const auto refused = not_alternating_.size();
  for (const auto& [loop, a] : alternations_)
    if (std::string why = alternation_breaks(loop, a); !why.empty())
      not_alternating_.emplace(loop, std::move(why));
  if (not_alternating_.size() != refused) return false;
  for (plan::LoopPlan& l : pipelines_.loops)
    for (const auto& [loop, a] : alternations_) {
      if (l.loop != paths_[loop.value]) continue;
      l.alternating = true;
      l.ping_pong = false;
      l.reason +=
          "; warpgroups have iterations by turns: the scores of one are whole, and made beside the "
          "other's products";
    }
  return true;
}

}  // namespace tilegen::schedule
