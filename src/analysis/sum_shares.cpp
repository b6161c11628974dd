#include "analysis/sum_shares.h"

#include <algorithm>

#include "ops/op.h"

namespace tilegen::analysis {

namespace {

bool mentions(const ir::ExprPool& exprs, ir::ExprId root, ir::VarId var) {
  std::vector<ir::ExprId> todo = {root};
  while (!todo.empty()) {
    const ir::ExprId at = todo.back();
    todo.pop_back();
    if (!at.valid()) continue;
    const ir::ExprNode n = exprs[at];
    if (n.op == ir::ExprOp::var && n.var() == var) return true;
    for (ir::ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
  }
  return false;
}

// The dimension in which the copy's source goes by the part; none of other copies.
int cut_dim(const ir::Program& p, const ir::Kernel& kernel, ir::StmtId stmt) {
  const auto* copy = p.as<ir::TileOp>(stmt);
  if (!kernel.split || !copy || !ops::is_copy(*copy)) return -1;
  const ir::Region& from = copy->operands[0];
  if (p.buffer(from.buffer).scope != ir::MemScope::fragment) return -1;
  for (size_t d = 0; d < from.offsets.size(); ++d)
    if (mentions(p.exprs, from.offsets[d], kernel.split->part)) return static_cast<int>(d);
  return -1;
}

}  // namespace

bool takes_share(const ir::Program& p, const ir::Kernel& kernel, ir::StmtId op) {
  return cut_dim(p, kernel, op) >= 0;
}

std::vector<SumShare> sum_shares(const ir::Program& p, int kernel, const KernelOps& ops) {
  const ir::Kernel& k = p.kernels[static_cast<size_t>(kernel)];
  std::vector<SumShare> found;
  if (!k.split) return found;
  int64_t parts = 1;
  p.exprs.is_const_int(k.grid.front(), &parts);
  for (OpId i : ops.ops.ids()) {
    const int dim = cut_dim(p, k, ops.ops[i].stmt);
    if (dim < 0) continue;
    found.push_back({i, ops.ops[i].accesses[0].value, ops.ops[i].accesses[1].value, dim, parts});
  }
  return found;
}

std::optional<CutFragment> cut_fragment(const layout::Fragment& whole, int dim, int64_t parts) {
  const layout::Layout& map = whole.map();
  std::vector<layout::Digit> digits = map.digits();
  layout::Digit* top = nullptr;
  for (layout::Digit& d : digits)
    if (d.dim == dim && (!top || d.weight > top->weight)) top = &d;
  if (!top || top->output != layout::kRegister || top->stride <= 0 || top->extent % parts != 0 ||
      map.padded_extent(dim) != map.shape()[static_cast<size_t>(dim)])
    return std::nullopt;
  CutFragment cut;
  cut.step = top->extent * top->stride;
  cut.run = cut.step / parts;
  for (layout::Digit& d : digits) {
    if (&d == top || d.output != layout::kRegister) continue;
    const bool below = d.stride * d.extent <= top->stride, above = d.stride % cut.step == 0;
    if (d.stride <= 0 || (!below && !above)) return std::nullopt;
    if (!below) d.stride /= parts;
  }
  top->extent /= parts;
  std::vector<int64_t> shape = map.shape();
  shape[static_cast<size_t>(dim)] /= parts;
  std::erase_if(digits, [](const layout::Digit& d) { return d.extent == 1; });
  auto own = layout::Layout::make(std::move(shape), std::move(digits), map.outputs());
  if (!own) return std::nullopt;
  auto fragment = layout::Fragment::make(std::move(*own), whole.threads());
  if (!fragment) return std::nullopt;
  cut.own = fragment->canonical();
  return cut;
}

}  // namespace tilegen::analysis
