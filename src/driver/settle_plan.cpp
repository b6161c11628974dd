// A plan may be wrong in a way that only its code shows: two engines that meet in a tile, a wait that nobody
// ends. That is the planner's fault, not the program's: the kernel is planned again with less of the target
// (schedule::PlanForm), down to plain multiply-adds:
//
//   plan -> expand -> accesses -> lower -> verify: gemm/ko: a deadlock: ..    plan {in_order} -> .. ->
//   verify: holds
//
// What the caller gives is never left out of a first version: a rejected kernel with given decisions is
// refused, with the name of the one at fault. A fallback version does without what cannot hold there, and
// says so.
#include "driver/settle_plan.h"

#include <cstdio>

#include "driver/candidate_stages.h"
#include "driver/cluster_choice.h"
#include "driver/split_choice.h"
#include "driver/stage_words.h"
#include "expand/expand_kernel.h"
#include "ir/statement_paths.h"
#include "ir/text.h"
#include "schedule/check/check_schedule.h"
#include "support/diag_codes.h"

namespace tilegen::driver {

namespace {

using schedule::PlanForm;

// Of the time through registers, by tiles that come past them: nothing was measured, and
// bench/amd/loop_model.py has them longer in loops of products.
constexpr double kWorthDirect = 0.8;

class Settler : private CandidateStages {
 public:
  Settler(const ir::Program& program, const target::Target& target, const CompileOptions& options,
          AssumptionLevel level, const plan::Schedule* planned, Stages& stages)
      : CandidateStages(program, target, options, level, planned), stages_(stages) {}

  Expected<SettledPlan> run() {
    if (given_)
      if (Checked ok = schedule::check_schedule(*given_, program_, target_); !ok) {
        Error e = ok.error();
        e.diagnostics[0].stage = "plan";
        return e;
      }
    std::vector<Candidate> all(program_.kernels.size());
    std::vector<Candidate*> open;
    for (size_t k = 0; k < all.size(); ++k) {
      all[k].kernel = k;
      if (target_.has_block_threads() && !given_of(all[k])) all[k].form = options_.form;
      open.push_back(&all[k]);
    }
    while (!open.empty()) {
      if (Checked ok = round(open, all); !ok) return ok.error();
      std::vector<Candidate*> again;
      for (Candidate* c : open) {
        if (!c->rejected) continue;
        if (c->rejected->diagnostics[0].code == DiagCode::cancelled_by_caller) return *c->rejected;
        report_rejected(*c->rejected);
        if (!c->first_rejected) c->first_rejected = c->rejected;
        if (!next_form(*c)) return refusal(*c);
        again.push_back(c);
      }
      open = std::move(again);
    }
    SettledPlan out;
    if (options_.estimate_only) {
      out.estimate = 0;
      for (Candidate& c : all) *out.estimate += microseconds(c);
      out.schedule.target = target_.name;
      for (Candidate& c : all) out.schedule.kernels.push_back(std::move(*c.plan));
      return out;
    }
    out.schedule = schedule_of(all);
    for (Candidate& c : all) {
      if (c.code) out.kernels.push_back(std::move(*c.code));
      out.splits.push_back(std::move(c.split));
    }
    return out;
  }

 private:
  void report_rejected(const Error& why) const {
    if (options_.rejected) options_.rejected(why);
    const Diagnostic& first = why.diagnostics[0];
    if (first.code == DiagCode::internal_error)
      say(options_.log, LogLevel::warning, "plan",
          [&] { return "a plan is rejected by the checks of its code: " + first.message; });
  }

  // The stages for those that are open, one after the other.
  Checked round(const std::vector<Candidate*>& open, const std::vector<Candidate>& all) {
    const auto stage = [&](const char* name, auto&& one, const auto& words) {
      const auto run = [&]() -> Checked {
        for (Candidate* c : open) {
          if (stop_requested(options_.cancellation))
            return options_.cancellation->error(program_.kernels[c->kernel].name,
                                                "in stage '" + std::string(name) + "'");
          if (!c->rejected) one(*c);
        }
        for (Candidate* c : open)
          if (c->rejected)
            for (Diagnostic& d : c->rejected->diagnostics)
              if (d.stage.empty()) d.stage = name;
        return Unit{};
      };
      return stages_.run(name, run, [&](const Checked&) {
        return words_of_kernels(open.size(), [&](size_t i) {
          return open[i]->rejected ? program_.kernels[open[i]->kernel].name + ": rejected" : words(*open[i]);
        });
      });
    };
    for (Candidate* c : open) c->rejected.reset();
    const auto make_plan = [&](Candidate& c) {
      if (form_as_given(c, given_of(c))) plan(c, given_of(c));
    };
    const auto planned = [](const Candidate& c) { return words_of(*c.plan); };
    if (Checked ok = stage("plan", make_plan, planned); !ok) return ok;
    const auto settled = [&](const auto& part) {
      return std::all_of(all.begin(), all.end(), [&](const Candidate& c) { return (c.*part).has_value(); });
    };
    const auto make_scheduled = [&](Candidate& c) { expand(c); };
    const auto expanded = [](const Candidate& c) { return words_of(*c.scheduled); };
    if (Checked ok = stage("expand", make_scheduled, expanded); !ok) return ok;
    const auto make_accesses = [&](Candidate& c) { decide_accesses(c, given_of(c)); };
    if (Checked ok = stage("accesses", make_accesses, planned); !ok) return ok;
    const auto stages_of_loops = [&](Candidate& c) { choose_stages(c); };
    if (std::any_of(open.begin(), open.end(), [&](const Candidate* c) { return may_choose_stages(*c); }))
      if (Checked ok = stage("stages", stages_of_loops, planned); !ok) return ok;
    const auto transport_of_loops = [&](Candidate& c) { choose_transport(c); };
    if (std::any_of(open.begin(), open.end(), [&](const Candidate* c) { return may_choose_transport(*c); }))
      if (Checked ok = stage("transport", transport_of_loops, planned); !ok) return ok;
    for (Candidate* c : open)
      if (may_cluster(*c))
        c->cluster = shorter_cluster(program_of(*c), static_cast<int>(c->kernel), *c->scheduled->ops,
                                     *c->plan, target_, options_.sizes, c->estimate);
    const auto cluster = [&](Candidate& c) { take_cluster(c); };
    if (std::any_of(open.begin(), open.end(), [](const Candidate* c) { return c->cluster.has_value(); }))
      if (Checked ok = stage("cluster", cluster, planned); !ok) return ok;
    for (Candidate* c : open)
      if (may_share(*c)) find_shared_loop(*c);
    const auto share = [&](Candidate& c) { share_loop(c); };
    if (std::any_of(open.begin(), open.end(), [](const Candidate* c) { return c->shared.valid(); }))
      if (Checked ok = stage("split", share, planned); !ok) return ok;
    if (settled(&Candidate::plan))
      stages_.dump("schedule", [&] { return plan::schedule_to_text(schedule_of(all)); });
    if (options_.estimate_only) return Unit{};
    if (settled(&Candidate::scheduled))
      stages_.dump("scheduled", [&] {
        std::string text;
        for (const Candidate& c : all) text += expand::print_scheduled(program_of(c), *c.scheduled);
        return text;
      });
    const auto make_code = [&](Candidate& c) { lower(c); };
    const auto lowered = [](const Candidate& c) { return words_of(*c.code); };
    if (Checked ok = stage("lower", make_code, lowered); !ok) return ok;
    if (settled(&Candidate::code))
      stages_.dump("thread", [&] {
        std::string text;
        for (const Candidate& c : all) text += thread::print_thread_program(*c.code);
        return text;
      });
    if (!options_.verify && !target_.has_block_threads()) return Unit{};
    const auto check = [&](Candidate& c) { verify(c); };
    const auto holds = [&](const Candidate& c) { return program_.kernels[c.kernel].name + ": holds"; };
    return stage("verify", check, holds);
  }

  // Tiles come through registers, and the target has asynchronous copies.
  bool may_choose_transport(const Candidate& c) const {
    return !c.rejected && !given_of(c) && !planned_ && c.plan && c.form < PlanForm::no_async_copies &&
           target_.register_copies && target_.async_copy() &&
           std::any_of(c.plan->ops.begin(), c.plan->ops.end(),
                       [](const plan::OpPlan& op) { return op.engine == plan::Engine::register_copy; });
  }

  // Copies past the registers where that is shorter by the estimate.
  void choose_transport(Candidate& c) const {
    if (!may_choose_transport(c)) return;
    const double before = microseconds(c);
    double least = kWorthDirect * before;
    bool taken = false;
    for (int64_t stages : {0, 2}) {
      Candidate other = planned_otherwise(c, stages, /*direct=*/true);
      if (other.rejected ||
          std::none_of(other.plan->ops.begin(), other.plan->ops.end(),
                       [](const plan::OpPlan& op) { return op.engine == plan::Engine::async_copy; }))
        continue;
      const double direct = microseconds(other);
      if (direct >= least) continue;
      least = direct;
      take_plan(c, other);
      taken = true;
    }
    if (!taken) return;
    char text[96];
    std::snprintf(text, sizeof text, ": estimated at %.1f us, and at %.1f through registers", least, before);
    for (plan::LoopPlan& l : c.plan->loops) l.reason += text;
  }

  // As if the target had no more than these stages, with its tiles by asynchronous copies or not.
  Candidate planned_otherwise(const Candidate& c, int64_t stages, bool direct) const {
    Candidate other;
    other.kernel = c.kernel;
    other.form = c.form;
    other.overlap = c.overlap;
    other.ops = c.ops;
    other.most_stages = stages;
    other.direct = direct;
    make(other, nullptr);
    return other;
  }
  void make(Candidate& other, const plan::KernelSchedule* given) const {
    plan(other, given);
    if (!other.rejected) expand(other);
    if (!other.rejected) decide_accesses(other, given);
  }

  // A loop asks for no stages, and its loads ahead take registers and shared memory that other blocks could
  // have.
  bool may_choose_stages(const Candidate& c) const {
    if (c.rejected || given_of(c) || planned_ || !c.plan) return false;
    const ir::Program& p = program_of(c);
    const ir::KernelPaths paths(p, static_cast<int>(c.kernel));
    bool found = false;
    ir::for_each_statement(p, p.kernels[c.kernel].body, [&](ir::StmtId id, int) {
      const auto* loop = p.as<ir::Loop>(id);
      if (!loop || loop->kind != ir::LoopKind::pipelined || loop->num_stages > 0) return;
      const plan::LoopPlan* l = plan::find_loop(*c.plan, paths[id.value]);
      found =
          found || (l && l->num_stages > 1 && std::any_of(l->stages.begin(), l->stages.end(), [&](auto& s) {
                      const plan::OpPlan* op = plan::find_op(*c.plan, s.first);
                      return op && op->engine == plan::Engine::register_copy;
                    }));
    });
    return found;
  }

  // As many stages as make the shortest estimate; of equals more.
  void choose_stages(Candidate& c) const {
    if (!may_choose_stages(c)) return;
    const double all = microseconds(c);
    double least = all;
    for (int64_t stages : {2, 1}) {
      Candidate other = planned_otherwise(c, stages, /*direct=*/false);
      if (other.rejected) continue;
      const double fewer = microseconds(other);
      if (fewer >= least) continue;
      least = fewer;
      take_plan(c, other);
      char text[64];
      std::snprintf(text, sizeof text, ": estimated at %.1f us, and at %.1f with more", least, all);
      for (plan::LoopPlan& l : c.plan->loops) l.reason += text;
    }
  }

  bool may_cluster(const Candidate& c) const {
    return !c.rejected && c.plan && !given_of(c) && !planned_ && c.form == PlanForm::full && !c.clusterless &&
           target_.tensor_copy && level_ < AssumptionLevel::aligned && !c.split;
  }

  // Blocks read tiles for each other where that is shorter by the estimate.
  void take_cluster(Candidate& c) const {
    const auto cluster = std::exchange(c.cluster, std::nullopt);
    if (!cluster) return;
    plan::KernelSchedule with;
    with.kernel = c.plan->kernel;
    with.cluster = cluster;
    Candidate other;
    other.kernel = c.kernel;
    other.overlap = c.overlap;
    other.ops = c.ops;
    make(other, &with);
    if (other.rejected) return;
    const double alone = microseconds(c), together = microseconds(other);
    if (together >= alone) return;
    char text[96];
    std::snprintf(text, sizeof text,
                  "a tile is read once for all blocks: estimated at %.1f us, and at %.1f for each", together,
                  alone);
    other.plan->cluster->reason = text;
    take_plan(c, other);
  }

  // Nothing is decided about loops that blocks may share.
  bool may_share(const Candidate& c) const {
    return !c.rejected && !c.split && !c.alone && !given_of(c) && c.form == PlanForm::full && !planned_ &&
           target_.has_block_threads() && (level_ < AssumptionLevel::aligned || !fallback_);
  }

  void find_shared_loop(Candidate& c) const {
    std::string why;
    c.shared = loop_to_share(unsplit_program_of(c), static_cast<int>(c.kernel), target_, options_.sizes,
                             ops_of(c), why);
    if (!why.empty()) c.plan->notes.push_back({program_.kernels[c.kernel].name, why});
  }

  // Blocks share the iterations of a loop where that is the shortest by estimate.
  void share_loop(Candidate& c) const {
    const ir::StmtId loop = std::exchange(c.shared, ir::StmtId());
    if (loop.valid()) choose_split(*this, c, loop, [this](const Error& why) { report_rejected(why); });
  }

  // False where there is none: hosts have one form, and what is given stays in a first version.
  bool next_form(Candidate& c) const {
    if (!target_.has_block_threads()) return false;
    if (given_of(c)) return c.given_left_out = fallback_;
    if (c.split) return c.alone = true;
    if (!c.clusterless && c.plan && c.plan->cluster && c.plan->cluster->blocks > 1)
      return c.clusterless = true;
    do {
      if (c.form == PlanForm::multiply_adds) return false;
      c.form = static_cast<PlanForm>(static_cast<int>(c.form) + 1);
    } while (!schedule::is_form_of(c.form, target_));
    return true;
  }

  Error refusal(const Candidate& c) const {
    const Diagnostic& first = c.first_rejected->diagnostics[0];
    if (first.code != DiagCode::internal_error || !target_.has_block_threads()) return *c.first_rejected;
    const ir::Kernel& kernel = program_.kernels[c.kernel];
    Error e;
    if (given_of(c)) {
      const std::string field = field_at_fault(c);
      e = Error(DiagCode::schedule_illegal, field.empty() ? kernel.name : field,
                (field.empty() ? "the given decisions of kernel '" + kernel.name + "' make"
                               : "with the rest of the plan the given decision makes") +
                    " code that is not right: " + first.message,
                field.empty() ? "leave fields of the kernel out of the schedule to have them planned"
                              : "leave it out of the schedule to have it planned",
                kernel.location);
    } else {
      e = Error(DiagCode::target_unsupported, kernel.name,
                "no form of kernel '" + kernel.name + "' for " + target_.name +
                    " passes the checks of its code; the first: " + first.message,
                "divide the kernel's work over several kernels, and report the program", kernel.location);
    }
    e.diagnostics[0].stage = first.stage;
    return e;
  }

  plan::Schedule schedule_of(const std::vector<Candidate>& all) const {
    plan::Schedule s;
    s.target = target_.name;
    s.program_hash = ir::program_hash(program_);
    for (const Candidate& c : all) s.kernels.push_back(*c.plan);
    return s;
  }

  Stages& stages_;
};

}  // namespace

Expected<SettledPlan> settle_plan(const ir::Program& program, const target::Target& target,
                                  const CompileOptions& options, AssumptionLevel level,
                                  const plan::Schedule* planned, Stages& stages) {
  // What was planned for the copy engine does not hold without it.
  return Settler(program, target, options, level, level == AssumptionLevel::none ? planned : nullptr, stages)
      .run();
}

}  // namespace tilegen::driver
