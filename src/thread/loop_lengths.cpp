#include "thread/loop_lengths.h"

#include <algorithm>

namespace tilegen::thread {

LoopLengths::LoopLengths(const ThreadProgram& p) : p_(p) {
  for (const Stmt& s : p.stmts)
    if (const auto* loop = std::get_if<Loop>(&s.node); loop && !p.exprs.is_const(loop->extent))
      extents_.emplace_back(p.exprs, loop->extent);
}

void LoopLengths::choose(int64_t trips, bool large, PointValues& values) const {
  for (const Param& param : p_.params)
    if (param.kind == Param::Kind::scalar && ir::is_integer(param.type)) values.set(param.var, 1);
  for (ir::VarId block : p_.block_vars) values.set(block, 0);
  if (p_.launched_var.valid()) values.set(p_.launched_var, 1);
  for (const Param& param : p_.params)
    if (param.kind == Param::Kind::dim) values.set(param.var, dim(param.var, trips, large));
}

int64_t LoopLengths::dim(ir::VarId var, int64_t trips, bool large) const {
  const ir::Var& v = p_.vars[var.value];
  const int64_t step = std::max<int64_t>(v.divisor, 1);
  const int64_t first = (std::max<int64_t>(v.lower, 0) + step - 1) / step * step;
  PointValues at(p_.vars.size());
  for (ir::VarId block : p_.block_vars) at.set(block, 0);
  constexpr int64_t kTries = 2048;
  for (int64_t i = 0, d = first; i < kTries && d <= v.upper; ++i, d += step) {
    at.set(var, d);
    for (const IndexProgram& extent : extents_)
      if (extent.depends_on(var) && extent.eval(at) == trips) return d;
  }
  return std::min<int64_t>(v.upper, first + (large ? 1024 : 1) * step);
}

}  // namespace tilegen::thread
