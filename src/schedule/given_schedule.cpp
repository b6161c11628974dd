#include "schedule/given_schedule.h"

#include <algorithm>
#include <set>

namespace tilegen::schedule {

using infer::KernelOp;
using infer::KernelOps;
using plan::KernelSchedule;

Checked check_names(const KernelSchedule& given, const ir::Program& p, int kernel, const KernelOps& ops) {
  std::set<std::string> op_names, value_names, loop_names;
  for (const KernelOp& op : ops.ops) op_names.insert(op.path);
  for (const infer::Value& v : ops.values) value_names.insert(v.name);
  std::vector<std::string> paths = ir::statement_paths(p);
  ir::for_each_statement(p, p.kernels[static_cast<size_t>(kernel)].body, [&](ir::StmtId id, int) {
    if (const auto* loop = p.as<ir::Loop>(id); loop && loop->kind == ir::LoopKind::pipelined)
      loop_names.insert(paths[id.value]);
  });
  auto refuse = [&](const char* what, const std::string& name,
                    const std::set<std::string>& known) -> Checked {
    std::string list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    return Error(
        DiagCode::schedule_mismatch, given.kernel,
        std::string("the schedule names ") + what + " '" + name + "', which the kernel does not have",
        std::string("known: ") + (list.empty() ? "none" : list));
  };
  for (const auto& o : given.ops)
    if (!op_names.count(o.op)) return refuse("op", o.op, op_names);
  for (const auto& v : given.values)
    if (!value_names.count(v.value)) return refuse("value", v.value, value_names);
  for (const auto& l : given.loops)
    if (!loop_names.count(l.loop)) return refuse("loop", l.loop, loop_names);
  for (const auto& c : given.channels) {
    if (!c.loop.empty() && !loop_names.count(c.loop)) return refuse("loop", c.loop, loop_names);
    for (const std::string& v : c.values)
      if (!value_names.count(v)) return refuse("value", v, value_names);
  }
  return Unit{};
}

bool is_complete(const KernelSchedule& given, const KernelOps& ops) {
  for (const KernelOp& op : ops.ops) {
    const plan::OpPlan* g = plan::find_op(given, op.path);
    if (!g) return false;
    if (op.form != infer::OpForm::gemm && !g->iteration && g->engine != plan::Engine::tensor_copy) return false;
    if (op.form == infer::OpForm::gemm && g->atom.empty() && g->engine != plan::Engine::loop) return false;
  }
  for (const infer::Value& v : ops.values) {
    const plan::ValuePlan* g = plan::find_value(given, v.name);
    if (!g || (!g->fragment && !g->memory)) return false;
  }
  return true;
}

Expected<infer::InferResult> replay(const ir::Program& p, const KernelOps& ops, const std::map<size_t, ops::GemmPlan>& gemms,
                                    const KernelSchedule& given, int64_t threads) {
  infer::InferResult r;
  auto illegal = [&](const std::string& name, const std::string& message) {
    return Error(DiagCode::schedule_illegal, name, message, "delete the field to have it inferred");
  };
  for (const infer::Value& v : ops.values) {
    plan::ValuePlan plan = *plan::find_value(given, v.name);
    plan.slots = 1;
    const bool registers = v.scope == ir::MemScope::fragment || v.scope == ir::MemScope::local;
    const bool place = registers ? plan.fragment.has_value() != plan.memory.has_value() : plan.memory.has_value();
    if (!place || (!registers && plan.fragment) || (registers && plan.memory && threads == 1) ||
        (plan.fragment ? plan.fragment->shape() : plan.memory->shape()) != v.shape ||
        (plan.fragment && plan.fragment->threads() != threads) ||
        (plan.memory && !plan.memory->is_injective()))
      return illegal(v.name,
                     "the given layout does not fit the buffer's scope, its shape or the block's threads");
    r.values.push_back(std::move(plan));
  }
  for (size_t i = 0; i < ops.ops.size(); ++i) {
    const KernelOp& op = ops.ops[i];
    plan::OpPlan plan = *plan::find_op(given, op.path);
    if (op.form == infer::OpForm::gemm && plan.engine != plan::Engine::loop) {
      const ops::GemmPlan& g = gemms.at(i);
      auto fits = [&](int operand, const std::optional<layout::Layout>& m, const layout::Fragment* f) {
        const plan::ValuePlan& v =
            r.values[static_cast<size_t>(op.accesses[static_cast<size_t>(operand)].value)];
        if (m && threads == 1) return v.memory && v.memory->equivalent(*m);
        const bool converted = std::any_of(given.conversions.begin(), given.conversions.end(), [&](const auto& c) {
          return c.value == v.value && c.producer == op.path;
        });
        if (f && (threads == 1 || (operand == 2 && !converted))) return v.fragment && v.fragment->equivalent(*f);
        return true;
      };
      if (!fits(0, g.a_memory, g.a_fragment ? &*g.a_fragment : nullptr) ||
          !fits(1, g.b_memory, g.b_fragment ? &*g.b_fragment : nullptr) || !fits(2, std::nullopt, &g.c))
        return illegal(op.path, "an operand's given layout is not the one atom '" + g.atom + "' works on");
    } else if (op.form == infer::OpForm::element && plan.iteration &&
               (plan.iteration->shape() != op.view.extents || plan.iteration->threads() != threads)) {
      return illegal(op.path,
                     "the given iteration layout does not fit the op's extents or the block's threads");
    }
    r.ops.push_back(std::move(plan));
  }
  r.conversions = given.conversions;
  (void)p;
  return r;
}

}  // namespace tilegen::schedule
