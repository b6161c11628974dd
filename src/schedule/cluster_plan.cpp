#include "schedule/cluster_plan.h"

#include <algorithm>
#include <bit>

#include "arith/prove.h"
#include "layout/tensor_tile.h"
#include "ops/tensor_copy.h"
#include "schedule/work_order.h"
#include "thread/thread_program.h"

namespace tilegen::schedule {

namespace {

constexpr int64_t kSwizzleRows = 8;  // of a box, behind which its swizzle repeats
std::optional<ir::VarId> block_index(const ir::Program& p, const ir::Kernel& kernel, const std::string& name) {
  for (ir::VarId v : kernel.block_vars)
    if (p.var(v).name == name) return v;
  return std::nullopt;
}

int written_value(const infer::KernelOp& op) {
  for (const infer::OpAccess& a : op.accesses)
    if (a.write) return a.value;
  return -1;
}

class ClusterPlanner {
 public:
  ClusterPlanner(const ir::Program& p, const ir::Kernel& kernel, const infer::KernelOps& ops,
                 const target::Target& t, const std::set<size_t>& produced, const std::vector<plan::ValuePlan>& values)
      : p_(p), kernel_(kernel), ops_(ops), target_(t), produced_(produced), values_(values) {}

  // Why blocks of a kernel whose tiles come by tensor copies cannot make up clusters; empty when they can.
  std::string refusal() const {
    if (produced_.empty()) return "no tile comes by tensor copies";
    for (size_t op : produced_) {
      if (in_branch(p_, kernel_, ops_.ops[op].stmt)) return "blocks have different amounts of work";
      for (ir::StmtId id : kernel_.body)
        if (const auto* loop = p_.as<ir::Loop>(id); loop && fills(*loop, ops_.ops[op]) && varies_by_block(p_, kernel_, *loop))
          return "blocks have different amounts of work";
    }
    return "";
  }

  int64_t shared_tiles(const plan::ClusterPlan& cluster) const {
    return std::count_if(produced_.begin(), produced_.end(), [&](size_t op) {
      const plan::ValuePlan& v = values_[static_cast<size_t>(written_value(ops_.ops[op]))];
      return v.memory && shared_rows(p_, kernel_, ops_.ops[op], *v.memory, cluster) > 0;
    });
  }

 private:
  bool fills(const ir::Loop& loop, const infer::KernelOp& op) const {
    bool found = false;
    ir::for_each_statement(p_, loop.body, [&](ir::StmtId id, int) { found |= id == op.stmt; });
    return found;
  }
  const ir::Program& p_;
  const ir::Kernel& kernel_;
  const infer::KernelOps& ops_;
  const target::Target& target_;
  const std::set<size_t>& produced_;
  const std::vector<plan::ValuePlan>& values_;
};

}  // namespace

int64_t shared_rows(const ir::Program& p, const ir::Kernel& kernel, const infer::KernelOp& copy,
                    const layout::Layout& tile, const plan::ClusterPlan& cluster) {
  const auto along = block_index(p, kernel, cluster.along);
  const auto* op = p.as<ir::TileOp>(copy.stmt);
  if (cluster.blocks < 2 || !along || !op) return 0;
  const ir::Region& from = op->operands[0];
  for (ir::ExprId offset : from.offsets)
    if (arith::depends_on(p.exprs, offset, *along)) return 0;
  const auto dims = ops::tensor_copy_dims(p, *op, nullptr);
  if (!dims || dims->tensor_outer < 0) return 0;
  const auto boxes = layout::tensor_tile(tile, dims->tile_inner, ir::dtype_bytes(p.buffer(from.buffer).type), nullptr);
  if (!boxes || boxes->rows % (cluster.blocks * kSwizzleRows) != 0) return 0;
  return boxes->rows / cluster.blocks;
}

Expected<plan::ClusterPlan> plan_cluster(const ir::Program& p, const ir::Kernel& kernel, const infer::KernelOps& ops,
                                         const target::Target& t, const std::set<size_t>& produced,
                                         const std::vector<plan::ValuePlan>& values,
                                         const plan::RolePlan& roles,
                                         const plan::KernelSchedule* given) {
  const ClusterPlanner planner(p, kernel, ops, t, produced, values);
  // Measured (docs/performance.md): large products gain nothing, small ones that wait for tiles which many blocks read lose
  // to the meetings and to slots that go back only when the slowest block is done.
  if (!given || !given->cluster) return plan::ClusterPlan{};
  const plan::ClusterPlan& plan = *given->cluster;
  if (plan.blocks == 1) return plan;
  auto illegal = [&](std::string why) {
    return Error(DiagCode::schedule_illegal, kernel.name, "the given cluster is not possible: " + why,
                 "leave `cluster` out to have it planned", kernel.location);
  };
  if (!std::has_single_bit(static_cast<uint64_t>(plan.blocks)) || plan.blocks > thread::kMostCluster)
    return illegal(std::to_string(plan.blocks) + " blocks are not 1, 2, 4 or 8");
  if (!block_index(p, kernel, plan.along)) {
    std::string known;
    for (ir::VarId v : kernel.block_vars) known += (known.empty() ? "" : ", ") + p.var(v).name;
    return Error(DiagCode::schedule_mismatch, kernel.name,
                 "the given cluster is along '" + plan.along + "', which is no block index of the kernel", "known: " + known,
                 kernel.location);
  }
  if (!t.tensor_copy || roles.producer_threads == 0) return illegal("the kernel has no producer");
  if (std::string why = planner.refusal(); !why.empty()) return illegal(std::move(why));
  if (planner.shared_tiles(plan) == 0)
    return illegal("no tile is the same for blocks along '" + plan.along + "' and divides between " +
                   std::to_string(plan.blocks));
  return plan;
}

}  // namespace tilegen::schedule
