#include "schedule/check/check_schedule.h"

#include <algorithm>
#include <set>

#include "ir/statement_paths.h"
#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;
using plan::KernelSchedule;

namespace {

// What a kernel's schedule may name.
class Names {
 public:
  Names(const KernelSchedule& given, const ir::Program& p, int kernel, const KernelOps& ops) : given_(given) {
    for (const KernelOp& op : ops.ops) op_names_.insert(op.path);
    for (const analysis::Value& v : ops.values) value_names_.insert(v.name);
    const ir::KernelPaths paths(p, kernel);
    ir::for_each_statement(p, p.kernels[static_cast<size_t>(kernel)].body, [&](ir::StmtId id, int) {
      const auto* loop = p.as<ir::Loop>(id);
      if (!loop || loop->kind == ir::LoopKind::parallel) return;
      pipelined_names_.insert(paths[id.value]);
    });
  }

  Checked check() {
    for (const plan::OpPlan& o : given_.ops) {
      op(o.op);
      for (const std::string& v : o.through_memory) value(v);
    }
    for (const plan::RolePlan& r : given_.roles.value_or(std::vector<plan::RolePlan>()))
      for (const std::string& path : r.ops) op(path);
    for (const plan::ValuePlan& v : given_.values) value(v.value);
    for (const plan::LoopPlan& l : given_.loops) {
      look_up("loop", l.loop, pipelined_names_);
      for (const auto& [path, stage] : l.stages) op(path);
    }
    for (const plan::PipelinePlan& c : given_.pipelines) {
      if (!c.loop.empty()) look_up("loop", c.loop, pipelined_names_);
      for (const std::string& v : c.values) value(v);
    }
    for (const plan::ConversionPlan& c : given_.conversions) {
      value(c.value);
      for (const std::string& path : {c.producer, c.consumer})
        if (!path.empty()) op(path);
    }
    return std::move(result_);
  }

 private:
  void op(const std::string& name) { look_up("op", name, op_names_); }
  void value(const std::string& name) { look_up("value", name, value_names_); }
  void look_up(const char* what, const std::string& name, const std::set<std::string>& known) {
    if (!result_ || known.count(name)) return;
    std::string list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    result_ =
        Error(DiagCode::schedule_mismatch, given_.kernel,
              std::string("the schedule names ") + what + " '" + name + "', which the kernel does not have",
              "known: " + (list.empty() ? "none" : list));
  }

  const KernelSchedule& given_;
  std::set<std::string> op_names_, value_names_, pipelined_names_;
  Checked result_ = Unit{};
};

}  // namespace

Checked check_schedule(const plan::Schedule& given, const ir::Program& p, const target::Target& t) {
  if (!given.target.empty() && target::simulated_name(given.target) != target::simulated_name(t.name))
    return Error(
        DiagCode::schedule_mismatch, p.name,
        "the schedule is for target '" + given.target + "', and the program is compiled for " + t.name,
        "compile for that target, or leave `target` out: every other field is looked at");
  if (!given.program_hash.empty() && given.program_hash != ir::program_hash(p))
    return Error(
        DiagCode::schedule_mismatch, p.name,
        "the schedule is for program " + given.program_hash + ", and this one is " + ir::program_hash(p),
        "use the schedule of this program, or leave `program_hash` out: every other field is looked at");
  for (const KernelSchedule& g : given.kernels)
    if (std::none_of(p.kernels.begin(), p.kernels.end(),
                     [&](const ir::Kernel& k) { return k.name == g.kernel; }))
      return Error(DiagCode::schedule_mismatch, g.kernel,
                   "the schedule names kernel '" + g.kernel + "', which the program does not have",
                   "use the schedule of this program");
  return Unit{};
}

Checked check_names(const KernelSchedule& given, const ir::Program& p, int kernel, const KernelOps& ops) {
  return Names(given, p, kernel, ops).check();
}

}  // namespace tilegen::schedule
