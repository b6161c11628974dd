#include "schedule/accesses/assumption_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "analysis/neighbour_accesses.h"
#include "analysis/projection.h"
#include "analysis/tensor_bytes.h"
#include "analysis/tensor_copy.h"
#include "arith/context.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "ir/annotations.h"
#include "layout/tensor_tile.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using ir::ExprId;
using ir::VarId;

namespace {

constexpr int64_t kMaxAlignment = 4096;  // bytes

// Variables, and the product of the constants that something is divided by.
void collect_vars(const ir::ExprPool& e, ExprId id, std::set<VarId>& out, int64_t& divided_by) {
  constexpr int64_t kMax = int64_t{1} << 20;
  const ir::ExprNode& n = e[id];
  int64_t c = 0;
  if (n.op == ir::ExprOp::var) out.insert(n.var());
  if (n.op == ir::ExprOp::floordiv && e.is_const_int(n.b, &c) && c > 0 && c <= kMax / divided_by)
    divided_by *= c;
  for (ExprId operand : {n.a, n.b, n.c})
    if (operand) collect_vars(e, operand, out, divided_by);
}

class AssumptionPlanner {
 public:
  AssumptionPlanner(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                    Assumptions allowed)
      : p_(p), ops_(ops), target_(t), allowed_(allowed), exprs_(p.exprs), ctx_(exprs_) {
    const std::vector<int64_t> greatest = ir::greatest_values(p);
    for (const ir::Param& param : p.params)
      if (const ir::Var* v = dim_of(param))
        ctx_.bind(param.var, v->lower, greatest[param.var.value], v->divisor);
  }

  std::vector<plan::Assumption> plan(const plan::KernelSchedule& s) {
    std::map<ir::BufferId, int64_t> bytes;
    std::map<VarId, int64_t> wanted;
    for (const auto& [buffer, vector] : planned_vectors(s)) {
      const ir::Buffer& b = p_.buffer(buffer);
      const int64_t element = ir::dtype_bytes(b.type);
      int64_t elements = std::min(vector, target_.vector_bytes / element);
      const std::vector<ExprId> pitches = pitches_of(b);
      for (ExprId pitch : pitches)
        while (elements > 1 && !want_multiple(pitch, elements, wanted)) elements /= 2;
      if (elements < 2) continue;
      for (ExprId pitch : pitches) want_multiple(pitch, elements, wanted);
      bytes[buffer] = elements * element;
    }
    const std::set<ir::BufferId> bounded = tensors_to_bound(s);
    std::vector<plan::Assumption> list;
    for (const ir::Param& param : p_.params) {
      if (param.kind == ir::Param::Kind::tensor) {
        const auto tensor = bytes.find(param.buffer);
        const bool bound = bounded.count(param.buffer) > 0;
        if (bound || tensor != bytes.end())
          list.push_back({p_.buffer(param.buffer).name, tensor != bytes.end() ? tensor->second : 1,
                          bound ? target_.buffer_bytes : 0});
        continue;
      }
      if (const ir::Var* v = dim_of(param))
        if (const auto dim = wanted.find(param.var); dim != wanted.end() && v->divisor % dim->second != 0)
          list.push_back({v->name, std::lcm(v->divisor, dim->second)});
    }
    return list;
  }

  // A given one: what it is of, and whether there are such values.
  Checked check(const plan::Assumption& a, const std::string& kernel) const {
    for (const ir::Param& param : p_.params) {
      if (param.kind == ir::Param::Kind::tensor && p_.buffer(param.buffer).name == a.param) {
        if (a.most_bytes > 0 &&
            (a.most_bytes > target_.buffer_bytes || !analysis::TensorBytes(p_).goes_up(param.buffer)))
          return Error(DiagCode::schedule_illegal, kernel,
                       "the schedule assumes that tensor '" + a.param + "' has at most " +
                           std::to_string(a.most_bytes) + " bytes, and " + target_.name +
                           (a.most_bytes <= target_.buffer_bytes ? " bounds no tensor whose strides go down"
                            : target_.buffer_bytes == 0
                                ? " bounds no tensors"
                                : " bounds tensors of at most " + std::to_string(target_.buffer_bytes)),
                       "leave `most_bytes` out", p_.buffer(param.buffer).location);
        if (std::has_single_bit(static_cast<uint64_t>(a.multiple)) && a.multiple <= kMaxAlignment)
          return Unit{};
        return Error(DiagCode::schedule_illegal, kernel,
                     "the schedule assumes that the address of tensor '" + a.param + "' is a multiple of " +
                         std::to_string(a.multiple) + ", which is no power of two up to " +
                         std::to_string(kMaxAlignment),
                     "give bytes of an alignment", p_.buffer(param.buffer).location);
      }
      const ir::Var* v = dim_of(param);
      if (!v || v->name != a.param) continue;
      if (a.most_bytes > 0)
        return Error(DiagCode::schedule_illegal, kernel,
                     "the schedule assumes bytes of '" + a.param + "', which is a dim",
                     "give `most_bytes` of tensors alone");
      const auto facts = ctx_.facts_of(param.var);
      if (analysis::has_multiple(facts->range.lo, facts->range.hi, facts->divisor, a.multiple)) return Unit{};
      return Error(DiagCode::schedule_illegal, kernel,
                   "the schedule assumes that dim '" + a.param + "' is a multiple of " +
                       std::to_string(a.multiple) + ", and the program's facts leave it no such value",
                   "leave `assumptions` out to have them planned");
    }
    return Error(DiagCode::schedule_mismatch, kernel,
                 "the schedule assumes something of '" + a.param +
                     "', which is neither a tensor nor a dim of the program",
                 "leave `assumptions` out to have them planned");
  }

 private:
  // Of ops' tensors those that may be larger than the hardware's bounds reach. Which of their accesses have
  // predicates lowering finds; of asynchronous copies none goes without the bound.
  std::set<ir::BufferId> tensors_to_bound(const plan::KernelSchedule& s) const {
    std::set<ir::BufferId> list;
    if (target_.buffer_bytes == 0 || allowed_ != Assumptions::all) return list;
    analysis::TensorBytes bytes(p_);
    for (const KernelOp& op : ops_.ops) {
      const bool copied =
          target_.buffer_async_copies && s.ops[ops_.id_of(op).index()].engine == plan::Engine::async_copy;
      for (const analysis::OpAccess& a : op.accesses)
        if (p_.buffer(a.buffer).scope == ir::MemScope::global && !list.count(a.buffer) &&
            bytes.goes_up(a.buffer) && (copied || bytes.most(a.buffer) > target_.buffer_bytes))
          list.insert(a.buffer);
    }
    return list;
  }

  const ir::Var* dim_of(const ir::Param& param) const {
    if (param.kind == ir::Param::Kind::tensor) return nullptr;
    const ir::Var& v = p_.var(param.var);
    return v.kind == ir::VarKind::dim ? &v : nullptr;
  }

  // Of all dimensions but the last, without those that follow from others.
  std::vector<ExprId> pitches_of(const ir::Buffer& b) {
    std::vector<ExprId> pitches;
    if (b.strides.empty()) {
      if (b.shape.size() > 1) pitches.push_back(arith::simplify(ctx_, b.shape.back()));
    } else {
      for (size_t d = 0; d + 1 < b.strides.size(); ++d)
        pitches.push_back(arith::simplify(ctx_, b.strides[d]));
    }
    return pitches;
  }

  // Largest vector, in elements, that an op's plan moves of each tensor.
  std::map<ir::BufferId, int64_t> planned_vectors(const plan::KernelSchedule& s) const {
    std::map<ir::BufferId, int64_t> widest;
    const auto tensor = [&](ir::BufferId b) { return p_.buffer(b).scope == ir::MemScope::global; };
    for (const KernelOp& op : ops_.ops) {
      const plan::OpPlan& plan = s.ops[ops_.id_of(op).index()];
      // The copy engine wants bases and pitches in units.
      if (plan.engine == plan::Engine::tensor_copy)
        for (const analysis::OpAccess& a : op.accesses)
          if (tensor(a.buffer))
            widest[a.buffer] = layout::kTensorUnit / ir::dtype_bytes(p_.buffer(a.buffer).type);
      if (allowed_ == Assumptions::copy_engine) continue;
      if (op.form != analysis::OpForm::element || plan.vector < 2 || !plan.iteration) continue;
      const auto joined = analysis::joined_accesses(p_, op, plan, s.values, target_.vector_bytes);
      for (size_t i = 0; i < joined.size(); ++i)
        if (const ir::BufferId b = op.accesses[i].buffer; tensor(b) && joined[i].elements > 1)
          widest[b] = std::max(widest[b], joined[i].elements);
      const int dim = analysis::vector_dim(*plan.iteration);
      const bool by_copies = plan.engine == plan::Engine::async_copy && ir::is_asynchronous(p_.stmt(op.stmt));
      for (const ops::ElementAccess& a : op.view.accesses) {
        if (!tensor(a.buffer) || (a.along_last() != dim && !by_copies) || dim < 0) continue;
        widest[a.buffer] = std::max(widest[a.buffer], plan.vector);
      }
    }
    return widest;
  }

  // `divisor` is to divide the expression: dims of it that have to be multiples are added to `wanted`, with
  // the multiple. False when no multiples that the facts allow make it so.
  bool want_multiple(ExprId pitch, int64_t divisor, std::map<VarId, int64_t>& wanted) {
    const auto divides = [&] { return arith::divisor_of(ctx_, pitch) % divisor == 0; };
    if (divides()) return true;
    std::set<VarId> vars;
    int64_t divided_by = 1;
    collect_vars(exprs_, pitch, vars, divided_by);
    const auto mark = ctx_.mark();
    for (int64_t multiple : {divisor, divisor * divided_by}) {
      std::vector<VarId> used;
      for (VarId v : vars) {
        const auto facts = ctx_.facts_of(v);
        if (!facts || !analysis::has_multiple(facts->range.lo, facts->range.hi, facts->divisor, multiple))
          continue;
        ctx_.bind(v, facts->range.lo, facts->range.hi, std::lcm(facts->divisor, multiple));
        used.push_back(v);
        if (divides()) break;
      }
      const bool reached = divides();
      ctx_.rollback(mark);
      if (!reached) continue;
      for (VarId v : used) wanted[v] = wanted[v] == 0 ? multiple : std::lcm(wanted[v], multiple);
      return true;
    }
    return false;
  }

  const ir::Program& p_;
  const analysis::KernelOps& ops_;
  const target::Target& target_;
  const Assumptions allowed_;
  ir::ExprPool exprs_;
  arith::Context ctx_;
};

}  // namespace

Checked plan_assumptions(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                         Assumptions allowed, const plan::KernelSchedule* given, plan::KernelSchedule& s) {
  s.assumptions.emplace();
  if (given && given->assumptions && allowed == Assumptions::all) {
    const AssumptionPlanner facts(p, ops, t, allowed);
    for (const plan::Assumption& a : *given->assumptions)
      if (Checked ok = facts.check(a, s.kernel); !ok) return ok;
    s.assumptions = given->assumptions;
  } else if (allowed != Assumptions::none) {
    s.assumptions = AssumptionPlanner(p, ops, t, allowed).plan(s);
  }
  return Unit{};
}

}  // namespace tilegen::schedule
