#include "schedule/grid/cluster_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "analysis/block_tree.h"
#include "analysis/block_work.h"
#include "analysis/gemm_shape.h"
#include "analysis/shared_rows.h"
#include "analysis/tensor_copy.h"
#include "analysis/tile_parts.h"
#include "support/checked.h"
#include "support/diag_codes.h"
#include "thread/thread_program.h"

namespace tilegen::schedule {

using analysis::OpId;

namespace {

constexpr double kWorthwhile = 0.95;  // of the time without a cluster
// Of the matrix units' rate, of long products of random numbers: the rest is waits, and the clock's.
constexpr double kSustained = 0.85;

class ClusterPlanner {
 public:
  ClusterPlanner(const ir::Program& p, const ir::Kernel& kernel, const analysis::KernelOps& ops,
                 const target::Target& t, const std::set<OpId>& produced, const infer::InferResult& layouts)
      : p_(p),
        kernel_(kernel),
        tree_(p, kernel),
        ops_(ops),
        target_(t),
        produced_(produced),
        layouts_(layouts) {}

  // Why blocks of a kernel whose tiles come by tensor copies cannot make up clusters; empty when they can.
  std::string refusal() const {
    if (produced_.empty()) return "no tile comes by tensor copies";
    for (OpId op : produced_) {
      if (analysis::in_branch(p_, kernel_, ops_.ops[op].stmt)) return "blocks have different amounts of work";
      for (ir::StmtId id : tree_.around(ops_.ops[op].stmt))
        if (const auto* loop = p_.as<ir::Loop>(id); loop && analysis::varies_by_block(p_, kernel_, *loop))
          return "blocks have different amounts of work";
    }
    return "";
  }

  int64_t shared_tiles(const plan::ClusterPlan& cluster) const {
    return std::count_if(produced_.begin(), produced_.end(), [&](OpId op) {
      const plan::ValuePlan& v = tile_of(op);
      return v.memory && analysis::shared_rows(p_, kernel_, ops_.ops[op], *v.memory, cluster) > 0;
    });
  }

  // The cluster that pays, or one block.
  plan::ClusterPlan best() const {
    plan::ClusterPlan best;
    const auto work = known_work();
    const auto inside = [&](OpId op) { return begins_inside_lines(ops_.ops[op]); };
    if (!work || std::none_of(produced_.begin(), produced_.end(), inside)) return best;
    const double alone = cycles(*work, {});
    double least = alone * kWorthwhile;
    for (ir::VarId along : kernel_.block_vars)
      for (int64_t blocks : {2, 4}) {
        plan::ClusterPlan cluster{blocks, p_.var(along).name, ""};
        if (shared_tiles(cluster) == 0) continue;
        const double together = cycles(*work, cluster) + target_.cluster_cycles;
        if (together >= least) continue;
        least = together;
        cluster.reason = "bringing the tiles of a block takes " + hundreds(alone) +
                         " cycles, with a tile read once for " + std::to_string(blocks) + " blocks " +
                         hundreds(together);
        best = std::move(cluster);
      }
    return best;
  }

 private:
  struct Work {
    int64_t steps = 0;    // iterations of the loop
    double products = 0;  // cycles of the tensor units in one
    std::vector<int64_t> grid;
  };

  const plan::ValuePlan& tile_of(OpId op) const {
    return layouts_.values[analysis::written_value(ops_.ops[op])];
  }

  static std::string hundreds(double cycles) {
    return std::to_string(static_cast<int64_t>(cycles / 100) * 100);
  }

  // One loop brings all tiles, and it and the grid are of known size.
  std::optional<Work> known_work() const {
    const ir::Loop* loop = nullptr;
    for (ir::StmtId id : kernel_.body)
      if (const auto* l = p_.as<ir::Loop>(id);
          l &&
          std::all_of(produced_.begin(), produced_.end(), [&](OpId op) { return fills(*l, ops_.ops[op]); }))
        loop = l;
    Work work;
    if (!loop || loop->extents.size() != 1 || !p_.exprs.is_const_int(loop->extents[0], &work.steps))
      return std::nullopt;
    for (ir::ExprId extent : kernel_.grid) {
      work.grid.push_back(0);
      if (!p_.exprs.is_const_int(extent, &work.grid.back())) return std::nullopt;
    }
    for (OpId i : ops_.ops.ids()) {
      const auto* op = p_.as<ir::TileOp>(ops_.ops[i].stmt);
      if (!op || ops_.ops[i].form != analysis::OpForm::contraction || !fills(*loop, ops_.ops[i])) continue;
      const auto atom = target::find_warpgroup_atom(target_, layouts_.ops[i].atom);
      if (!atom) return std::nullopt;
      const analysis::GemmShape s = analysis::gemm_shape(p_, *op);
      work.products += static_cast<double>(s.m * s.n * s.k) / (8.0 * atom->atom->m * atom->atom->k) *
                       atom->atom->cycles_per_8;
    }
    return work;
  }

  // Of the blocks that one multiprocessor walks.
  double cycles(const Work& work, const plan::ClusterPlan& cluster) const {
    double bytes = 0;
    for (OpId op : produced_) {
      const double part =
          cluster.blocks > 1 && tile_of(op).memory &&
                  analysis::shared_rows(p_, kernel_, ops_.ops[op], *tile_of(op).memory, cluster) > 0
              ? 1.0 / static_cast<double>(cluster.blocks)
              : 1.0;
      bytes += part * line_bytes(ops_.ops[op]);
    }
    double blocks = 1;
    for (size_t d = 0; d < work.grid.size(); ++d) {
      const bool clustered = cluster.blocks > 1 && p_.var(kernel_.block_vars[d]).name == cluster.along;
      blocks *= static_cast<double>(clustered ? ceil_div(work.grid[d], cluster.blocks) * cluster.blocks
                                              : work.grid[d]);
    }
    const int64_t group = target_.cluster_multiprocessors;
    const double used =
        static_cast<double>(group / cluster.blocks * cluster.blocks) / static_cast<double>(group);
    const double rounds = std::ceil(blocks / std::floor(target_.multiprocessors * used));
    const double rate = std::clamp(target_.line_bytes_per_cycle * target_.multiprocessors / blocks,
                                   target_.line_bytes_per_cycle, target_.most_line_bytes_per_cycle);
    return rounds * static_cast<double>(work.steps) * std::max(bytes / rate, work.products / kSustained);
  }

  // Of the lines that the tile's rows lie in.
  double line_bytes(const analysis::KernelOp& copy) const {
    const auto& op = *p_.as<ir::TileOp>(copy.stmt);
    const ir::Region& from = op.operands[0];
    const ir::Buffer& buffer = p_.buffer(from.buffer);
    const auto dims = analysis::tensor_copy_dims(p_, op, nullptr);
    const int64_t element = ir::dtype_bytes(buffer.type);
    int64_t rows = 1, inner = element;
    for (size_t d = 0; d < from.extents.size(); ++d)
      (dims && static_cast<int>(d) == dims->tensor_inner ? inner : rows) *= from.extents[d];
    const int64_t lines = ceil_div(inner, target_.line_bytes) + (begins_inside_lines(copy) ? 1 : 0);
    return static_cast<double>(rows * lines * target_.line_bytes);
  }

  // Rows are known to be no multiple of a line apart.
  bool begins_inside_lines(const analysis::KernelOp& copy) const {
    const auto& op = *p_.as<ir::TileOp>(copy.stmt);
    const ir::Buffer& buffer = p_.buffer(op.operands[0].buffer);
    const auto dims = analysis::tensor_copy_dims(p_, op, nullptr);
    if (!dims || dims->tensor_outer.empty()) return false;
    const auto outer = static_cast<size_t>(dims->tensor_outer.back().dim);
    int64_t stride = 1;
    if (!buffer.strides.empty()) {
      if (!p_.exprs.is_const_int(buffer.strides[outer], &stride)) return false;
    } else {
      for (size_t d = outer + 1; d < buffer.shape.size(); ++d) {
        int64_t extent = 0;
        if (!p_.exprs.is_const_int(buffer.shape[d], &extent)) return false;
        stride *= extent;
      }
    }
    return stride * ir::dtype_bytes(buffer.type) % target_.line_bytes != 0;
  }
  bool fills(const ir::Loop& loop, const analysis::KernelOp& op) const {
    bool found = false;
    ir::for_each_statement(p_, loop.body, [&](ir::StmtId id, int) { found |= id == op.stmt; });
    return found;
  }
  const ir::Program& p_;
  const ir::Kernel& kernel_;
  const analysis::BlockTree tree_;
  const analysis::KernelOps& ops_;
  const target::Target& target_;
  const std::set<OpId>& produced_;
  const infer::InferResult& layouts_;
};

}  // namespace

Expected<plan::ClusterPlan> plan_cluster(const ir::Program& p, const ir::Kernel& kernel,
                                         const analysis::KernelOps& ops, const target::Target& t,
                                         const std::set<OpId>& produced, const infer::InferResult& layouts,
                                         bool producer, const plan::KernelSchedule* given) {
  const ClusterPlanner planner(p, kernel, ops, t, produced, layouts);
  if (given && given->cluster && !given->cluster->along.empty() &&
      !analysis::block_index(p, kernel, given->cluster->along)) {
    std::string known;
    for (ir::VarId v : kernel.block_vars) known += (known.empty() ? "" : ", ") + p.var(v).name;
    return Error(
        DiagCode::schedule_mismatch, kernel.name,
        "the given cluster is along '" + given->cluster->along + "', which is no block index of the kernel",
        "known: " + known, kernel.location);
  }
  if (!given || !given->cluster || given->cluster->blocks == 0) {
    const bool possible = t.tensor_copy && producer && planner.refusal().empty();
    return possible ? planner.best() : plan::ClusterPlan{};
  }
  plan::ClusterPlan plan = *given->cluster;
  if (plan.blocks == 1) return plan;
  auto illegal = [&](std::string why) {
    return Error(DiagCode::schedule_illegal, kernel.name, "the given cluster is not possible: " + why,
                 "leave `cluster` out to have it planned", kernel.location);
  };
  if (t.max_cluster <= 1) return illegal(t.name + " has no clusters of blocks");
  if (!std::has_single_bit(static_cast<uint64_t>(plan.blocks)) || plan.blocks > t.max_cluster)
    return illegal(std::to_string(plan.blocks) + " blocks are no power of two up to " +
                   std::to_string(t.max_cluster));
  if (!t.tensor_copy || !producer) return illegal("the kernel has no producer");
  if (std::string why = planner.refusal(); !why.empty()) return illegal(std::move(why));
  for (size_t d = 0; given->cluster->along.empty() && d < kernel.block_vars.size(); ++d) {
    plan.along = p.var(kernel.block_vars[d]).name;
    if (planner.shared_tiles(plan) > 0) break;
  }
  if (planner.shared_tiles(plan) == 0)
    return illegal("no tile is the same for blocks along '" + plan.along + "' and divides between " +
                   std::to_string(plan.blocks));
  return plan;
}

}  // namespace tilegen::schedule
