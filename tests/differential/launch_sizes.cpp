#include "launch_sizes.h"

#include <algorithm>

namespace tilegen::differential {

namespace {

void mark_vars(const ir::Program& p, ir::ExprId id, std::vector<bool>& marked) {
  const ir::ExprNode& n = p.exprs[id];
  if (n.op == ir::ExprOp::var) marked[n.var().value] = true;
  const ir::ExprId operands[] = {n.a, n.b, n.c};
  for (int i = 0; i < ir::expr_arity(n.op); ++i) mark_vars(p, operands[i], marked);
}

// By variable: a factor of an extent of a grid or a serial loop, while no index and no extent is cut into
// tiles by it: `b` of grid (bz: b, by: ceildiv(m, 64)).
std::vector<bool> counting_vars(const ir::Program& p) {
  std::vector<bool> counting(p.vars.size()), divided(p.vars.size());
  for (size_t i = 0; i < p.exprs.size(); ++i)
    if (const ir::ExprNode& n = p.exprs[ir::ExprId(i)];
        n.op == ir::ExprOp::floordiv || n.op == ir::ExprOp::floormod)
      mark_vars(p, n.a, divided);
  const auto count = [&](ir::ExprId extent) {
    std::vector<ir::ExprId> factors = {extent};
    while (!factors.empty()) {
      const ir::ExprNode& n = p.exprs[factors.back()];
      factors.pop_back();
      if (n.op == ir::ExprOp::mul) factors.insert(factors.end(), {n.a, n.b});
      if (n.op == ir::ExprOp::var) counting[n.var().value] = !divided[n.var().value];
    }
  };
  for (const ir::Kernel& k : p.kernels)
    for (ir::ExprId extent : k.grid) count(extent);
  for (size_t i = 0; i < p.stmts.size(); ++i)
    if (const auto* loop = p.as<ir::Loop>(ir::StmtId(i)); loop && loop->kind != ir::LoopKind::parallel)
      for (ir::ExprId extent : loop->extents) count(extent);
  return counting;
}

}  // namespace

int64_t allowed(const ir::Var& v, int64_t wanted) {
  int64_t value = std::clamp(wanted, v.lower, v.upper);
  value = (value + v.divisor - 1) / v.divisor * v.divisor;
  return value > v.upper ? value - v.divisor : value;
}

Launch launch_near(const ir::Program& p, const std::vector<int64_t>& sizes) {
  const std::vector<bool> counting = counting_vars(p);
  const bool several = std::count(counting.begin(), counting.end(), true) > 1;
  Launch launch;
  size_t next = 0;
  int64_t counts = 0;  // of several dims: 2 and 3 by turns
  for (size_t i = 0; i < p.vars.size(); ++i) {
    const ir::Var& v = p.vars[i];
    if (v.kind != ir::VarKind::dim) continue;
    int64_t size = sizes[next++ % sizes.size()];
    if (counting[i]) size = std::min(size, several ? 2 + counts++ % 2 : 3 + size % 5);
    launch.dims[v.name] = allowed(v, size);
  }
  return launch;
}

}  // namespace tilegen::differential
