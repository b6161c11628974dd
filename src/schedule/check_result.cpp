// What was given against what was planned, field by field.
#include <algorithm>
#include <set>

#include "schedule/check_schedule.h"

namespace tilegen::schedule {

using infer::KernelOps;
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
    check_block();
    for (const plan::OpPlan& g : given_.ops) check_op(g, *find(result_.ops, &plan::OpPlan::op, g.op));
    for (const plan::ValuePlan& g : given_.values)
      check_value(g, *find(result_.values, &plan::ValuePlan::value, g.value));
    for (const plan::LoopPlan& g : given_.loops)
      check_loop(g, *find(result_.loops, &plan::LoopPlan::loop, g.loop));
    for (const plan::ChannelPlan& g : given_.channels) check_channel(g);
    std::vector<bool> named(result_.conversions.size(), false);
    for (const ConversionPlan& g : given_.conversions) check_conversion(g, named);
    return std::move(checked_);
  }

 private:
  template <class Entry>
  static Entry* find(std::vector<Entry>& list, std::string Entry::*name, const std::string& wanted) {
    const auto it = std::find_if(list.begin(), list.end(), [&](const Entry& e) { return e.*name == wanted; });
    return it == list.end() ? nullptr : &*it;
  }

  void enter(const std::string& path) {
    name_ = path;
    for (const infer::KernelOp& op : ops_.ops)
      if (op.path == path) where_ = op.location;
    for (const infer::Value& v : ops_.values)
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
  // 0, empty and kOpen are open.
  void said(const char* field, int64_t given, int64_t planned, int64_t open = 0) {
    if (given != open) same(field, given, planned);
  }
  void said(const char* field, const std::string& given, const std::string& planned) {
    if (!given.empty()) same(field, given, planned);
  }
  // Where the result has no such choice, the `otherwise` of it is what happens.
  template <class T>
  void said(const char* field, const std::optional<T>& given, const std::optional<T>& planned,
            const T& otherwise) {
    if (given && *given != planned.value_or(otherwise)) refuse(field, text_of(given), text_of(planned));
  }
  template <class T>
  void said_layout(const char* field, const std::optional<T>& given, const std::optional<T>& planned) {
    if (given && !(planned && given->equivalent(*planned))) refuse(field, text_of(given), text_of(planned));
  }
  static void keep(std::string& reason, const std::string& given) {
    if (!given.empty()) reason = given;
  }

  void check_block() {
    if (given_.raster) check_raster(*given_.raster, *result_.raster);
    if (given_.roles) check_roles(*given_.roles, result_.roles.value_or(plan::RolePlan{}));
    if (given_.persistence)
      check_persistence(*given_.persistence, result_.persistence.value_or(plan::PersistencePlan{}));
    if (given_.cluster) {
      const plan::ClusterPlan planned = result_.cluster.value_or(plan::ClusterPlan{});
      said("cluster.blocks", given_.cluster->blocks, planned.blocks);
      said("cluster.along", given_.cluster->along, planned.along);
      if (result_.cluster) keep(result_.cluster->reason, given_.cluster->reason);
    }
    if (given_.launch) {
      same("launch.dependent", given_.launch->dependent, result_.launch && result_.launch->dependent);
      if (result_.launch) keep(result_.launch->reason, given_.launch->reason);
    }
  }
  void check_raster(const plan::RasterPlan& g, plan::RasterPlan& r) {
    said("raster.order", g.order, r.order);
    if (g.group > 1) same("raster.group", g.group, r.group);
    said("raster.dimension", g.dimension, r.dimension, plan::kOpen);
    said("raster.rising", g.rising, r.rising, true);
    said("raster.group_trips", g.group_trips, r.group_trips, plan::kOpen);
    said("raster.group_tiles", g.group_tiles, r.group_tiles, plan::kOpen);
    keep(r.reason, g.reason);
  }
  void check_roles(const plan::RolePlan& g, const plan::RolePlan& r) {
    said("roles.producer_threads", g.producer_threads, r.producer_threads, plan::kOpen);
    said("roles.producer_registers", g.producer_registers, r.producer_registers, plan::kOpen);
    said("roles.consumer_registers", g.consumer_registers, r.consumer_registers, plan::kOpen);
    if (result_.roles) keep(result_.roles->reason, g.reason);
  }
  void check_persistence(const plan::PersistencePlan& g, const plan::PersistencePlan& r) {
    same("persistence.persistent", g.persistent, r.persistent);
    said("persistence.order", g.order, r.order);
    said("persistence.skips_idle", g.skips_idle, r.skips_idle, false);
    if (result_.persistence) keep(result_.persistence->reason, g.reason);
  }

  void check_op(const plan::OpPlan& g, plan::OpPlan& r) {
    enter(g.op);
    if (g.engine) same("engine", *g.engine, *r.engine);
    said("atom", g.atom, r.atom);
    said("warps_m", g.warps_m, r.warps_m);
    said("warps_n", g.warps_n, r.warps_n);
    said_layout("iteration", g.iteration, r.iteration);
    said("vector", g.vector, r.vector);
    said("streaming", g.streaming, r.streaming, false);
    said("pass_columns", g.pass_columns, r.pass_columns);
    said("joined_behind", g.joined_behind, r.joined_behind, std::string());
    said("unless_one", g.unless_one, r.unless_one, std::string());
    const std::set<std::string> through(r.through_memory.begin(), r.through_memory.end());
    for (const std::string& v : g.through_memory)
      if (!through.count(v)) refuse("through_memory", text_of(g.through_memory), text_of(r.through_memory));
    keep(r.reason, g.reason);
  }

  void check_value(const plan::ValuePlan& g, plan::ValuePlan& r) {
    enter(g.value);
    said_layout("fragment", g.fragment, r.fragment);
    said_layout("memory", g.memory, r.memory);
    said("slots", g.slots, r.slots);
    if (!g.fragment && !g.memory) return;
    r.origin = g.origin;
    keep(r.reason, g.reason);
  }

  void check_loop(const plan::LoopPlan& g, plan::LoopPlan& r) {
    enter(g.loop);
    said("num_stages", g.num_stages, r.num_stages);
    // Where nothing issues ops in another order than the program's, the list has none.
    auto given = g.stages, planned = r.stages;
    std::sort(given.begin(), given.end());
    std::sort(planned.begin(), planned.end());
    if (!given.empty() && given != planned) refuse("stages", text_of(g.stages), text_of(r.stages));
    said("ping_pong", g.ping_pong, r.ping_pong, false);
    keep(r.reason, g.reason);
  }

  void check_channel(const plan::ChannelPlan& g) {
    enter(given_.kernel);
    const plan::ChannelPlan* r = plan::find_channel(result_, g.name);
    if (!r) return refuse("channels", text_of(g.name), "none: no tile comes by tensor copies");
    if (g.loop != r->loop) refuse("channels.loop", text_of(g.loop), text_of(r->loop));
    same("channels.values", g.values, r->values);
    said("channels.slots", g.slots, r->slots);
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
