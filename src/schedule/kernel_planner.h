// Planning one kernel: the state that its steps share. Not used outside the files plan_kernel*.cpp.
#pragma once

#include "analysis/alternation.h"
#include "analysis/epilogue_tile.h"
#include "analysis/split_loop.h"
#include "analysis/sum_shares.h"
#include "analysis/written_operand.h"
#include "ir/statement_paths.h"
#include "schedule/memory/memory_plan.h"
#include "schedule/pipeline/ping_pong_plan.h"
#include "schedule/pipeline/pipeline_plan.h"
#include "schedule/plan_kernel.h"
#include "schedule/products/op_engines.h"
#include "schedule/transport/tensor_loads.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;
using analysis::OpId;
using analysis::ValueId;
using plan::Engine;
using plan::KernelSchedule;

// A fragment that leaves by tensor copies, staged in passes of columns.
struct StagedStore {
  OpId op;
  analysis::EpilogueTile stage;
  int64_t pass = 0;
  bool given = false;
  int64_t bytes(int64_t columns) const {
    return stage.part_bytes / stage.epilogue_columns * columns * stage.warpgroups_m * stage.warpgroups_n;
  }
};

class KernelPlanner {
 public:
  KernelPlanner(const ir::Program& p, int kernel, const target::Target& t, const PlanOptions& options)
      : p_(p),
        index_(kernel),
        kernel_(p.kernels[static_cast<size_t>(kernel)]),
        target_(t),
        options_(options),
        collected_(options.ops ? options.ops
                               : std::make_shared<const KernelOps>(analysis::collect_kernel_ops(p, kernel))),
        ops_(*collected_),
        paths_(p, kernel),
        liveness_(p, kernel, ops_),
        dependences_(p, ops_) {
    if (kernel_.split) parts_ = analysis::split_loop(p, kernel, ops_, kernel_.split->loop).sums;
  }

  Expected<KernelSchedule> plan(const KernelSchedule* given);

 private:
  // Nothing when a product turned out unfit for warpgroups, which is then refused.
  Expected<std::optional<KernelSchedule>> attempt(int64_t threads);
  Expected<KernelSchedule> assemble(int64_t threads);
  void take_given_conversions();
  void keep_given_accesses(KernelSchedule& s) const;
  bool in_order() const { return options_.form >= PlanForm::in_order; }
  bool refuse(const Refusals& more);
  bool leave_to_threads(const Refusals& more);
  void find_loads(const TensorLoads& found);
  Refusals left_to_warps() const;
  Refusals unfit_threads(int64_t threads) const;

  // plan_kernel_alternation.cpp
  Checked find_alternations(int64_t threads);
  bool alternations_hold();
  // Where there were any: nothing else is given up for them.
  bool give_up_alternations(const std::string& why);
  std::string no_alternation(ir::StmtId loop, int64_t threads) const;
  std::string alternation_breaks(ir::StmtId loop, const analysis::Alternation& a) const;
  bool alternates(const plan::LoopPlan& l) const;
  std::set<OpId> done_by_each(bool products) const;
  void add_handed_rows();

  // plan_kernel_turn_operands.cpp
  Checked part_tiles_of_turns();
  bool is_shared_operand(const plan::PipelinePlan& c, const analysis::Alternation& a) const;
  std::string no_parts_of_tile(const plan::PipelinePlan& c, const analysis::Alternation& a) const;
  Checked plan_own_operands(KernelSchedule& s) const;
  std::string no_own_left(OpId product, const analysis::Alternation& a, const KernelSchedule& s) const;

  void take_engines();
  void find_written_operands(int64_t threads);
  void widen_written();
  const plan::LoopPlan* one_stage(ir::StmtId loop) const;
  bool overlaps_in_one_slot(ir::StmtId loop) const;
  bool produced_loops_overlap();
  PingPongFacts ping_pong_facts(int64_t threads) const;
  Checked order_products(const PingPongFacts& facts);
  bool registers_fit(const std::map<ValueId, int64_t>& slots, int64_t threads) const;
  Checked plan_ping_pong_loops(const PingPongFacts& facts);
  Checked plan_loop_ends();
  bool threads_meet_for(const KernelOp& op) const;
  void choose_stores();
  void lay_out_tiles();
  void place_lane_order_copies(int64_t threads);
  std::string beyond_buffers(OpId copy) const;
  void find_stores();
  bool computed_by_threads(OpId copy) const;
  void store_tile(OpId op, plan::ValuePlan& tile);
  void fit_stores();
  void widen_epilogue_tiles();
  Checked plan_walk(KernelSchedule& s, int64_t threads);
  Checked walk_in_parts(KernelSchedule& s, std::vector<plan::RolePlan> roles);
  Error no_parts(const std::string& why) const;
  Error no_producer_of_parts() const;
  void widen_pipelines(bool persistent);
  Checked check_given_engines() const;
  const plan::OpPlan* given_op(OpId op) const {
    return given_ ? plan::find_op(*given_, ops_.ops[op].path) : nullptr;
  }

  SharedReservations places(analysis::ValuePlans values) const;
  plan::SplitPlan split_plan(const ir::Kernel::Split& form, const char* through) const;
  int64_t parts_bytes(analysis::ValuePlans values) const;
  int64_t arena(const std::map<ValueId, int64_t>& slots) const;
  void plan_loops();

  const ir::Program& p_;
  const int index_;
  const ir::Kernel& kernel_;
  const target::Target& target_;
  const PlanOptions& options_;
  const std::shared_ptr<const KernelOps> collected_;
  const KernelOps& ops_;
  const ir::KernelPaths paths_;
  const analysis::Liveness liveness_;
  analysis::LoopDependences dependences_;
  std::vector<ValueId> parts_;  // sums of a loop that blocks share
  const KernelSchedule* given_ = nullptr;

  Refusals refused_;      // products, by warpgroups
  Refusals by_threads_;   // copies beside them, by the engine
  Refusals left_before_;  // the same, as rounds before found them
  TensorLoads tensor_loads_;
  std::map<ir::StmtId, std::string> not_alternating_;  // loops, with the reason
  bool keep_in_registers_ = false;  // what would take too many: shared memory does not hold it either
  // Of one attempt.
  std::map<ir::StmtId, analysis::Alternation> alternations_;
  GemmPlans gemms_;
  infer::InferResult layouts_;
  std::vector<Scratch> scratch_;
  std::set<OpId> produced_;  // copies that a producer makes
  std::set<ValueId> engine_values_;
  std::vector<analysis::ThreadWrittenOperand> written_;
  std::vector<plan::PipelinePlan> copy_pipelines_;
  bool dynamic_tiles_ = false;  // blocks fetch tiles
  std::vector<StagedStore> stores_;
  bool stages_share_ = false;  // their tiles a place, which is another's too
  Refusals not_stored_;        // why not by tensor copies
  PipelineResult pipelines_;
  std::vector<plan::Note> notes_;
};

}  // namespace tilegen::schedule
