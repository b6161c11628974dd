#include "analysis/tensor_uses.h"

#include <algorithm>

#include "arith/prove.h"

namespace tilegen::analysis {

// Of a grid's dimensions with several blocks.
TensorUses::BlockVars TensorUses::block_vars_of(std::span<const ir::ExprId> indices) const {
  BlockVars found;
  for (size_t v = 0; v < kernel_.block_vars.size(); ++v) {
    int64_t blocks = 0;
    if (p_.exprs.is_const_int(kernel_.grid[v], &blocks) && blocks == 1) continue;
    for (ir::ExprId e : indices)
      if (arith::depends_on(p_.exprs, e, kernel_.block_vars[v])) found.insert(kernel_.block_vars[v]);
  }
  return found;
}

void TensorUses::read(ir::StmtId s, ir::BufferId tensor, std::span<const ir::ExprId> indices) {
  read_[{s, tensor}].merge(block_vars_of(indices));
}

void TensorUses::write(ir::BufferId tensor, std::span<const ir::ExprId> indices) {
  written_[tensor].merge(block_vars_of(indices));
}

std::optional<std::pair<ir::StmtId, std::string>> TensorUses::in_place() const {
  for (const auto& [written, of_write] : written_)
    for (const auto& [where, of_read] : read_) {
      const ir::Buffer &w = p_.buffer(written), &r = p_.buffer(where.second);
      if (where.second == written)
        return std::pair(where.first, "it reads '" + w.name + "', which is written");
      if (w.type == r.type && w.shape.size() == r.shape.size() &&
          std::includes(of_read.begin(), of_read.end(), of_write.begin(), of_write.end()))
        return std::pair(where.first,
                         "a launch may pass one tensor as '" + r.name + "' and '" + w.name + "'");
    }
  return std::nullopt;
}

}  // namespace tilegen::analysis
