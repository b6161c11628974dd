#include "schedule/grid/raster_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "analysis/block_work.h"
#include "arith/prove.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

namespace {

// Bytes that one block moves in its innermost loops, an iteration of each: they outweigh what it moves once.
struct BlockTraffic {
  int64_t row_panel = 0;     // read by all blocks of one row of tiles
  int64_t column_panel = 0;  // read by all blocks of one column
  int64_t own = 0;           // by this block alone
};

// Which of the two fastest block indices decide where a copy reads or writes: by its offsets, and by where
// the loops begin whose variables these have.
class TrafficFinder {
 public:
  TrafficFinder(const ir::Program& p, const ir::Kernel& kernel)
      : p_(p),
        row_(kernel.block_vars[kernel.block_vars.size() - 2]),
        column_(kernel.block_vars[kernel.block_vars.size() - 1]) {
    ir::for_each_statement(p, kernel.body, [&](ir::StmtId id, int) {
      const auto* loop = p.as<ir::Loop>(id);
      if (!loop || loop->kind == ir::LoopKind::parallel) return;
      if (depends(loop->begin, row_)) by_row_.insert(loop->vars[0]);
      if (depends(loop->begin, column_)) by_column_.insert(loop->vars[0]);
    });
    int innermost = 0;
    ir::for_each_statement(p, kernel.body, [&](ir::StmtId id, int depth) {
      const auto* op = p.as<ir::TileOp>(id);
      if (!op || !ops::is_copy(*op) || (!is_global(op->operands[0]) && !is_global(op->operands[1]))) return;
      if (depth < innermost) return;
      if (depth > innermost) traffic = {};
      innermost = depth;
      add(op->operands[0], false);
      add(op->operands[1], true);
    });
  }

  BlockTraffic traffic;

 private:
  bool is_global(const ir::Region& r) const { return p_.buffer(r.buffer).scope == ir::MemScope::global; }
  bool depends(ir::ExprId e, ir::VarId v) const { return e && arith::depends_on(p_.exprs, e, v); }
  bool is_decided(const ir::Region& r, ir::VarId index, const std::set<ir::VarId>& loops) const {
    return std::any_of(r.offsets.begin(), r.offsets.end(), [&](ir::ExprId offset) {
      return depends(offset, index) ||
             std::any_of(loops.begin(), loops.end(), [&](ir::VarId v) { return depends(offset, v); });
    });
  }
  void add(const ir::Region& r, bool written) {
    if (!is_global(r)) return;
    const bool row = is_decided(r, row_, by_row_), column = is_decided(r, column_, by_column_);
    int64_t bytes = ir::dtype_bytes(p_.buffer(r.buffer).type);
    for (int64_t extent : r.extents) bytes *= extent;
    if (written || (row && column)) traffic.own += bytes;
    if (!written && row != column) (row ? traffic.row_panel : traffic.column_panel) += bytes;
  }

  const ir::Program& p_;
  const ir::VarId row_, column_;
  std::set<ir::VarId> by_row_, by_column_;  // variables of loops
};

// Nothing where the grid has one dimension.
BlockTraffic block_traffic(const ir::Program& p, const ir::Kernel& kernel) {
  return kernel.grid.size() < 2 ? BlockTraffic{} : TrafficFinder(p, kernel).traffic;
}

// Bytes that an iteration of the loop reads.
int64_t bytes_of_trip(const ir::Program& p, const ir::Loop& loop) {
  int64_t bytes = 0;
  ir::for_each_statement(p, loop.body, [&](ir::StmtId id, int) {
    const auto* op = p.as<ir::TileOp>(id);
    if (!op || !ops::is_copy(*op) || p.buffer(op->operands[0].buffer).scope != ir::MemScope::global) return;
    int64_t read = ir::dtype_bytes(p.buffer(op->operands[0].buffer).type);
    for (int64_t extent : op->operands[0].extents) read *= extent;
    bytes += read;
  });
  return bytes;
}

// Blocks at once that share an L2.
int64_t sharing_blocks(const target::Target& target) {
  return std::max<int64_t>(1, target.multiprocessors / target.dies);
}

// Rows of tiles that a wave of blocks covers when it reads least; 1 where nothing is shared.
int64_t best_group(const BlockTraffic& reads, const target::Target& target) {
  if (target.multiprocessors < 2 || reads.row_panel == 0 || reads.column_panel == 0) return 1;
  const double rows =
      std::sqrt(static_cast<double>(sharing_blocks(target)) * static_cast<double>(reads.column_panel) /
                static_cast<double>(reads.row_panel));
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max(rows, 1.0))));
}

plan::RasterPlan lpt(const ir::Program& p, const analysis::VaryingWork& work, const target::Target& target) {
  plan::RasterPlan plan;
  plan.order = "lpt";
  plan.dimension = static_cast<int64_t>(work.dimension);
  plan.increasing = work.increasing;
  const int64_t trip = std::max<int64_t>(1, bytes_of_trip(p, *p.as<ir::Loop>(work.loop)));
  plan.group_iterations = std::max<int64_t>(1, target.l2_bytes / 6 / trip);
  // A part of the device would begin the next group's longest after this one's shortest (measured on an
  // H200: 4 to 20 % slower). A few blocks less than a wave are as good as one.
  plan.group_tiles = std::max<int64_t>(1, target.multiprocessors * 97 / 100);
  plan.reason = "blocks have different amounts of work; what a group reads takes a part of the second cache";
  return plan;
}

// Why blocks cannot walk the grid as given; empty when they can.
std::string refusal(const plan::RasterPlan& given, const ir::Kernel& kernel, const target::Target& target,
                    const std::optional<analysis::VaryingWork>& work) {
  const std::string& order = given.order;
  if (!target.has_block_threads() && order != "row_major")
    return "`order` is '" + order + "', and " + target.name + " walks tiles by rows";
  if ((order == "column_major" || order == "grouped" || order == "by_die") && kernel.grid.size() < 2)
    return "`order` is '" + order + "', which takes two dimensions of the grid, and it has one";
  if (order != "grouped" && order != "by_die" && given.group > 1)
    return "`group` is " + std::to_string(given.group) + ", which only 'grouped' and 'by_die' have";
  if (order != "by_die" && given.dies > 1)
    return "`dies` is " + std::to_string(given.dies) + ", which only 'by_die' has";
  const bool along = given.dimension != plan::kOpen || given.increasing ||
                     given.group_iterations != plan::kOpen || given.group_tiles != plan::kOpen;
  if (order != "lpt")
    return along ? "`dimension`, `increasing`, `group_iterations` and `group_tiles` are of order 'lpt' "
                   "only, got '" +
                       order + "'"
                 : "";
  if (!work) return "`order` is 'lpt', and no pipelined loop's length depends on a block index alone";
  if (given.dimension != static_cast<int64_t>(work->dimension))
    return "`dimension` is " + std::to_string(given.dimension) +
           ", and the pipelined loop's length depends on index " + std::to_string(work->dimension);
  return "";
}

// What is said, and for the rest what is planned for that order.
plan::RasterPlan completed(const plan::RasterPlan& given, const ir::Program& p, const ir::Kernel& kernel,
                           const target::Target& target, const std::optional<analysis::VaryingWork>& work) {
  plan::RasterPlan plan = given;
  if ((plan.order == "grouped" || plan.order == "by_die") && plan.group == 0)
    plan.group = best_group(block_traffic(p, kernel), target);
  if (plan.order == "by_die" && plan.dies == 0) plan.dies = target.dies;
  if (plan.order != "lpt" || !work) return plan;
  const plan::RasterPlan planned = lpt(p, *work, target);
  if (plan.dimension == plan::kOpen) plan.dimension = planned.dimension;
  if (!plan.increasing) plan.increasing = planned.increasing;
  if (plan.group_iterations == plan::kOpen) plan.group_iterations = planned.group_iterations;
  if (plan.group_tiles == plan::kOpen) plan.group_tiles = planned.group_tiles;
  return plan;
}

}  // namespace

Expected<plan::RasterPlan> plan_raster(const ir::Program& p, const ir::Kernel& kernel,
                                       const target::Target& target, const plan::KernelSchedule* given) {
  const auto work = target.has_block_threads() ? analysis::varying_work(p, kernel) : std::nullopt;
  if (given && given->raster && !given->raster->order.empty()) {
    plan::RasterPlan plan = completed(*given->raster, p, kernel, target, work);
    if (const std::string why = refusal(plan, kernel, target, work); !why.empty())
      return Error(DiagCode::schedule_illegal, kernel.name, "the given raster is not possible: " + why,
                   "leave `raster` out to have it planned", kernel.location);
    return plan;
  }
  plan::RasterPlan plan;
  if (work) return lpt(p, *work, target);
  if (kernel.grid.size() < 2) {
    plan.reason = "one grid dimension";
    return plan;
  }
  const BlockTraffic reads = block_traffic(p, kernel);
  // Less is not worth leaving the order in which what blocks move alone lies in memory.
  if (reads.row_panel == 0 && reads.column_panel > reads.own && target.has_block_threads()) {
    plan.order = "column_major";
    plan.reason = "neighbouring blocks share what the faster dimension alone decides";
    return plan;
  }
  plan.reason = reads.row_panel > 0 ? "neighbouring blocks share the operand of the slower dimension"
                                    : "blocks share little of what they read";
  const int64_t group = best_group(reads, target);
  if (group == 1) return plan;
  const bool by_die = target.dies > 1;
  plan.order = by_die ? "by_die" : "grouped";
  plan.group = group;
  plan.dies = by_die ? target.dies : 0;
  plan.reason = std::to_string(sharing_blocks(target)) + " blocks at once" + (by_die ? " of a die" : "") +
                " read least when they cover about " + std::to_string(plan.group) + " rows of tiles";
  return plan;
}

}  // namespace tilegen::schedule
