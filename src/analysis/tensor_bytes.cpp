#include "analysis/tensor_bytes.h"

#include <algorithm>

#include "arith/prove.h"
#include "support/checked.h"

namespace tilegen::analysis {

TensorBytes::TensorBytes(const ir::Program& p) : p_(p), exprs_(p.exprs), ctx_(exprs_) {
  const std::vector<int64_t> greatest = ir::greatest_values(p);
  for (const ir::Param& param : p.params) {
    if (param.kind == ir::Param::Kind::tensor) continue;
    const ir::Var& v = p.var(param.var);
    if (v.kind == ir::VarKind::dim) ctx_.bind(param.var, v.lower, greatest[param.var.value], v.divisor);
  }
}

bool TensorBytes::goes_up(ir::BufferId tensor) {
  const std::vector<ir::ExprId>& strides = p_.buffer(tensor).strides;
  return std::all_of(strides.begin(), strides.end(),
                     [&](ir::ExprId stride) { return arith::range_of(ctx_, stride).lo >= 0; });
}

int64_t TensorBytes::most(ir::BufferId tensor) {
  if (!goes_up(tensor)) return INT64_MAX;
  const ir::Buffer& b = p_.buffer(tensor);
  std::optional<int64_t> bytes = ir::dtype_bytes(b.type);
  for (size_t d = 0; bytes && d < b.shape.size(); ++d) {
    const int64_t extent = std::max<int64_t>(arith::range_of(ctx_, b.shape[d]).hi, 1);
    if (b.strides.empty()) {
      bytes = checked_mul(*bytes, extent);
      continue;
    }
    auto more = checked_mul(extent - 1, arith::range_of(ctx_, b.strides[d]).hi);
    if (more) more = checked_mul(*more, int64_t{ir::dtype_bytes(b.type)});
    bytes = more ? checked_add(*bytes, *more) : std::nullopt;
  }
  return bytes.value_or(INT64_MAX);
}

}  // namespace tilegen::analysis
