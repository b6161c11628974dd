// What was given against what was planned, field by field.
#include <algorithm>
#include <set>

#include "plan/schedule_fields.h"
#include "schedule/check_schedule.h"

namespace tilegen::schedule {

using analysis::KernelOps;
using layout::Fragment;
using plan::ConversionPlan;
using plan::KernelSchedule;

namespace {

std::string text_of(int64_t v) { return std::to_string(v); }
std::string text_of(bool v) { return v ? "true" : "false"; }
std::string text_of(const std::string& v) { return "'" + v + "'"; }
std::string text_of(plan::Engine v) { return std::string("'") + plan::engine_name(v) + "'"; }
std::string text_of(const Fragment& v) { return v.to_text(); }
std::string text_of(const layout::Layout& v) { return v.to_text(); }
template <class T>
std::string text_of(const std::optional<T>& v) {
  return v ? text_of(*v) : "none";
}
std::string text_of(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& v : list) text += (text.empty() ? "" : ", ") + v;
  return "[" + text + "]";
}
std::string text_of(const std::vector<std::pair<std::string, int64_t>>& list) {
  std::string text;
  for (const auto& [op, stage] : list) text += (text.empty() ? "" : ", ") + op + ": " + std::to_string(stage);
  return "[" + text + "]";
}

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
    check_part("roles", given_.roles, result_.roles);
    check_part("persistence", given_.persistence, result_.persistence);
    check_part("cluster", given_.cluster, result_.cluster);
    check_part("launch", given_.launch, result_.launch);
    check_entries(given_.ops, result_.ops, &plan::OpPlan::op);
    check_entries(given_.values, result_.values, &plan::ValuePlan::value);
    check_entries(given_.loops, result_.loops, &plan::LoopPlan::loop);
    for (const plan::ChannelPlan& g : given_.channels) check_channel(g);
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
      check_fields("", g, *std::find_if(planned.begin(), planned.end(),
                                        [&](const E& e) { return e.*name == g.*name; }));
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
                     "give that, or leave `" + field + "` out to have it planned", where_);
  }
  template <class T>
  void same(const char* field, const T& given, const T& planned) {
    if (!(given == planned)) refuse(field, text_of(given), text_of(planned));
  }
  static void keep(std::string& reason, const std::string& given) {
    if (!given.empty()) reason = given;
  }

  // Fields of one entry: what was given stands in the plan. A given reason is kept.
  template <class E>
  struct FieldCheck {
    ResultCheck& check;
    const std::string prefix;
    const E& given;
    E& planned;

    template <class Field>
    void operator()(const Field& f) const {
      compare(f);
    }

   private:
    template <class Field>
    void same(const Field& f) const {
      if (!(given.*f.at == planned.*f.at))
        check.refuse(prefix + f.key, text_of(given.*f.at), text_of(planned.*f.at));
    }
    // Where the plan has no such choice, `otherwise` is what happens.
    template <class Field, class T>
    void same(const Field& f, const T& otherwise) const {
      if (given.*f.at && *(given.*f.at) != (planned.*f.at).value_or(otherwise))
        check.refuse(prefix + f.key, text_of(given.*f.at), text_of(planned.*f.at));
    }

    void compare(const plan::NameField<E>&) const {}
    void compare(const plan::RequiredText<E>& f) const { same(f); }
    void compare(const plan::TextField<E>& f) const {
      if (!(given.*f.at).empty()) same(f);
    }
    template <size_t N>
    void compare(const plan::WordField<E, N>& f) const {
      if (!(given.*f.at).empty()) same(f);
    }
    void compare(const plan::OptionalText<E>& f) const { same(f, std::string()); }
    void compare(const plan::NumberField<E>& f) const {
      if (given.*f.at != f.open) same(f);
    }
    void compare(const plan::FlagField<E>& f) const { same(f, f.otherwise); }
    void compare(const plan::SetFlag<E>& f) const { same(f); }
    void compare(const plan::EngineField<E>& f) const {
      if (given.*f.at) same(f);
    }
    template <class L>
    void compare(const plan::LayoutField<E, L>& f) const {
      const auto &own = given.*f.at, &other = planned.*f.at;
      if (own && !(other && own->equivalent(*other)))
        check.refuse(prefix + f.key, text_of(own), text_of(other));
    }
    // Where nothing issues ops in another order than the program's, the list has none.
    void compare(const plan::StagesField<E>& f) const {
      auto own = given.*f.at, other = planned.*f.at;
      std::sort(own.begin(), own.end());
      std::sort(other.begin(), other.end());
      if (!own.empty() && own != other)
        check.refuse(prefix + f.key, text_of(given.*f.at), text_of(planned.*f.at));
    }
    // Those of a required list are all there are; of another one, some.
    void compare(const plan::NamesField<E>& f) const {
      if (f.required) return same(f);
      const std::set<std::string> known((planned.*f.at).begin(), (planned.*f.at).end());
      for (const std::string& v : given.*f.at)
        if (!known.count(v)) check.refuse(prefix + f.key, text_of(given.*f.at), text_of(planned.*f.at));
    }
    void compare(const plan::OriginField<E>& f) const {
      if (given.fragment || given.memory) planned.*f.at = given.*f.at;
    }
    void compare(const plan::ReasonField<E>& f) const { keep(planned.*f.at, given.*f.at); }
  };

  template <class E>
  void check_fields(const std::string& prefix, const E& given, E& planned) {
    plan::for_each_field<E>(FieldCheck<E>{*this, prefix, given, planned});
  }
  // A part of the kernel's own: one that is not planned is as its defaults say.
  template <class E>
  void check_part(const char* key, const std::optional<E>& given, std::optional<E>& planned) {
    if (!given) return;
    E otherwise;
    check_fields(std::string(key) + ".", *given, planned ? *planned : otherwise);
  }

  void check_channel(const plan::ChannelPlan& g) {
    enter(given_.kernel);
    const plan::ChannelPlan* r = plan::find_channel(result_, g.name);
    if (!r) return refuse("channels", text_of(g.name), "none: no tile comes by tensor copies");
    plan::ChannelPlan planned = *r;
    check_fields("channels.", g, planned);
  }

  // A conversion is known by its value, by the op that takes or makes it otherwise than it is held, and by
  // both layouts.
  void check_conversion(const ConversionPlan& g, std::vector<bool>& named) {
    enter(g.value);
    for (size_t i = 0; i < result_.conversions.size(); ++i) {
      ConversionPlan& r = result_.conversions[i];
      if (named[i] || g.value != r.value) continue;
      const plan::ValuePlan* value = plan::find_value(result_, r.value);
      const bool taken = value && value->fragment && value->fragment->equivalent(r.from);
      if (taken ? g.consumer != r.consumer : g.producer != r.producer) continue;
      if (g.kind != layout::ConversionKind::none && g.kind != r.kind) continue;
      if ((g.from.rank() > 0 && !g.from.equivalent(r.from)) || (g.to.rank() > 0 && !g.to.equivalent(r.to)))
        continue;
      named[i] = true;
      r.producer = g.producer;
      r.consumer = g.consumer;
      if (g.cost > 0) r.cost = g.cost;
      return keep(r.reason, g.reason);
    }
    refuse("conversions",
           "from " + text_of(g.producer) + " to " + text_of(g.consumer) + " (" +
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

}  // namespace tilegen::schedule
