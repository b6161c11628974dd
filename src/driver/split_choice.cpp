#include "driver/split_choice.h"

#include <algorithm>
#include <cstdio>

#include "support/diag_codes.h"

namespace tilegen::driver {

namespace {

using expand::SplitThrough;

// Of the time without (bench/results/few_blocks.json: none of 39 kernels that are planned so takes more than
// 1.01 of it).
constexpr double kWorthSharing = 0.95;

class SplitChoice {
 public:
  SplitChoice(const CandidateStages& stages, Candidate& c, ir::StmtId loop, const OnRejected& rejected)
      : stages_(stages),
        c_(c),
        ops_(stages.ops_of(c)),
        loop_(loop),
        rejected_(rejected),
        copied_by_engine_(std::any_of(c.plan->ops.begin(), c.plan->ops.end(), [](const plan::OpPlan& op) {
          return op.engine == plan::Engine::tensor_copy;
        })) {}

  // Of each way to meet the shortest, the shorter of them first.
  std::vector<Candidate> shorter_than(double microseconds) {
    std::vector<std::pair<double, Candidate>> found;
    for (SplitThrough through :
         {SplitThrough::cluster_shares, SplitThrough::cluster, SplitThrough::workspace}) {
      if (expand::through_cluster(through) && !copied_by_engine_) continue;
      auto best = planned_through(through);
      if (best && best->first < microseconds) found.push_back(std::move(*best));
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Candidate> list;
    for (auto& [us, candidate] : found) list.push_back(std::move(candidate));
    return list;
  }

  // Expanded, with its accesses. False: rejected.
  bool completed(Candidate& other) {
    stages_.expand(other);
    if (!other.rejected) stages_.decide_accesses(other, nullptr);
    return !note_rejected(other);
  }

  // Why a form was passed over; of clusters without a producer their plan tells.
  const std::string& refused() {
    if (refused_.empty() && !copied_by_engine_) planned_through(SplitThrough::cluster);
    return refused_;
  }
  const std::string& unshared() const { return unshared_; }

 private:
  int kernel() const { return static_cast<int>(c_.kernel); }

  SplitProgram form(int64_t parts, SplitThrough through) {
    const ir::Program& whole = stages_.unsplit_program_of(c_);
    if (!written_) written_ = expand::written_as(whole);
    return std::make_shared<const ir::Program>(
        expand::split_form(whole, kernel(), loop_, parts, through, written_));
  }

  bool note_rejected(const Candidate& other) {
    if (!other.rejected) return false;
    const Diagnostic& why = other.rejected->diagnostics[0];
    if (why.code == DiagCode::internal_error) rejected_(*other.rejected);
    refused_ = why.message;
    return true;
  }

  Candidate planned(SplitProgram split) {
    Candidate other;
    other.kernel = c_.kernel;
    other.overlap = c_.overlap;
    other.split = std::move(split);
    stages_.plan(other, nullptr);
    return other;
  }

  // Of those that the form allows.
  std::vector<int64_t> possible_parts(SplitThrough through) {
    const ir::Program& whole = stages_.unsplit_program_of(c_);
    std::vector<int64_t> parts =
        parts_to_try(whole, kernel(), stages_.target(), stages_.sizes(), loop_, through);
    if (through == SplitThrough::cluster_shares)
      std::erase_if(parts, [&](int64_t n) {
        std::string why = expand::split_refusal(whole, kernel(), stages_.target(), loop_, n, through, &ops_);
        if (!why.empty() && unshared_.empty()) unshared_ = std::move(why);
        return !why.empty();
      });
    return parts;
  }

  // Tiles are others with each number of parts.
  std::optional<std::pair<double, Candidate>> shared(const std::vector<int64_t>& parts) {
    std::optional<std::pair<double, Candidate>> best;
    for (int64_t n : parts) {
      Candidate c = planned(form(n, SplitThrough::cluster_shares));
      if (c.rejected) {
        if (!best && unshared_.empty()) unshared_ = c.rejected->diagnostics[0].message;
        break;
      }
      const double us = stages_.microseconds(c);
      if (!best || us < best->first) best.emplace(us, std::move(c));
    }
    return best;
  }

  // The plan of the fewest parts stands for the others while their number is chosen.
  std::optional<std::pair<double, Candidate>> planned_through(SplitThrough through) {
    const std::vector<int64_t> parts = possible_parts(through);
    if (parts.empty()) return std::nullopt;
    if (through == SplitThrough::cluster_shares) return shared(parts);
    Candidate best = planned(form(parts.front(), through));
    if (note_rejected(best)) return std::nullopt;
    double least = stages_.microseconds(best);
    SplitProgram shorter;
    plan::KernelSchedule plan = *best.plan;
    for (size_t i = 1; i < parts.size(); ++i) {
      SplitProgram other = form(parts[i], through);
      plan.split->parts = parts[i];
      if (plan.cluster && expand::through_cluster(through)) plan.cluster->blocks = parts[i];
      const double us = estimated_microseconds(*other, kernel(), plan, stages_.target(), stages_.sizes());
      if (us >= least) continue;
      least = us;
      shorter = std::move(other);
    }
    if (!shorter) return std::pair(least, std::move(best));
    Candidate other = planned(std::move(shorter));
    if (note_rejected(other)) return std::pair(stages_.microseconds(best), std::move(best));
    least = stages_.microseconds(other);
    return std::pair(least, std::move(other));
  }

  const CandidateStages& stages_;
  const Candidate& c_;
  const analysis::KernelOps& ops_;  // of the unsplit program
  const ir::StmtId loop_;
  const OnRejected& rejected_;
  // With one block a point. What the engine does not copy then it does not for parts either, and clusters
  // need a producer.
  const bool copied_by_engine_;
  expand::Written written_;  // of the whole program, once there are forms
  std::string refused_;
  std::string unshared_;  // why blocks of a cluster do not share what follows the loop
};

}  // namespace

void choose_split(const CandidateStages& stages, Candidate& c, ir::StmtId loop, const OnRejected& rejected) {
  const double alone = stages.microseconds(c);
  SplitChoice choice(stages, c, loop, rejected);
  for (Candidate& other : choice.shorter_than(alone * kWorthSharing)) {
    if (!choice.completed(other)) continue;
    char text[64];
    std::snprintf(text, sizeof text, "estimated at %.1f us, and at %.1f with one block a point",
                  stages.microseconds(other), alone);
    other.plan->split->reason = text;
    if (other.plan->split->through == expand::split_through_name(SplitThrough::cluster) &&
        !choice.unshared().empty())
      other.plan->notes.push_back({other.plan->split->loop, choice.unshared()});
    c.split = std::move(other.split);
    take_plan(c, other);
    return;
  }
  if (const std::string& why = choice.refused(); !why.empty())
    c.plan->notes.push_back({stages.program_of(c).kernels[c.kernel].name, why});
}

}  // namespace tilegen::driver
