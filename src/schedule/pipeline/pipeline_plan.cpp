#include "schedule/pipeline/pipeline_plan.h"

#include <algorithm>

#include "analysis/block_tree.h"
#include "analysis/run_ahead.h"
#include "ir/statement_paths.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::OpId;
using analysis::ValueId;

namespace {

constexpr int64_t kDefaultStages = 3, kProducedStages = 4;
// Of a block that has a multiprocessor for itself: nobody else's loads hide its own's latency. Measured on an
// H200 (bench/results/default_stages.json).
constexpr int64_t kSingleWaveStages = 8;

class LoopPlanner {
 public:
  LoopPlanner(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
              analysis::LoopDependences& dependences, const target::Target& t,
              const IdVector<ValueId, int64_t>& bytes, const ArenaBytes& arena,
              const std::set<OpId>& produced, bool single_wave, const plan::KernelSchedule* given,
              const std::map<OpId, std::string>& not_loaded, int64_t most_stages, PipelineResult& out)
      : p_(p),
        ops_(ops),
        dependences_(dependences),
        target_(t),
        bytes_(bytes),
        arena_(arena),
        single_wave_(single_wave),
        given_(given),
        not_loaded_(not_loaded),
        most_stages_(most_stages),
        out_(out),
        paths_(p, kernel),
        tree_(p, p.kernels[static_cast<size_t>(kernel)]) {
    for (OpId op : produced) produced_.insert(&ops.ops[op]);
  }

  void loop(ir::StmtId id, const ir::Loop& loop) {
    plan::LoopPlan plan;
    plan.loop = paths_[id.value];
    const std::vector<const analysis::KernelOp*> body = analysis::ops_inside(p_, ops_, loop);
    const bool produced = fed(id);
    std::vector<const analysis::KernelOp*> ahead;
    for (const auto* op : body)
      if (runs_ahead(id, *op, produced)) ahead.push_back(op);

    const plan::LoopPlan* given = given_ ? plan::find_loop(*given_, plan.loop) : nullptr;
    if (!target_.loads_ahead()) {
      plan.num_stages = 1;
      plan.reason = "one thread per block: nothing to overlap, loads are prefetched by the hardware";
      ahead.clear();
    } else if (given && given->num_stages > 0 && !ahead.empty()) {
      plan.num_stages = given->num_stages;
      plan.reason = "given";
    } else {
      plan.num_stages = fitting_stages(loop, ahead, produced, plan);
    }
    for (const auto* op : body)
      plan.stages.push_back({op->path, std::find(ahead.begin(), ahead.end(), op) != ahead.end()
                                           ? first_stage(*op, plan.num_stages)
                                           : plan.num_stages - 1});
    if (given && !given->stages.empty()) take_stages(*given, id, ahead, produced, plan);
    if (plan.num_stages > 1)
      for (const auto* op : ahead)
        for (const auto& a : op->accesses)
          if (takes_slots(*op, a))
            out_.slots[a.value] = std::max(out_.slots[a.value], slots_of(plan.num_stages));
    out_.loops.push_back(std::move(plan));
  }

  // A producer fills tiles of its iterations.
  bool fed(ir::StmtId loop) const {
    return std::any_of(produced_.begin(), produced_.end(),
                       [&](const analysis::KernelOp* op) { return tree_.loop_of(op->stmt) == loop; });
  }

 private:
  bool through_registers() const { return !target_.async_copy(); }
  // A fragment has no slots: the registers of its next iteration are the copy's.
  int64_t first_stage(const analysis::KernelOp& op, int64_t stages) const {
    return analysis::is_fragment_load(p_, op) ? std::max<int64_t>(0, stages - 2) : 0;
  }
  bool takes_slots(const analysis::KernelOp& op, const analysis::OpAccess& a) const {
    return a.write && a.value.valid() && !analysis::is_fragment_load(p_, op);
  }
  int64_t slots_of(int64_t stages) const {
    return through_registers() ? std::max<int64_t>(1, stages - 1) : stages;
  }

  // What may run ahead may do so by any number of iterations that it has slots for. Ops beside a producer's
  // copies are issued in the given order, which is looked at when products are ordered (overlap_plan.h).
  void take_stages(const plan::LoopPlan& given, ir::StmtId loop,
                   const std::vector<const analysis::KernelOp*>& ahead, bool produced, plan::LoopPlan& plan) {
    std::map<std::string, int64_t> stages(given.stages.begin(), given.stages.end());
    const auto stage_of = [&](const std::string& path) {
      const auto it = stages.find(path);
      return it == stages.end() ? -1 : it->second;
    };
    std::string why;
    for (auto& [path, stage] : plan.stages) {
      const int64_t newest = plan.num_stages - 1, asked = stage_of(path);
      const auto is = [name = std::string_view(path)](const analysis::KernelOp* op) {
        return op->path == name;
      };
      const bool is_ahead = std::any_of(ahead.begin(), ahead.end(), is);
      if (asked < 0)
        why = "`stages` leaves out " + path;
      else if (produced ? is_ahead && asked != 0
                        : asked != newest && (!is_ahead || asked > newest || asked < stage))
        why = "`stages` gives " + path + " stage " + std::to_string(asked) + ", expected " +
              (produced   ? "0: its producer copies as early as slots are free"
               : is_ahead ? std::to_string(stage) + " to " + std::to_string(newest)
                          : std::to_string(newest) +
                                ": only copies from tensors that depend on nothing in the loop run ahead");
      if (!produced) stage = asked;
      stages.erase(path);
    }
    if (!stages.empty()) why = "`stages` names " + stages.begin()->first + ", which is no op of the loop";
    if (why.empty() && !produced && given.stages != plan.stages)
      why = "`stages` has another order than the program, in which a loop without a producer issues";
    if (produced) plan.stages = given.stages;
    if (why.empty() || out_.refused) return;
    out_.refused =
        Error(DiagCode::schedule_illegal, plan.loop, "the given stages of the loop are not possible: " + why,
              "leave `stages` out to have it planned", p_.stmt(loop).location);
  }

  // Whether the copy may run in an earlier iteration; a copy between the right memories that may not is
  // noted. Where a producer fills the loop's tiles, only its copies do.
  bool runs_ahead(ir::StmtId id, const analysis::KernelOp& op, bool produced) {
    const bool loop = target_.async_copy() && analysis::moving_store(p_, op);
    const bool fragment =
        target_.register_copies && through_registers() && analysis::is_fragment_load(p_, op);
    if (!loop && !fragment && !analysis::is_tile_load(p_, op)) return false;
    if (produced && produced_.count(&op) && tree_.loop_of(op.stmt) == id) return true;
    std::string why = produced ? "the loop's tiles come from a producer, which makes tensor copies only"
                               : analysis::held_back(p_, ops_, dependences_, id, op);
    if (const auto kept = not_loaded_.find(ops_.id_of(op)); why.empty() && kept != not_loaded_.end())
      why = kept->second;
    if (!why.empty() && target_.loads_ahead()) out_.notes.push_back({op.path, "does not run ahead: " + why});
    return why.empty();
  }

  int64_t fitting_stages(const ir::Loop& loop, const std::vector<const analysis::KernelOp*>& ahead,
                         bool produced, plan::LoopPlan& plan) {
    if (ahead.empty()) {
      plan.reason = "no copy from global to shared memory can run ahead";
      out_.notes.push_back({plan.loop, "not pipelined: " + plan.reason});
      return 1;
    }
    int64_t wanted = loop.num_stages > 0 ? loop.num_stages : produced ? kProducedStages : kDefaultStages;
    if (loop.num_stages == 0 && most_stages_ > 0) wanted = std::min(wanted, most_stages_);
    const bool fragments = std::all_of(ahead.begin(), ahead.end(), [&](const analysis::KernelOp* op) {
      return analysis::is_fragment_load(p_, *op);
    });
    if (loop.num_stages == 0 && fragments) wanted = std::min<int64_t>(wanted, 2);
    int64_t ring = 0;
    auto arena = [&](int64_t stages) {
      std::map<ValueId, int64_t> slots = out_.slots;
      for (const auto* op : ahead)
        for (const auto& a : op->accesses)
          if (takes_slots(*op, a)) slots[a.value] = std::max(slots[a.value], slots_of(stages));
      return arena_(slots);
    };
    std::set<ValueId> filled;
    for (const auto* op : ahead)
      for (const auto& a : op->accesses)
        if (takes_slots(*op, a) && filled.insert(a.value).second) ring += bytes_[a.value];
    const bool deeper = loop.num_stages == 0 && produced && single_wave_;
    while (deeper && wanted < kSingleWaveStages && arena(wanted + 1) <= target_.shared_bytes) ++wanted;
    int64_t stages = wanted;
    while (stages > 1 && arena(stages) > target_.shared_bytes) --stages;
    const int64_t total = arena(1);
    plan.reason = (loop.num_stages > 0 ? "asked for" : "default") + std::string(" ") +
                  std::to_string(wanted) + " stages" +
                  (deeper ? " of a block that has a multiprocessor for itself" : "");
    if (stages < wanted) {
      std::string why = std::to_string(wanted) + " stages of " + std::to_string(ring) + " bytes and " +
                        std::to_string(total - ring) + " bytes of other tiles exceed " +
                        std::to_string(target_.shared_bytes) + " bytes of shared memory";
      plan.reason += ", " + std::to_string(stages) + " fit";
      out_.notes.push_back({plan.loop, "fewer stages: " + why});
    }
    return stages;
  }

  const ir::Program& p_;
  const analysis::KernelOps& ops_;
  analysis::LoopDependences& dependences_;
  const target::Target& target_;
  const IdVector<ValueId, int64_t>& bytes_;
  const ArenaBytes& arena_;
  const bool single_wave_;
  const plan::KernelSchedule* given_;
  const std::map<OpId, std::string>& not_loaded_;
  const int64_t most_stages_;
  PipelineResult& out_;
  const ir::KernelPaths paths_;
  const analysis::BlockTree tree_;
  std::set<const analysis::KernelOp*> produced_;
};

}  // namespace

PipelineResult plan_pipelines(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                              analysis::LoopDependences& dependences, const target::Target& target,
                              const IdVector<ValueId, int64_t>& bytes, const ArenaBytes& arena,
                              const std::set<OpId>& produced, bool single_wave,
                              const plan::KernelSchedule* given,
                              const std::map<OpId, std::string>& not_loaded, int64_t most_stages) {
  PipelineResult out;
  LoopPlanner planner(p, kernel, ops, dependences, target, bytes, arena, produced, single_wave, given,
                      not_loaded, most_stages, out);
  ir::for_each_statement(p, p.kernels[static_cast<size_t>(kernel)].body, [&](ir::StmtId id, int) {
    const auto* loop = p.as<ir::Loop>(id);
    if (loop && loop->kind != ir::LoopKind::parallel &&
        (loop->kind == ir::LoopKind::pipelined || planner.fed(id)))
      planner.loop(id, *loop);
  });
  return out;
}

}  // namespace tilegen::schedule
