#include "analysis/shared_rows.h"

#include "analysis/tensor_copy.h"
#include "arith/prove.h"
#include "layout/tensor_tile.h"

namespace tilegen::analysis {

namespace {

constexpr int64_t kSwizzleRows = 8;  // of a box, after which its swizzle repeats

}  // namespace

std::optional<ir::VarId> block_index(const ir::Program& p, const ir::Kernel& kernel,
                                     const std::string& name) {
  for (ir::VarId v : kernel.block_vars)
    if (p.var(v).name == name) return v;
  return std::nullopt;
}

int64_t shared_rows(const ir::Program& p, const ir::Kernel& kernel, const KernelOp& copy,
                    const layout::Layout& tile, const plan::ClusterPlan& cluster) {
  const auto along = block_index(p, kernel, cluster.along);
  const auto* op = p.as<ir::TileOp>(copy.stmt);
  if (cluster.blocks < 2 || !along || !op) return 0;
  if (kernel.split && *along == kernel.split->part) return 0;  // other iterations of the loop
  const ir::Region& from = op->operands[0];
  for (ir::ExprId offset : from.offsets)
    if (arith::depends_on(p.exprs, offset, *along)) return 0;
  const auto dims = tensor_copy_dims(p, *op, nullptr);
  if (!dims || dims->tensor_outer.empty()) return 0;
  const auto boxes = tensor_boxes(*dims, tile, ir::dtype_bytes(p.buffer(from.buffer).type), nullptr);
  if (!boxes || boxes->rows % (cluster.blocks * kSwizzleRows) != 0) return 0;
  const int64_t share = boxes->rows / cluster.blocks;
  return dims->box_of_rows(share) ? share : 0;
}

}  // namespace tilegen::analysis
