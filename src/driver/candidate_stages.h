// One kernel on its way through planning and lowering, stage by stage: what settle_plan goes through for
// each, and again for what a rejected one is told.
#pragma once

#include <set>

#include "driver/overlap_plan.h"
#include "driver/split_plan.h"
#include "driver/stages.h"
#include "expand/scheduled_kernel.h"
#include "schedule/plan_kernel.h"

namespace tilegen::driver {

// A kernel on its way.
struct Candidate {
  size_t kernel = 0;
  schedule::PlanForm form = schedule::PlanForm::full;
  OverlapChoice overlap;
  ir::StmtId shared;                         // a loop that blocks may share
  SplitProgram split;                        // the program, where they do
  std::optional<plan::ClusterPlan> cluster;  // that the plan may have
  bool alone = false;                        // they do not: such a plan was rejected
  bool clusterless = false;                  // blocks bring no tiles for each other: such a plan was rejected
  int64_t most_stages = 0;                   // of loops that ask for none; 0: any
  std::shared_ptr<const analysis::KernelOps> ops;  // of the program that is planned, where they are known
  bool direct = false;  // tiles come by asynchronous copies where they could come through registers
  std::optional<plan::KernelSchedule> plan;
  std::optional<double> estimate;  // microseconds of `plan` as it is, where they have been asked for
  std::optional<expand::ScheduledKernel> scheduled;
  std::optional<thread::ThreadProgram> code;
  std::optional<Error> rejected, first_rejected;
  bool given_left_out = false;  // of a fallback version
};

// What `c` is planned as becomes that of `other`.
void take_plan(Candidate& c, Candidate& other);

// Each stage sets its result, or why the candidate is rejected.
class CandidateStages {
 public:
  CandidateStages(const ir::Program& program, const target::Target& target, const CompileOptions& options,
                  AssumptionLevel level, const plan::Schedule* planned)
      : program_(program),
        target_(target),
        options_(options),
        level_(level),
        fallback_(options.fallback || level != options.level),
        planned_(planned),
        given_(options.schedule ? &*options.schedule : nullptr) {}

  // The program's form before it is planned. False: the kernel cannot have the one that is given.
  bool form_as_given(Candidate& c, const plan::KernelSchedule* given) const;
  void plan(Candidate& c, const plan::KernelSchedule* given) const;
  void expand(Candidate& c) const;
  void decide_accesses(Candidate& c, const plan::KernelSchedule* given) const;
  void lower(Candidate& c) const;
  void verify(Candidate& c) const;

  const plan::KernelSchedule* given_of(const Candidate& c) const;
  const ir::Program& unsplit_program_of(const Candidate& c) const {
    return c.overlap.form ? *c.overlap.form : program_;
  }
  const ir::Program& program_of(const Candidate& c) const {
    return c.split ? *c.split : unsplit_program_of(c);
  }
  double microseconds(Candidate& c) const;
  // Of program_of(c), collected once.
  const analysis::KernelOps& ops_of(Candidate& c) const;
  const target::Target& target() const { return target_; }
  const cost::Sizes& sizes() const { return options_.sizes; }
  // The first given decision without which the code holds; empty: none alone.
  std::string field_at_fault(const Candidate& c) const;

 protected:
  const ir::Program& program_;
  const target::Target& target_;
  const CompileOptions& options_;
  const AssumptionLevel level_;
  const bool fallback_;
  const plan::Schedule* planned_;  // decisions of another level to begin with; may be null
  const plan::Schedule* given_;    // by the caller; may be null

 private:
  // The plan of another level is taken as it is.
  bool is_planned(const Candidate& c) const {
    return planned_ && c.form == options_.form && !c.first_rejected && !relies_on_sizes(c);
  }
  // Asynchronous copies of the level above reach tensors of no more bytes than it assumes.
  bool relies_on_sizes(const Candidate& c) const;
  void verify_scheduled(Candidate& c) const;
  static std::vector<std::shared_ptr<const analysis::KernelOps>> collect(const ir::Program& p);
  Error broken_kernel(const Candidate& c, const std::string& what) const;

  // Of the program as it is, by kernel.
  const std::vector<std::shared_ptr<const analysis::KernelOps>> collected_ = collect(program_);
  const std::set<ir::BufferId> read_ = schedule::buffers_read(collected_);
};

}  // namespace tilegen::driver
