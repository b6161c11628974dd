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
constexpr int64_t kSector = 32;      // bytes that the L2 cache hands out at once

// Of a multiprocessor that reads what many others read: bytes a cycle (measured: 44 useful ones of 55 with misaligned rows).
constexpr int64_t kBytesPerCycle = 56;
// What meeting at the begin and at the end costs a kernel.
constexpr int64_t kMeetingCycles = 600;
// A cluster must save one part in so many.
constexpr int64_t kMargin = 6;

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
                 const target::Target& t, const std::set<size_t>& produced, const std::vector<plan::ValuePlan>& values,
                 const std::vector<plan::OpPlan>& plans)
      : p_(p), kernel_(kernel), ops_(ops), target_(t), produced_(produced), values_(values), plans_(plans) {}

  // Why blocks of a kernel whose tiles come by tensor copies cannot make up clusters; empty when they can.
  std::string refusal() const {
    if (produced_.empty()) return "no tile comes by tensor copies";
    for (size_t op : produced_) {
      if (in_branch(p_, kernel_, ops_.ops[op].stmt)) return "blocks have different amounts of work";
      for (ir::StmtId id : kernel_.body)
        if (const auto* loop = p_.as<ir::Loop>(id); loop && fills(*loop, ops_.ops[op]) && varies_by_block(*loop))
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

  // The cluster that pays by a clear margin; one block where none does, or where nothing can be said.
  plan::ClusterPlan best() const {
    plan::ClusterPlan best;
    const int64_t trips = steps();
    if (trips < 1 || !refusal().empty()) return best;
    const int64_t products = product_cycles(), alone = trips * step(products, best);
    int64_t least = alone - alone / kMargin;
    for (size_t d = 0; d < kernel_.grid.size(); ++d) {
      plan::ClusterPlan c{2, p_.var(kernel_.block_vars[d]).name, ""};
      if (blocks_at_once(d, c.blocks) > target_.multiprocessors || shared_tiles(c) == 0) continue;
      const int64_t cycles = trips * step(products, c) + kMeetingCycles;
      if (cycles > least) continue;
      least = cycles;
      c.reason = "bringing the tiles of a step takes about " + std::to_string(bytes(plan::ClusterPlan{}) / kBytesPerCycle) +
                 " cycles beside " + std::to_string(products) + " of products, shared by " + std::to_string(c.blocks) +
                 " blocks " + std::to_string(bytes(c) / kBytesPerCycle);
      best = std::move(c);
    }
    return best;
  }

 private:
  // Blocks of the grid in clusters along dimension `d`; many where it is not known.
  int64_t blocks_at_once(size_t d, int64_t cluster) const {
    int64_t blocks = 1;
    for (size_t i = 0; i < kernel_.grid.size(); ++i) {
      int64_t extent = 0;
      if (!p_.exprs.is_const_int(kernel_.grid[i], &extent) || extent < 1 || extent > INT16_MAX) return INT64_MAX;
      blocks *= i == d ? (extent + cluster - 1) / cluster * cluster : extent;
    }
    return blocks;
  }
  // Iterations of the one loop that all copies stand in; 0: not known.
  int64_t steps() const {
    const ir::Loop* common = nullptr;
    for (size_t op : produced_)
      for (ir::StmtId id : kernel_.body)
        if (const auto* loop = p_.as<ir::Loop>(id); loop && fills(*loop, ops_.ops[op])) {
          if (common && common != loop) return 0;
          common = loop;
        }
    int64_t extent = 0;
    return common && p_.exprs.is_const_int(common->extents[0], &extent) && extent <= INT32_MAX ? extent : 0;
  }
  int64_t product_cycles() const {
    int64_t cycles = 0;
    for (size_t i = 0; i < ops_.ops.size(); ++i) {
      const auto atom = target::find_warpgroup_atom(target_, plans_[i].atom);
      if (!atom) continue;
      const auto& product = *p_.as<ir::TileOp>(ops_.ops[i].stmt);
      int64_t sums = 1, of_a = 1;
      for (int64_t extent : product.operands[2].extents) sums *= extent;
      for (int64_t extent : product.operands[0].extents) of_a *= extent;
      const int64_t k = of_a / std::max<int64_t>(1, product.operands[2].extents[product.operands[2].extents.size() - 2]);
      cycles += sums * k * atom->atom->cycles_per_8 / (64 * 8 * atom->atom->k);
    }
    return cycles;
  }
  int64_t step(int64_t products, const plan::ClusterPlan& c) const { return std::max(products, bytes(c) / kBytesPerCycle); }

  // That a block of the cluster reads for an iteration, in whole sectors.
  int64_t bytes(const plan::ClusterPlan& cluster) const {
    int64_t sum = 0;
    for (size_t op : produced_) {
      if (ops_.ops[op].depth == 0) continue;
      const plan::ValuePlan& v = values_[static_cast<size_t>(written_value(ops_.ops[op]))];
      const auto& copy = *p_.as<ir::TileOp>(ops_.ops[op].stmt);
      const ir::Buffer& tensor = p_.buffer(copy.operands[0].buffer);
      const int64_t element = ir::dtype_bytes(tensor.type);
      int64_t tile = element;
      for (int64_t extent : copy.operands[0].extents) tile *= extent;
      const auto dims = ops::tensor_copy_dims(p_, copy, nullptr);
      const auto boxes = v.memory && dims ? layout::tensor_tile(*v.memory, dims->tile_inner, static_cast<int>(element), nullptr)
                                          : std::nullopt;
      int64_t pitch = 0;  // of rows, in elements
      const bool known = tensor.strides.empty() ? p_.exprs.is_const_int(tensor.shape.back(), &pitch)
                                                : tensor.strides.size() > 1 &&
                                                      p_.exprs.is_const_int(tensor.strides[tensor.strides.size() - 2], &pitch);
      if (boxes && known && pitch * element % kSector != 0)
        tile += tile / (boxes->inner * element) * kSector;
      if (v.memory && shared_rows(p_, kernel_, ops_.ops[op], *v.memory, cluster) > 0) tile /= cluster.blocks;
      sum += tile;
    }
    return sum;
  }

  bool fills(const ir::Loop& loop, const infer::KernelOp& op) const {
    bool found = false;
    ir::for_each_statement(p_, loop.body, [&](ir::StmtId id, int) { found |= id == op.stmt; });
    return found;
  }
  bool varies_by_block(const ir::Loop& loop) const {
    return std::any_of(kernel_.block_vars.begin(), kernel_.block_vars.end(), [&](ir::VarId v) {
      return arith::depends_on(p_.exprs, loop.begin, v) || arith::depends_on(p_.exprs, loop.extents[0], v);
    });
  }

  const ir::Program& p_;
  const ir::Kernel& kernel_;
  const infer::KernelOps& ops_;
  const target::Target& target_;
  const std::set<size_t>& produced_;
  const std::vector<plan::ValuePlan>& values_;
  const std::vector<plan::OpPlan>& plans_;
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
                                         const std::vector<plan::OpPlan>& plans, const plan::RolePlan& roles,
                                         const plan::KernelSchedule* given) {
  const ClusterPlanner planner(p, kernel, ops, t, produced, values, plans);
  if (!given || !given->cluster) return planner.best();
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
