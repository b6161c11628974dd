#include "driver/candidate_stages.h"

#include <algorithm>
#include <tuple>

#include "driver/decide_accesses.h"
#include "driver/fallback_plan.h"
#include "expand/expand_kernel.h"
#include "expand/verify_scheduled.h"
#include "lower/gpu/bulk_copies.h"
#include "lower/host/host_steps.h"
#include "lower/lower_kernel.h"
#include "schedule/accesses/access_plan.h"
#include "support/diag_codes.h"
#include "thread/transaction_verify.h"

namespace tilegen::driver {

using schedule::PlanForm;

namespace {

// The plan lists what the code is guarded by: of sizes of tensors, lowering finds out whether an access asks
// the hardware for a bound.
void leave_out_unguarded(const thread::ThreadProgram& code, bool given, plan::KernelSchedule& plan) {
  if (!plan.assumptions) return;
  std::erase_if(*plan.assumptions, [&](plan::Assumption& a) {
    const auto guard = std::find_if(code.guards.begin(), code.guards.end(), [&](const thread::Guard& g) {
      return code.params[static_cast<size_t>(g.param)].name == a.param;
    });
    const bool bounded = guard != code.guards.end() && guard->most_bytes > 0;
    if (given && a.most_bytes > 0 && !bounded)
      plan.notes.push_back({plan.kernel, "`most_bytes` of '" + a.param +
                                             "' is left out: no access to it is bounded by the hardware"});
    if (!bounded) a.most_bytes = 0;
    return guard == code.guards.end();
  });
}

}  // namespace

void take_plan(Candidate& c, Candidate& other) {
  c.plan = std::move(other.plan);
  c.estimate = other.estimate;
  c.ops = std::move(other.ops);
  c.scheduled = std::move(other.scheduled);
  c.scheduled->schedule = &*c.plan;
}

const plan::KernelSchedule* CandidateStages::given_of(const Candidate& c) const {
  return given_ && !c.given_left_out ? given_->find(program_.kernels[c.kernel].name) : nullptr;
}

bool CandidateStages::form_as_given(Candidate& c, const plan::KernelSchedule* given) const {
  c.overlap = {};
  c.split.reset();
  c.ops.reset();
  const int kernel = static_cast<int>(c.kernel);
  const plan::KernelSchedule* decided = is_planned(c) ? &planned_->kernels[c.kernel] : given;
  const bool copy_engine = !is_planned(c) && tensor_copies_at(level_) != schedule::TensorCopies::none;
  auto overlap = choose_overlap(program_, kernel, target_,
                                decided && decided->overlap ? &*decided->overlap : nullptr, copy_engine);
  if (!overlap) return c.rejected = overlap.error(), false;
  c.overlap = std::move(*overlap);
  const plan::SplitPlan* split = decided && decided->split ? &*decided->split : nullptr;
  if (!split) return true;
  // Without the copy engine there are no clusters.
  if (fallback_ && level_ >= AssumptionLevel::aligned &&
      expand::through_cluster(expand::split_through(*split, target_)))
    return true;
  auto form = given_split(unsplit_program_of(c), kernel, target_, *split);
  form ? void(c.split = std::move(*form)) : void(c.rejected = form.error());
  return !c.rejected;
}

bool CandidateStages::relies_on_sizes(const Candidate& c) const {
  const std::vector<plan::OpPlan>& ops = planned_->kernels[c.kernel].ops;
  return target_.buffer_async_copies && std::any_of(ops.begin(), ops.end(), [](const plan::OpPlan& op) {
           return op.engine == plan::Engine::async_copy;
         });
}

double CandidateStages::microseconds(Candidate& c) const {
  if (!c.estimate)
    c.estimate = estimated_microseconds(program_of(c), static_cast<int>(c.kernel), *c.plan, target_,
                                        options_.sizes, &ops_of(c));
  return *c.estimate;
}

const analysis::KernelOps& CandidateStages::ops_of(Candidate& c) const {
  if (!c.ops && &program_of(c) == &program_) c.ops = collected_[c.kernel];
  if (!c.ops)
    c.ops = std::make_shared<const analysis::KernelOps>(
        analysis::collect_kernel_ops(program_of(c), static_cast<int>(c.kernel)));
  return *c.ops;
}

std::vector<std::shared_ptr<const analysis::KernelOps>> CandidateStages::collect(const ir::Program& p) {
  std::vector<std::shared_ptr<const analysis::KernelOps>> ops;
  for (size_t k = 0; k < p.kernels.size(); ++k)
    ops.push_back(
        std::make_shared<const analysis::KernelOps>(analysis::collect_kernel_ops(p, static_cast<int>(k))));
  return ops;
}

void CandidateStages::plan(Candidate& c, const plan::KernelSchedule* given) const {
  c.plan.reset();
  c.estimate.reset();
  c.scheduled.reset();
  c.code.reset();
  if (is_planned(c)) {
    c.plan = schedule::without_assumptions(planned_->kernels[c.kernel]);
    return;
  }
  const int kernel = static_cast<int>(c.kernel);
  schedule::PlanOptions how{nullptr, options_.conversions};
  how.form = c.form;
  how.most_stages = c.most_stages;
  how.direct_copies = c.direct;
  how.overlap = c.overlap.plan ? &*c.overlap.plan : nullptr;
  const auto blocks = known_blocks(program_of(c), kernel, options_.sizes);
  how.single_wave = blocks && *blocks <= target_.multiprocessors;
  how.read = &read_;
  ops_of(c);
  how.ops = c.ops;
  how.tensor_copies = tensor_copies_at(level_);
  how.assumptions = assumptions_at(level_);
  auto plan = given && fallback_ ? plan_fallback(program_of(c), kernel, target_, *given, how)
                                 : schedule::plan_kernel(program_of(c), kernel, target_, given, how);
  if (!plan) return void(c.rejected = plan.error());
  c.plan = std::move(*plan);
  if (!c.overlap.note.empty()) c.plan->notes.push_back({program_.kernels[c.kernel].name, c.overlap.note});
  if (c.first_rejected) {
    const Diagnostic& why = c.first_rejected->diagnostics[0];
    std::string done = std::string("the kernel is planned ") + plan_form_text(c.form) +
                       ": as first planned it was rejected, ";
    if (c.form == PlanForm::full && c.alone)
      done = "blocks do not share a loop: so planned the kernel was rejected, ";
    else if (c.form == PlanForm::full && c.clusterless)
      done = "blocks read no tiles for each other: so planned the kernel was rejected, ";
    if (c.form == PlanForm::full && c.given_left_out)
      done = "nothing that is given for the kernel holds in this version: with it the version was rejected, ";
    c.plan->notes.push_back({why.op, done + why.message});
  }
}

void CandidateStages::expand(Candidate& c) const {
  c.scheduled.reset();
  ops_of(c);
  auto scheduled = expand::expand_kernel(program_of(c), static_cast<int>(c.kernel), *c.plan, target_, c.ops);
  if (!scheduled) return void(c.rejected = scheduled.error());
  c.scheduled = std::move(*scheduled);
  if (!options_.estimate_only) verify_scheduled(c);  // only a defect of expansion fails it
}

void CandidateStages::verify_scheduled(Candidate& c) const {
  const std::vector<std::string> broken = expand::verify_scheduled(program_of(c), *c.scheduled);
  if (!broken.empty()) c.rejected = broken_kernel(c, broken.front());
}

namespace {

// What an estimate sees of how an op accesses memory (cost/op_work.cpp).
using SeenAccess = std::tuple<std::optional<plan::Engine>, int64_t, std::optional<bool>>;

std::vector<SeenAccess> seen_accesses(const plan::KernelSchedule& plan) {
  std::vector<SeenAccess> list;
  for (const plan::OpPlan& op : plan.ops) list.emplace_back(op.engine, op.vector, op.unmasked_version);
  return list;
}

}  // namespace

void CandidateStages::decide_accesses(Candidate& c, const plan::KernelSchedule* given) const {
  bool expanded_again = false;
  const std::vector<SeenAccess> before = seen_accesses(*c.plan);
  Checked ok = driver::decide_accesses(program_of(c), target_, assumptions_at(level_), given, !fallback_,
                                       *c.plan, *c.scheduled, &expanded_again, options_.estimate_only);
  if (seen_accesses(*c.plan) != before) c.estimate.reset();
  if (!ok) return void(c.rejected = ok.error());
  if (expanded_again) verify_scheduled(c);
  if (given && fallback_) note_what_is_otherwise(*given, level_, *c.plan);
}

namespace {

// What the copy engine does not bring threads copy.
void take_bulk_copies(thread::ThreadProgram& code, plan::KernelSchedule& plan) {
  if (code.bulk_copies.empty()) return;
  const thread::BulkCopy* first = &code.bulk_copies.front();
  for (const thread::BulkCopy& copy : code.bulk_copies)
    if (first->refusal.empty()) first = &copy;
  const std::string path = code.stmts[first->loop.value].origin, why = lower::take_bulk_copies(code);
  if (!why.empty()) plan.notes.push_back({path, "threads copy its boxes, and not the copy engine: " + why});
}

}  // namespace

void CandidateStages::lower(Candidate& c) const {
  auto code = lower::lower_kernel(program_of(c), *c.scheduled, target_);
  if (!code) return void(c.rejected = code.error());
  if (!target_.has_block_threads()) {
    lower::host_steps(*code, target_);
  } else {
    const plan::KernelSchedule* given = given_of(c);
    leave_out_unguarded(*code, given && given->assumptions, *c.plan);
    if (tensor_copies_at(level_) != schedule::TensorCopies::none) take_bulk_copies(*code, *c.plan);
    code->bulk_copies.clear();
  }
  c.code = std::move(*code);
}

void CandidateStages::verify(Candidate& c) const {
  std::vector<std::string> broken = thread::verify_thread_program(*c.code);
  if (broken.empty()) broken = thread::verify_transactions(*c.code);
  if (broken.empty() && options_.check) broken = options_.check(*c.code);
  if (!broken.empty()) c.rejected = broken_kernel(c, broken.front());
}

Error CandidateStages::broken_kernel(const Candidate& c, const std::string& what) const {
  const ir::Kernel& kernel = program_.kernels[c.kernel];
  return Error(DiagCode::internal_error, kernel.name, what, "please report this program", kernel.location);
}

std::string CandidateStages::field_at_fault(const Candidate& c) const {
  const plan::KernelSchedule& given = *given_of(c);
  std::string found;
  const auto without = [&](const std::string& name, auto&& remove) {
    if (!found.empty() || stop_requested(options_.cancellation)) return;
    plan::KernelSchedule less = given;
    remove(less);
    Candidate other;
    other.kernel = c.kernel;
    if (form_as_given(other, &less)) plan(other, &less);
    if (!other.rejected) expand(other);
    if (!other.rejected) decide_accesses(other, &less);
    if (!other.rejected) lower(other);
    if (!other.rejected) verify(other);
    if (!other.rejected) found = name;
  };
  const auto of_kernel = [&](const char* field, auto member) {
    if ((given.*member).has_value())
      without(given.kernel + ": " + field, [&](plan::KernelSchedule& s) { (s.*member).reset(); });
  };
  of_kernel("roles", &plan::KernelSchedule::roles);
  of_kernel("persistence", &plan::KernelSchedule::persistence);
  of_kernel("cluster", &plan::KernelSchedule::cluster);
  of_kernel("raster", &plan::KernelSchedule::raster);
  of_kernel("split", &plan::KernelSchedule::split);
  of_kernel("overlap", &plan::KernelSchedule::overlap);
  of_kernel("launch", &plan::KernelSchedule::launch);
  const auto of_list = [&](auto member, auto name) {
    for (size_t i = 0; i < (given.*member).size(); ++i)
      without((given.*member)[i].*name, [&](plan::KernelSchedule& s) {
        (s.*member).erase((s.*member).begin() + static_cast<long>(i));
      });
  };
  of_list(&plan::KernelSchedule::loops, &plan::LoopPlan::loop);
  of_list(&plan::KernelSchedule::ops, &plan::OpPlan::op);
  of_list(&plan::KernelSchedule::values, &plan::ValuePlan::value);
  if (!given.pipelines.empty())
    without(given.kernel + ": pipelines", [](plan::KernelSchedule& s) { s.pipelines.clear(); });
  of_list(&plan::KernelSchedule::conversions, &plan::ConversionPlan::value);
  return found;
}

}  // namespace tilegen::driver
