#include "infer/unrolled_vars.h"

#include <algorithm>

#include "analysis/uniformity.h"

namespace tilegen::infer {

void UnrolledVars::find(const ir::Block& block) {
  for (ir::StmtId id : block) {
    if (const auto* loop = p_.as<ir::Loop>(id); loop && loop->kind != ir::LoopKind::parallel) {
      if (loop->kind == ir::LoopKind::unroll && p_.exprs.is_const_int(loop->extents[0]) && fix(loop->begin))
        vars_.insert(loop->vars[0]);
      find(loop->body);
    }
    if (const auto* branch = p_.as<ir::Branch>(id)) {
      find(branch->then_body);
      find(branch->else_body);
    }
  }
}

bool UnrolledVars::fix(ir::ExprId index, std::span<const ir::VarId> walked) const {
  return analysis::is_constant_with(p_.exprs, index, [&](ir::VarId v) {
    return vars_.count(v) > 0 || std::find(walked.begin(), walked.end(), v) != walked.end();
  });
}

}  // namespace tilegen::infer
