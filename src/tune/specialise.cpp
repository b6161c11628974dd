#include "tune/specialise.h"

#include <algorithm>
#include <cmath>

#include "driver/artifact_cost.h"
#include "support/diag_codes.h"
#include "tune/cover.h"
#include "tune/rank.h"
#include "tune/workers.h"

namespace tilegen::tune {

namespace {

// A plan of a configuration, made for the sizes of some points.
struct Candidate {
  size_t configuration = 0;
  std::string decisions;
  std::vector<size_t> planned_at;  // some of the points
  std::vector<double> times;       // by point
};

// All plans of one configuration.
struct Planned {
  Configuration configuration;
  std::vector<Candidate> candidates;
  std::vector<size_t> plan_at;  // by point: index in `candidates`
};

constexpr size_t kNotPlanned = static_cast<size_t>(-1);

// Without the estimates that stand in reasons.
std::string decisions_text(plan::Schedule s) {
  for (plan::KernelSchedule& k : s.kernels) {
    k.notes.clear();
    if (k.split) k.split->reason.clear();
    for (plan::LoopPlan& l : k.loops) l.reason.clear();
  }
  return plan::schedule_to_json(s);
}

class Specialiser {
 public:
  Specialiser(const std::shared_ptr<const ir::Program>& program, const Bind& bind,
              const target::Target& target, const driver::CompileOptions& options,
              const SpecialiseOptions& how)
      : program_(program),
        bind_(bind),
        target_(target),
        options_(options),
        how_(how),
        axes_(size_axes(*program, how.ranges)),
        points_(size_points(axes_, options.sizes)),
        middles_(size_points(middle_axes(*program, axes_), options.sizes)) {}

  Expected<Specialising> run() {
    if (how_.choose_values && !how_.measure && !has_estimates()) return no_estimates(*program_, target_.name);
    if (Checked ok = plan_all(); !ok) return ok.error();
    if (how_.measure)
      if (Checked ok = measure_all(); !ok) return ok.error();
    return choose();
  }

 private:
  bool has_estimates() const { return target_.has_block_threads(); }

  Checked plan_all() {
    size_t count = 1;
    if (how_.choose_values) {
      const Expected<size_t> all = count_configurations(*program_);
      if (!all) return all.error();
      count = *all;
    }
    planned_.resize(count);
    on_workers(count, how_.threads, [&](size_t i) {
      if (options_.cancellation && options_.cancellation->requested_lately()) return;
      if (how_.choose_values) planned_[i].configuration.values = values_of(*program_, i);
      plan(planned_[i], i);
    });
    if (options_.cancellation && options_.cancellation->requested())
      return options_.cancellation->error(program_->name, "while its configurations were planned");
    std::vector<Configuration> refused;
    for (const Planned& p : planned_)
      if (p.configuration.refused) refused.push_back(p.configuration);
    if (refused.size() == count) return all_refused(*program_, target_.name, "planned", refused);
    return Unit{};
  }

  void plan(Planned& p, size_t index) {
    Configuration& c = p.configuration;
    auto bound = how_.choose_values ? bind_(c.values) : program_;
    if (!bound) {
      c.refused = bound.error();
      return;
    }
    c.program = std::move(*bound);
    if (!has_estimates()) {
      p.candidates.push_back({index, "", {}, std::vector<double>(points_.size(), INFINITY)});
      for (size_t q = 0; q < points_.size(); ++q) p.candidates[0].planned_at.push_back(q);
      p.plan_at.assign(points_.size(), 0);
      return;
    }
    const size_t row = axes_.back().upto.size();
    p.plan_at.assign(points_.size(), kNotPlanned);
    for (size_t first = 0; first < points_.size() && !c.refused; first += row)
      plan_between(p, index, first, first + row - 1);
  }

  // Between two sizes that make one plan no other is looked for.
  void plan_between(Planned& p, size_t index, size_t first, size_t last) {
    plan_at(p, index, first);
    plan_at(p, index, last);
    if (p.configuration.refused || last - first < 2) return;
    if (p.plan_at[first] == p.plan_at[last]) {
      std::fill(p.plan_at.begin() + static_cast<ptrdiff_t>(first) + 1,
                p.plan_at.begin() + static_cast<ptrdiff_t>(last), p.plan_at[first]);
      return;
    }
    const size_t middle = first + (last - first) / 2;
    plan_between(p, index, first, middle);
    plan_between(p, index, middle, last);
  }

  void plan_at(Planned& p, size_t index, size_t point) {
    Configuration& c = p.configuration;
    if (c.refused || p.plan_at[point] != kNotPlanned) return;
    driver::CompileOptions planning = planning_options(options_);
    planning.estimate_only = true;
    planning.sizes = points_[point];
    const auto artifact = driver::compile(c.program, target_, planning);
    if (!artifact) {
      c.refused = artifact.error();
      return;
    }
    const std::string text = decisions_text((*artifact)->schedule);
    size_t same = 0;
    while (same < p.candidates.size() && p.candidates[same].decisions != text) ++same;
    if (same == p.candidates.size()) {
      p.candidates.push_back({index, text, {}, {}});
      const std::vector<double> at_points = driver::microseconds_at(**artifact, target_, points_),
                                at_middles = driver::microseconds_at(**artifact, target_, middles_);
      for (size_t q = 0; q < points_.size(); ++q)
        p.candidates.back().times.push_back((at_points[q] + at_middles[q]) / 2);
    }
    p.candidates[same].planned_at.push_back(point);
    p.plan_at[point] = same;
  }

  // At every point those that are measured there keep their times.
  Checked measure_all() {
    std::vector<std::vector<std::pair<Candidate*, double>>> measured(points_.size());
    for (size_t q = 0; q < points_.size(); ++q) {
      driver::CompileOptions options = options_;
      options.sizes = points_[q];
      auto all = tune_by_measuring(*program_, bind_, target_, options, *how_.measure);
      if (!all) return all.error();
      for (const Configuration& c : *all) {
        if (c.measured <= 0) continue;
        for (Planned& p : planned_)
          if (!p.configuration.refused && same_values(p.configuration.values, c.values))
            measured[q].push_back({&p.candidates[p.plan_at[q]], c.measured});
      }
    }
    for (size_t q = 0; q < points_.size(); ++q) {
      double worst = 0;
      for (const auto& [candidate, time] : measured[q]) worst = std::max(worst, time / candidate->times[q]);
      for (Planned& p : planned_)
        for (Candidate& c : p.candidates) c.times[q] *= has_estimates() ? worst : 1;
      for (const auto& [candidate, time] : measured[q]) candidate->times[q] = time;
    }
    return Unit{};
  }

  static bool same_values(const std::vector<ir::ParamBinding>& a, const std::vector<ir::ParamBinding>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return x.value == y.value; });
  }

  Specialising choose() {
    std::vector<const Candidate*> candidates;
    std::vector<std::vector<double>> times;
    for (const Planned& p : planned_) {
      if (p.configuration.refused) continue;
      for (const Candidate& c : p.candidates) {
        candidates.push_back(&c);
        times.push_back(c.times);
      }
    }
    const bool known = has_estimates() || how_.measure;
    const std::vector<size_t> covering = known ? cover(times, how_.most) : std::vector<size_t>{0};
    std::vector<size_t> chosen;  // those of small sizes first
    Specialising out;
    out.axes = axes_;
    std::vector<std::vector<size_t>> served;
    for (size_t q = 0; q < points_.size(); ++q) {
      const size_t candidate = covering[fastest_at(times, covering, q)];
      const auto at =
          static_cast<size_t>(std::find(chosen.begin(), chosen.end(), candidate) - chosen.begin());
      if (at == chosen.size()) {
        chosen.push_back(candidate);
        served.emplace_back();
      }
      out.choice.push_back(static_cast<uint8_t>(at));
      served[at].push_back(q);
      double best = INFINITY;
      for (const auto& t : times) best = std::min(best, t[q]);
      if (known) out.loss += (times[candidate][q] / best - 1) / static_cast<double>(points_.size());
    }
    for (size_t i = 0; i < chosen.size(); ++i) {
      const Candidate& c = *candidates[chosen[i]];
      const Configuration& configuration = planned_[c.configuration].configuration;
      out.forms.push_back({how_.choose_values ? configuration.values : std::vector<ir::ParamBinding>(),
                           configuration.program, points_[planning_point(c, served[i])]});
    }
    driver::merge_steps(out.axes, out.choice);
    return out;
  }

  // The largest sizes that it serves of those that make this plan.
  static size_t planning_point(const Candidate& c, const std::vector<size_t>& served) {
    for (size_t i = served.size(); i-- > 0;)
      if (std::count(c.planned_at.begin(), c.planned_at.end(), served[i])) return served[i];
    return *std::max_element(c.planned_at.begin(), c.planned_at.end());
  }

  const std::shared_ptr<const ir::Program>& program_;
  const Bind& bind_;
  const target::Target& target_;
  const driver::CompileOptions& options_;
  const SpecialiseOptions& how_;
  const std::vector<driver::SizeAxis> axes_;
  const std::vector<cost::Sizes> points_, middles_;
  std::vector<Planned> planned_;
};

}  // namespace

Expected<Specialising> specialise(const std::shared_ptr<const ir::Program>& program, const Bind& bind,
                                  const target::Target& target, const driver::CompileOptions& options,
                                  const SpecialiseOptions& how) {
  return Specialiser(program, bind, target, options, how).run();
}

}  // namespace tilegen::tune
