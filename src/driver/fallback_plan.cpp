// A given field may be impossible without the copy engine: a tensor_copy, the layout of a tile that it fills,
// the split of a product over warpgroups. The first version is refused then; a fallback version is not, since
// its launch has no other:
//
//   given: gemm/ko/copy#0 engine tensor_copy     fallback: engine async_copy
//                                                note gemm/ko/copy#0: the given `engine` is async_copy in ..
#include "driver/fallback_plan.h"

#include <algorithm>

#include "plan/compare_given.h"
#include "schedule/plan_kernel.h"
#include "support/diag_codes.h"

namespace tilegen::driver {

using plan::KernelSchedule;
using schedule::TensorCopies;

namespace {

const char* does_without(AssumptionLevel level) {
  switch (level) {
    case AssumptionLevel::tensor_stores:
      return "has all that the target has";
    case AssumptionLevel::tensor_loads:
      return "does without tensor copies to tensors";
    case AssumptionLevel::tensor_loads_alone:
      return "does without tensor copies to tensors and of tiles that no product reads";
    case AssumptionLevel::aligned:
      return "does without tensor copies";
    case AssumptionLevel::none:
      return "relies on nothing that the program does not promise";
  }
  return "";
}

// Removes the entry of that name.
template <class Entry>
bool remove(std::vector<Entry>& list, std::string Entry::*name, const std::string& wanted) {
  return std::erase_if(list, [&](const Entry& e) { return e.*name == wanted; }) > 0;
}

// Looks for given fields that the plan has otherwise, and notes them.
class Comparison {
 public:
  Comparison(const KernelSchedule& given, AssumptionLevel level, KernelSchedule& plan)
      : given_(given), level_(level), plan_(plan) {}

  void run() {
    name_ = given_.kernel;
    if (given_.threads && given_.threads != plan_.threads) say("threads", plan::field_text(plan_.threads));
    part("raster", given_.raster, plan_.raster);
    roles();
    part("persistence", given_.persistence, plan_.persistence);
    part("cluster", given_.cluster, plan_.cluster);
    part("split", given_.split, plan_.split);
    part("overlap", given_.overlap, plan_.overlap);
    part("launch", given_.launch, plan_.launch);
    entries(given_.ops, plan_.ops, &plan::OpPlan::op);
    entries(given_.values, plan_.values, &plan::ValuePlan::value);
    entries(given_.loops, plan_.loops, &plan::LoopPlan::loop);
    name_ = given_.kernel;
    for (const plan::PipelinePlan& g : given_.pipelines) {
      const plan::PipelinePlan* here = plan::find_pipeline(plan_, g.name);
      if (!here || here->loop != g.loop || here->values != g.values)
        say("pipelines", here ? "another" : "none");
    }
    for (const plan::ConversionPlan& g : given_.conversions) {
      const auto same = [&](const plan::ConversionPlan& c) {
        return c.value == g.value && c.producer == g.producer && c.consumer == g.consumer;
      };
      name_ = g.value;
      if (std::none_of(plan_.conversions.begin(), plan_.conversions.end(), same)) say("conversions", "none");
    }
  }

 private:
  void say(const std::string& field, const std::string& here) {
    plan::Note note{name_, "the given `" + field + "` does not hold in this version, which " +
                               does_without(level_) + ": it is " + here + " here"};
    if (std::find(plan_.notes.begin(), plan_.notes.end(), note) == plan_.notes.end())
      plan_.notes.push_back(std::move(note));
  }

  template <class E>
  void fields(const std::string& prefix, const E& given, const E& here) {
    plan::compare_given(given, here, [&](const char* key, const std::string&, const std::string& other) {
      say(prefix + key, other);
    });
  }
  void roles() {
    if (!given_.roles) return;
    const std::vector<plan::RolePlan> here = plan_.roles.value_or(std::vector<plan::RolePlan>());
    if (given_.roles->size() != here.size()) return say("roles", plan::names_text(here));
    for (size_t r = 0; r < here.size(); ++r)
      fields("roles." + here[r].name + ".", (*given_.roles)[r], here[r]);
  }
  // A part of the kernel's own: one that is not planned is as its defaults say.
  template <class E>
  void part(const char* key, const std::optional<E>& given, const std::optional<E>& here) {
    if (given) fields(std::string(key) + ".", *given, here ? *here : E());
  }
  template <class E>
  void entries(const std::vector<E>& given, const std::vector<E>& here, std::string E::*name) {
    for (const E& g : given) {
      name_ = g.*name;
      const auto at = std::find_if(here.begin(), here.end(), [&](const E& e) { return e.*name == g.*name; });
      if (at != here.end()) fields("", g, *at);
    }
  }

  const KernelSchedule& given_;
  const AssumptionLevel level_;
  KernelSchedule& plan_;
  std::string name_;
};

class Fallback {
 public:
  Fallback(const ir::Program& program, int kernel, const target::Target& target, KernelSchedule given,
           const schedule::PlanOptions& options)
      : program_(program), kernel_(kernel), target_(target), given_(std::move(given)), options_(options) {}

  Expected<KernelSchedule> plan() const {
    return schedule::plan_kernel(program_, kernel_, target_, &given_, options_);
  }

  // Leaves out what the error names; all that is given where it names nothing. False: nothing is left.
  bool leave_out(const Diagnostic& why) {
    if (empty_) return false;
    const bool named = remove(given_.ops, &plan::OpPlan::op, why.op) ||
                       remove(given_.values, &plan::ValuePlan::value, why.op) ||
                       remove(given_.loops, &plan::LoopPlan::loop, why.op) ||
                       remove(given_.conversions, &plan::ConversionPlan::value, why.op) ||
                       (why.op == given_.kernel && leave_out_of_kernel(why));
    if (named) return true;
    KernelSchedule nothing;
    nothing.kernel = given_.kernel;
    given_ = std::move(nothing);
    return empty_ = true;
  }

 private:
  // The field of the kernel without which planning says something else.
  bool leave_out_of_kernel(const Diagnostic& why) {
    const auto without = [&](auto member) {
      KernelSchedule less = given_;
      less.*member = {};
      const auto plan = schedule::plan_kernel(program_, kernel_, target_, &less, options_);
      if (!plan && plan.error().diagnostics[0].message == why.message) return false;
      given_ = std::move(less);
      return true;
    };
    return (given_.roles && without(&KernelSchedule::roles)) ||
           (given_.persistence && without(&KernelSchedule::persistence)) ||
           (given_.cluster && without(&KernelSchedule::cluster)) ||
           (given_.split && without(&KernelSchedule::split)) ||
           (given_.overlap && without(&KernelSchedule::overlap)) ||
           (given_.raster && without(&KernelSchedule::raster)) ||
           (given_.launch && without(&KernelSchedule::launch)) ||
           (given_.threads && without(&KernelSchedule::threads)) ||
           (!given_.pipelines.empty() && without(&KernelSchedule::pipelines));
  }

  const ir::Program& program_;
  const int kernel_;
  const target::Target& target_;
  KernelSchedule given_;
  const schedule::PlanOptions& options_;
  bool empty_ = false;
};

}  // namespace

TensorCopies tensor_copies_at(AssumptionLevel level) {
  switch (level) {
    case AssumptionLevel::tensor_stores:
      return TensorCopies::loads_and_stores;
    case AssumptionLevel::tensor_loads:
      return TensorCopies::loads;
    case AssumptionLevel::tensor_loads_alone:
      return TensorCopies::product_loads;
    case AssumptionLevel::aligned:
    case AssumptionLevel::none:
      break;
  }
  return TensorCopies::none;
}

schedule::Assumptions assumptions_at(AssumptionLevel level) {
  switch (level) {
    case AssumptionLevel::tensor_loads_alone:
      return schedule::Assumptions::copy_engine;
    case AssumptionLevel::none:
      return schedule::Assumptions::none;
    default:
      return schedule::Assumptions::all;
  }
}

Expected<KernelSchedule> plan_fallback(const ir::Program& program, int kernel, const target::Target& target,
                                       const KernelSchedule& given, const schedule::PlanOptions& options) {
  Fallback fallback(program, kernel, target, given, options);
  for (;;) {
    auto plan = fallback.plan();
    if (plan) return plan;
    const Diagnostic& why = plan.error().diagnostics[0];
    if (why.code == DiagCode::cancelled_by_caller || why.code == DiagCode::conversion_refused ||
        !fallback.leave_out(why))
      return plan;
  }
}

void note_what_is_otherwise(const KernelSchedule& given, AssumptionLevel level, KernelSchedule& plan) {
  Comparison(given, level, plan).run();
}

}  // namespace tilegen::driver
