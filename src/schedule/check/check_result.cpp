// What was given against what was planned, field by field.
#include <algorithm>

#include "plan/compare_given.h"
#include "schedule/check/check_schedule.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOps;
using layout::Fragment;
using plan::ConversionPlan;
using plan::KernelSchedule;

namespace {

using plan::field_text;

class ResultCheck {
 public:
  ResultCheck(const KernelSchedule& given, const ir::Program& p, int kernel, const KernelOps& ops,
              KernelSchedule& result)
      : given_(given),
        p_(p),
        ops_(ops),
        result_(result),
        where_(p.kernels[static_cast<size_t>(kernel)].location) {}

  Checked run() {
    name_ = given_.kernel;
    if (given_.threads) same("threads", *given_.threads, *result_.threads);
    check_part("raster", given_.raster, result_.raster);
    check_roles();
    check_part("persistence", given_.persistence, result_.persistence);
    check_part("cluster", given_.cluster, result_.cluster);
    check_part("split", given_.split, result_.split);
    check_part("overlap", given_.overlap, result_.overlap);
    check_part("launch", given_.launch, result_.launch);
    check_entries(given_.ops, result_.ops, &plan::OpPlan::op);
    check_entries(given_.values, result_.values, &plan::ValuePlan::value);
    check_entries(given_.loops, result_.loops, &plan::LoopPlan::loop);
    for (const plan::PipelinePlan& g : given_.pipelines) check_pipeline(g);
    std::vector<bool> named(result_.conversions.size(), false);
    for (const ConversionPlan& g : given_.conversions) check_conversion(g, named);
    return std::move(checked_);
  }

 private:
  // Every given entry has a planned one: its name is checked.
  template <class E>
  void check_entries(const std::vector<E>& given, std::vector<E>& planned, std::string E::*name) {
    for (const E& g : given) {
      enter(g.*name);
      const auto own =
          std::find_if(planned.begin(), planned.end(), [&](const E& e) { return e.*name == g.*name; });
      if (own == planned.end()) {  // of names that exist, loops that are not pipelined alone have no entry
        refuse("loop", field_text(g.*name), "not pipelined: no tile of it comes ahead");
        continue;
      }
      check_fields("", g, *own);
    }
  }

  void enter(const std::string& path) {
    name_ = path;
    for (const analysis::KernelOp& op : ops_.ops)
      if (op.path == path) where_ = op.location;
    for (const analysis::Value& v : ops_.values)
      if (v.name == path) where_ = p_.buffer(v.buffer).location;
  }

  // Notes of the entry say why it is otherwise.
  void refuse(const std::string& field, const std::string& given, const std::string& planned) {
    if (!checked_) return;
    std::string why;
    for (const plan::Note& n : result_.notes)
      if (n.path == name_) why += "; " + n.text;
    checked_ = Error(DiagCode::schedule_illegal, name_,
                     "the schedule gives `" + field + "` " + given +
                         ", but with the program, the target and its other fields it is " + planned + why,
                     (planned == "0" || planned == "none" ? "leave `" : "give that, or leave `") + field +
                         "` out to have it planned",
                     where_);
  }
  template <class T>
  void same(const char* field, const T& given, const T& planned) {
    if (!(given == planned)) refuse(field, field_text(given), field_text(planned));
  }
  static void keep(std::string& reason, const std::string& given) {
    if (!given.empty()) reason = given;
  }

  // What was given of one entry stands in the plan. Given words are kept.
  template <class E>
  void check_fields(const std::string& prefix, const E& given, E& planned) {
    plan::compare_given(given, planned,
                        [&](const char* key, const std::string& own, const std::string& other) {
                          refuse(prefix + key, own, other);
                        });
    plan::for_each_field<E>([&](const auto& f) {
      using Field = std::decay_t<decltype(f)>;
      if constexpr (std::is_same_v<Field, plan::ReasonField<E>>) keep(planned.*f.at, given.*f.at);
      if constexpr (std::is_same_v<Field, plan::OriginField<E>>)
        if (given.fragment || given.memory) planned.*f.at = given.*f.at;
    });
  }
  // A part of the kernel's own: one that is not planned is as its defaults say.
  template <class E>
  void check_part(const char* key, const std::optional<E>& given, std::optional<E>& planned) {
    if (!given) return;
    E otherwise;
    check_fields(std::string(key) + ".", *given, planned ? *planned : otherwise);
  }

  // All of them, in order: planning takes given roles as they are, or refuses them.
  void check_roles() {
    if (!given_.roles || !result_.roles) return;
    if (given_.roles->size() != result_.roles->size())
      return refuse("roles", plan::names_text(*given_.roles), plan::names_text(*result_.roles));
    for (size_t r = 0; r < given_.roles->size(); ++r)
      check_fields("roles." + (*given_.roles)[r].name + ".", (*given_.roles)[r], (*result_.roles)[r]);
  }

  void check_pipeline(const plan::PipelinePlan& g) {
    enter(given_.kernel);
    const plan::PipelinePlan* r = plan::find_pipeline(result_, g.name);
    if (!r) return refuse("pipelines", field_text(g.name), "none: no tile comes by tensor copies");
    plan::PipelinePlan planned = *r;
    check_fields("pipelines.", g, planned);
  }

  // A conversion is known by its value, by the op that takes or makes it otherwise than it is held, and by
  // both layouts.
  void check_conversion(const ConversionPlan& g, std::vector<bool>& named) {
    enter(g.value);
    for (size_t i = 0; i < result_.conversions.size(); ++i) {
      ConversionPlan& r = result_.conversions[i];
      if (named[i] || !is_same_conversion(g, r, plan::find_value(result_, r.value))) continue;
      if (g.kind != layout::ConversionKind::none && g.kind != r.kind) continue;
      named[i] = true;
      r.producer = g.producer;
      r.consumer = g.consumer;
      if (g.cost > 0) r.cost = g.cost;
      return keep(r.reason, g.reason);
    }
    refuse("conversions",
           "from " + field_text(g.producer) + " to " + field_text(g.consumer) + " (" +
               layout::conversion_name(g.kind) + ")",
           "held so that there is no such conversion");
  }

  const KernelSchedule& given_;
  const ir::Program& p_;
  const KernelOps& ops_;
  KernelSchedule& result_;
  std::string name_;
  SourceLocation where_;
  Checked checked_ = Unit{};
};

}  // namespace

Checked check_result(const KernelSchedule& given, const ir::Program& p, int kernel, const KernelOps& ops,
                     KernelSchedule& result) {
  return ResultCheck(given, p, kernel, ops, result).run();
}

bool is_same_conversion(const ConversionPlan& given, const ConversionPlan& planned,
                        const plan::ValuePlan* value) {
  if (given.value != planned.value) return false;
  const bool taken = value && value->fragment && value->fragment->equivalent(planned.from);
  if (taken ? given.consumer != planned.consumer : given.producer != planned.producer) return false;
  return (given.from.rank() == 0 || given.from.equivalent(planned.from)) &&
         (given.to.rank() == 0 || given.to.equivalent(planned.to));
}

}  // namespace tilegen::schedule
