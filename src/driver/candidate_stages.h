// One kernel on its way through planning and lowering, stage by stage: what settle_plan goes through for
// each, and again for what a rejected one is told.
#pragma once

#include <set>

#include "driver/split_plan.h"
#include "driver/stages.h"
#include "expand/scheduled_kernel.h"
#include "schedule/plan_kernel.h"

namespace tilegen::driver {

// A kernel on its way.
struct Candidate {
  size_t kernel = 0;
  schedule::PlanForm form = schedule::PlanForm::full;
  ir::StmtId shared;        // a loop that blocks may share
  SplitProgram split;       // the program, where they do
  bool alone = false;       // they do not: such a plan was rejected
  int64_t most_stages = 0;  // of loops that ask for none; 0: any
  std::optional<plan::KernelSchedule> plan;
  std::optional<expand::ScheduledKernel> scheduled;
  std::optional<thread::ThreadProgram> code;
  std::optional<Error> rejected, first_rejected;
  bool given_left_out = false;  // of a fallback version
};

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

  // False: the kernel cannot have the form that is given.
  bool split_as_given(Candidate& c) const;
  void plan(Candidate& c, const plan::KernelSchedule* given) const;
  void expand(Candidate& c) const;
  void decide_accesses(Candidate& c, const plan::KernelSchedule* given) const;
  void lower(Candidate& c) const;
  void verify(Candidate& c) const;

  const plan::KernelSchedule* given_of(const Candidate& c) const;
  const ir::Program& program_of(const Candidate& c) const { return c.split ? *c.split : program_; }
  double microseconds(const Candidate& c) const;
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
  void verify_scheduled(Candidate& c) const;
  Error broken_kernel(const Candidate& c, const std::string& what) const;

  const std::set<ir::BufferId> read_ = schedule::buffers_read(program_);
};

}  // namespace tilegen::driver
