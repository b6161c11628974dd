// What wide accesses to tensors need and the program does not promise: an aligned address, row pitches that
// are multiples of the vector. Assumed where an op's plan moves vectors, and recorded as guards of the
// kernel.
#include <algorithm>
#include <bit>
#include <numeric>

#include "analysis/projection.h"
#include "layout/tensor_tile.h"
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

namespace {

// Variables, and the product of the constants that something is divided by.
void collect_vars(const ir::ExprPool& e, ExprId id, std::set<VarId>& out, int64_t& divided_by) {
  constexpr int64_t kMost = int64_t{1} << 20;
  const ir::ExprNode& n = e[id];
  int64_t c = 0;
  if (n.op == ir::ExprOp::var) out.insert(n.var());
  if (n.op == ir::ExprOp::floordiv && e.is_const_int(n.b, &c) && c > 0 && c <= kMost / divided_by)
    divided_by *= c;
  for (ExprId operand : {n.a, n.b, n.c})
    if (operand) collect_vars(e, operand, out, divided_by);
}

}  // namespace

// Largest vector, in elements, that an op's plan moves of each tensor.
std::map<ir::BufferId, int64_t> KernelLowering::planned_vectors() const {
  std::map<ir::BufferId, int64_t> widest;
  for (const analysis::KernelOp& op : ops_.ops) {
    const plan::OpPlan* plan = plan::find_op(schedule_, op.path);
    // The copy engine wants bases and pitches in units.
    if (plan && plan->engine == plan::Engine::tensor_copy)
      for (const analysis::OpAccess& a : op.accesses)
        if (globals_.count(a.buffer))
          widest[a.buffer] = layout::kTensorUnit / ir::dtype_bytes(p_.buffer(a.buffer).type);
    if (options_.for_copy_engine_only) continue;
    if (op.form != analysis::OpForm::element || !plan || plan->vector < 2 || !plan->iteration) continue;
    const int dim = analysis::vector_dim(*plan->iteration);
    for (const ops::ElementAccess& a : op.view.accesses) {
      if (!globals_.count(a.buffer) || a.dim_of.empty() || a.dim_of.back() != dim || dim < 0) continue;
      widest[a.buffer] = std::max(widest[a.buffer], plan->vector);
    }
  }
  return widest;
}

// `divisor` is to divide the expression: dims of it that have to be multiples are added to `wanted`, with the
// multiple. False when no multiples that the facts allow make it so.
bool KernelLowering::want_multiple(ExprId stride, int64_t divisor, std::map<VarId, int64_t>& wanted) {
  const auto divides = [&] { return arith::divisor_of(ctx_, stride) % divisor == 0; };
  if (divides()) return true;
  std::set<VarId> vars;
  int64_t divided_by = 1;
  collect_vars(out_.exprs, stride, vars, divided_by);
  auto mark = ctx_.mark();
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

void KernelLowering::assume_alignment() {
  std::map<VarId, int64_t> wanted;
  for (const auto& [buffer, vector] : planned_vectors()) {
    const ir::Buffer& b = p_.buffer(buffer);
    thread::Memory& m = out_.memories[globals_.at(buffer).value];
    const int64_t bytes = ir::dtype_bytes(b.type);
    int64_t elements = std::min(vector, target_.vector_bytes / bytes);
    std::vector<ExprId> strides;  // all but the last dimension's, without those that follow from others
    if (b.strides.empty()) {
      if (b.shape.size() > 1) strides.push_back(simplified(lower_expr(b.shape.back())));
    } else {
      for (size_t d = 0; d + 1 < b.strides.size(); ++d)
        strides.push_back(simplified(lower_expr(b.strides[d])));
    }
    for (ExprId stride : strides)
      while (elements > 1 && !want_multiple(stride, elements, wanted)) elements /= 2;
    if (elements < 2) continue;
    for (ExprId stride : strides) want_multiple(stride, elements, wanted);
    m.alignment = std::max(m.alignment, elements * bytes);
    out_.guards.push_back({m.param, m.alignment});
  }
  for (const auto& [var, divisor] : wanted) {
    const auto facts = ctx_.facts_of(var);
    if (facts->divisor % divisor == 0) continue;
    ctx_.bind(var, facts->range.lo, facts->range.hi, std::lcm(facts->divisor, divisor));
    for (size_t i = 0; i < out_.params.size(); ++i)
      if (out_.params[i].kind == thread::Param::Kind::dim && out_.params[i].var == var)
        out_.guards.push_back({static_cast<int>(i), std::lcm(facts->divisor, divisor)});
  }
  std::sort(out_.guards.begin(), out_.guards.end(),
            [](const thread::Guard& a, const thread::Guard& b) { return a.param < b.param; });
}

}  // namespace tilegen::lower
