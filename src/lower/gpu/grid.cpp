// The grid of a GPU kernel: one linear block index, the program's block indices as expressions of it, in the
// order in which the schedule walks the tiles.
#include "lower/gpu/grid.h"

#include <algorithm>
#include <functional>

#include "analysis/block_work.h"
#include "arith/prove.h"
#include "lower/addressing.h"
#include "lower/declarations.h"
#include "lower/gpu/registers.h"
#include "lower/gpu/tile_scheduler.h"
#include "lower/loop_bounds.h"
#include "lower/lowering_context.h"
#include "lower/statement_exprs.h"
#include "support/diag_codes.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

namespace {

constexpr int64_t kMaxPoints = thread::kMaxPersistentPoints;

// Its simplest form, passed by the launch together with what makes dividing by it cheap where it is over dims
// and scalars alone: blocks begin with divisions, and nothing else runs meanwhile.
ExprId launch_divisor(LoweringContext& k, ExprId given) {
  const ExprId divisor = k.simplified(given);
  const ir::ExprPool& e = k.out.exprs;
  const auto passed = [&](ExprId x) {
    return ir::is_integer(e.type(x)) &&
           std::any_of(k.out.params.begin(), k.out.params.end(), [&](const thread::Param& p) {
             return p.kind != thread::Param::Kind::tensor && p.var == e[x].var();
           });
  };
  const std::function<bool(ExprId)> known = [&](ExprId x) {
    if (!x.valid()) return true;
    const ir::ExprNode n = e[x];
    if (n.op == ir::ExprOp::load) return false;
    return n.op == ir::ExprOp::var ? passed(x) : known(n.a) && known(n.b) && known(n.c);
  };
  const bool listed =
      std::find(k.out.divisors.begin(), k.out.divisors.end(), divisor) != k.out.divisors.end();
  if (!e.is_const(divisor) && !listed && known(divisor)) k.out.divisors.push_back(divisor);
  return divisor;
}

// Where the tiles do not divide into clusters, the last cluster's blocks beyond them do the last tile's work
// again, without the results: their neighbours need what they read.
ExprId own_tile(LoweringContext& k, ExprId of_cluster, ExprId tiles) {
  ir::ExprPool& e = k.out.exprs;
  const ExprId own = e.add(e.mul(of_cluster, k.cluster_blocks()), cluster_rank(k));
  if (arith::prove(k.ctx, e.binary(ir::ExprOp::eq, e.floormod(tiles, e.const_int(k.cluster_blocks())),
                                   e.const_int(0))))
    return own;
  k.grid.inside = e.lt(own, tiles);
  return e.binary(ir::ExprOp::min, own, e.sub(tiles, e.const_int(1)));
}

// Blocks go to `dies` dies in turn. Those of a die have tiles after one another, as many as of any other give
// or take one: the first dies have one more where they do not divide.
ExprId of_die(LoweringContext& k, ExprId block, ExprId blocks, int64_t dies) {
  ir::ExprPool& e = k.out.exprs;
  const ExprId count = e.const_int(dies), die = e.floormod(block, count);
  const ExprId before =
      e.add(e.mul(die, e.floordiv(blocks, count)), e.binary(ir::ExprOp::min, die, e.floormod(blocks, count)));
  return e.add(before, e.floordiv(block, count));
}

// Bands of points of the other dimensions; within a band the index along the dimension falls (or rises), and
// the band's points are next to each other.
void lpt(LoweringContext& k, ExprId rest, const std::vector<ExprId>& extent, std::vector<ExprId>& value) {
  ir::ExprPool& e = k.out.exprs;
  const plan::RasterPlan& plan = *k.in.schedule.raster;
  const auto work = analysis::varying_work(k.in.program, k.in.kernel);
  const auto d = static_cast<size_t>(plan.dimension);
  if (!work || work->dimension != d)
    return k.fail(
        DiagCode::schedule_illegal, k.in.kernel.name,
        "raster order lpt along index " + std::to_string(d) + ", of which no pipelined loop's length depends",
        "leave `raster` out of the schedule to have it planned");
  const auto at_least_one = [&](ExprId x) {
    return e.binary(ir::ExprOp::min, e.binary(ir::ExprOp::max, x, e.const_int(1)), e.const_int(kMaxPoints));
  };
  const ExprId length = at_least_one(extent[d]);
  ExprId others = e.const_int(1);
  bool positive = true;
  for (size_t i = 0; i < extent.size(); ++i) {
    if (i == d) continue;
    others = e.mul(others, extent[i]);
    positive = positive && arith::prove(k.ctx, e.le(e.const_int(1), extent[i]));
  }
  // a launch whose points do not fit 64 bits is refused
  if (positive) k.ctx.assume(e.le(e.const_int(1), others));
  if (k.facts) return;  // which are of block indices as they are
  others = at_least_one(others);
  // Trips of the longest block.
  const VarId var = k.in.kernel.block_vars[d];
  const ExprId own = k.names.vars.at(var);
  k.names.vars[var] = *plan.increasing ? e.sub(length, e.const_int(1)) : e.const_int(0);
  const ExprId trips = at_least_one(lower_expr(k, k.in.program.as<ir::Loop>(work->loop)->extents[0]));
  k.names.vars[var] = own;
  const ExprId least = e.ceildiv(e.const_int(std::max<int64_t>(1, plan.group_tiles)), length);
  const ExprId fitting =
      e.binary(ir::ExprOp::max, e.floordiv(e.const_int(plan.group_iterations), trips), least);
  const ExprId group = launch_divisor(k, at_least_one(e.binary(ir::ExprOp::min, fitting, others)));
  const ExprId band = launch_divisor(k, e.mul(group, length));
  const ExprId first = e.mul(e.floordiv(rest, band), group), within = e.floormod(rest, band);
  const ExprId left = e.sub(others, first);
  // The last band may be narrower. Its height is known before the launch, as every divisor shall be.
  const ExprId narrower = launch_divisor(
      k, at_least_one(e.sub(others, e.mul(e.floordiv(e.sub(others, e.const_int(1)), group), group))));
  const ExprId whole = e.binary(ir::ExprOp::le, group, left);
  const ExprId along = e.select(whole, e.floordiv(within, group), e.floordiv(within, narrower));
  value[d] = *plan.increasing ? e.sub(e.sub(length, e.const_int(1)), along) : along;
  ExprId other = e.add(first, e.sub(within, e.mul(along, e.binary(ir::ExprOp::min, group, left))));
  other = e.binary(ir::ExprOp::min, e.binary(ir::ExprOp::max, other, e.const_int(0)),
                   e.const_int(kMaxPoints - 1));
  for (size_t i = extent.size(); i-- > 0;) {
    if (i == d) continue;
    const bool slowest = i == 0 || (i == 1 && d == 0);
    if (slowest) {
      value[i] = other;
      continue;
    }
    const ExprId divisor = launch_divisor(k, at_least_one(extent[i]));
    value[i] = e.floormod(other, divisor);
    other = e.floordiv(other, divisor);
  }
}

}  // namespace

// While the kernel is lowered the program's block indices are variables of their own, so that facts about
// them are facts about variables; replace_block_indices() puts the expressions in.
void declare_linear_grid(LoweringContext& k) {
  ir::ExprPool& e = k.out.exprs;
  if (k.out.threads > 1) {
    k.out.thread_var = k.out.add_var("tid", ir::VarKind::thread);
    k.ctx.bind(k.out.thread_var, 0, k.out.threads - 1);
  }
  // Before facts about block indices are known: where they exist there is a block, which a launch must not
  // assume.
  const int64_t cluster = k.cluster_blocks();
  const auto clustered = [&](size_t d) {
    return cluster > 1 && k.in.program.var(k.in.kernel.block_vars[d]).name == k.in.schedule.cluster->along;
  };
  const auto product = [&](const std::vector<ExprId>& extents) {
    ExprId all = e.const_int(1);
    for (size_t d = 0; d < extents.size(); ++d)
      all =
          e.mul(all, clustered(d) ? e.mul(e.ceildiv(extents[d], e.const_int(cluster)), cluster) : extents[d]);
    return k.simplified(all);
  };
  std::vector<ExprId> given, counted;  // of two extents below 0 the product is above
  for (ExprId extent : k.in.kernel.grid) given.push_back(lower_expr(k, extent));
  ExprId blocks = product(given);
  for (ExprId extent : given) {
    const bool known = given.size() == 1 || arith::prove(k.ctx, e.le(e.const_int(0), extent));
    counted.push_back(known ? extent : e.binary(ir::ExprOp::max, extent, e.const_int(0)));
  }
  if (counted != given) blocks = product(counted);
  declare_grid(k);
  const size_t rank = k.out.grid.size();
  const bool persistent =
      k.specialised() && k.in.schedule.persistence && k.in.schedule.persistence->persistent;
  const bool ordered = k.in.schedule.raster && k.in.schedule.raster->order == "lpt";
  k.out.cluster = cluster;
  if (rank < 2 && !persistent && !ordered && cluster == 1) return;
  std::vector<ExprId> extent = k.out.grid;
  const std::vector<VarId> index = k.out.block_vars;
  const VarId linear = k.out.add_var("block", ir::VarKind::block_index);
  k.out.grid = {blocks};
  k.out.block_vars = {linear};
  bind_counter(k, linear, blocks);

  const std::string order = k.in.schedule.raster ? k.in.schedule.raster->order : "row_major";
  int64_t group = k.in.schedule.raster ? k.in.schedule.raster->group : 1;
  ExprId rest = e.var(linear);
  if (persistent) {
    k.grid.tiles = blocks;
    k.out.launched_var = k.out.add_var("blocks", ir::VarKind::block_index);
    k.grid.tile_var = k.out.add_var("tile", ir::VarKind::loop);
    k.ctx.bind(k.out.launched_var, 1, thread::kMaxResidentBlocks);
    bind_counter(k, k.grid.tile_var, blocks);
    if (k.dynamic()) k.tile_scheduler = std::make_unique<TileScheduler>(k);
    rest = k.dynamic() ? k.tile_scheduler->current_tile()
                       : e.add(rest, e.mul(e.var(k.grid.tile_var), e.var(k.out.launched_var)));
    rest = e.binary(ir::ExprOp::min, rest, e.const_int(kMaxPoints - 1));
  }
  // Clusters are walked as points are; their blocks lie after one another along their dimension.
  const std::vector<ExprId> tiles = extent;
  if (cluster > 1) {
    rest = e.floordiv(rest, e.const_int(cluster));
    for (size_t d = 0; d < rank; ++d) {
      if (!clustered(d)) continue;
      extent[d] = k.simplified(e.ceildiv(extent[d], e.const_int(cluster)));
      if (d + 2 == rank) group = std::max<int64_t>(1, group / cluster);
    }
  }
  if (order == "by_die") {
    const ExprId all = cluster > 1 ? k.simplified(e.floordiv(blocks, e.const_int(cluster))) : blocks;
    rest = of_die(k, rest, all, k.in.schedule.raster->dies);
    if (persistent) rest = e.binary(ir::ExprOp::min, rest, e.const_int(kMaxPoints - 1));
  }
  // Divided once for every point: in 32 bits where code generation can see that it may. A point exists, so
  // extents are positive, and the points of a launch are few.
  const auto bounded = [&](ExprId x, int64_t most) {
    return e.binary(ir::ExprOp::min, e.binary(ir::ExprOp::max, x, e.const_int(1)), e.const_int(most));
  };
  const auto narrow = [&](ExprId x, int64_t most) { return persistent ? bounded(x, most) : x; };
  const bool by_bands = (order == "grouped" || order == "by_die") && group > 1;
  std::vector<ExprId> value(rank);
  if (k.facts && cluster == 1) {
    if (order == "lpt") lpt(k, rest, extent, value);
    return;
  }
  // The dimension walked fastest comes off first; what is left over belongs to the slower ones.
  auto take = [&](size_t d, bool last) {
    const ExprId divisor = last ? ExprId() : launch_divisor(k, narrow(extent[d], kMaxPoints));
    value[d] = last ? rest : e.floormod(rest, divisor);
    if (!last) rest = e.floordiv(rest, divisor);
  };
  if (order == "lpt") {
    lpt(k, rest, extent, value);
  } else if (order == "column_major") {
    for (size_t d = 0; d < rank; ++d) take(d, d + 1 == rank);
  } else if (by_bands) {
    // Within bands of `group` rows of tiles the row index moves fastest. The last band has the rows that are
    // left, by which it is divided.
    const ExprId rows = narrow(extent[rank - 2], kMaxPoints);
    const ExprId columns = launch_divisor(k, bounded(extent[rank - 1], kMaxPoints / group));
    ExprId tile = rest;
    if (rank == 3) {
      const ExprId plane = launch_divisor(k, e.mul(rows, columns));
      value[0] = e.floordiv(rest, plane);
      tile = e.floormod(rest, plane);
    }
    const ExprId height = e.const_int(group);
    const ExprId left =
        launch_divisor(k, e.binary(ir::ExprOp::max, e.floormod(rows, height), e.const_int(1)));
    const ExprId row = e.floordiv(tile, columns), column = e.floormod(tile, columns);
    const ExprId first = e.mul(e.floordiv(row, height), group);
    const ExprId within = e.add(e.mul(e.floormod(row, height), columns), column);
    int64_t known_rows = 0;
    const ExprId whole = e.is_const_int(rows, &known_rows) && known_rows % group == 0
                             ? e.const_int(1, ir::DType::boolean)
                             : e.binary(ir::ExprOp::le, e.add(first, height), rows);
    value[rank - 2] = e.add(first, e.select(whole, e.floormod(within, height), e.floormod(within, left)));
    value[rank - 1] = e.select(whole, e.floordiv(within, height), e.floordiv(within, left));
  } else {
    for (size_t d = rank; d-- > 0;) take(d, d == 0);
  }
  for (size_t d = 0; d < rank; ++d)
    if (clustered(d)) value[d] = own_tile(k, value[d], tiles[d]);
  // launch_divisor's, which stay as they are
  const bool known_parts = persistent || order == "lpt" || by_bands;
  for (size_t d = 0; d < rank; ++d)
    k.grid.block_indices[index[d]] = known_parts ? value[d] : k.simplified(value[d]);
}

ExprId cluster_rank(LoweringContext& k) {
  ir::ExprPool& e = k.out.exprs;
  return e.floormod(e.var(k.out.block_vars[0]), e.const_int(k.cluster_blocks()));
}

// Computed once, in registers at the kernel's begin: they hold divisions, which code generation would not
// move out of loops.
void replace_block_indices(LoweringContext& k, thread::Block& body) {
  if (k.facts) return;
  if (k.grid.block_indices.empty()) return;
  ir::ExprPool& e = k.out.exprs;
  // Points of a persistent program are few.
  const ir::DType type = k.grid.tile_var.valid() ? ir::DType::i32 : ir::DType::i64;
  const MemoryId indices =
      add_registers(k, "block_index", type, static_cast<int64_t>(k.grid.block_indices.size()));
  thread::Block begin;
  std::map<VarId, ExprId> loads;
  for (const auto& [var, index] : k.grid.block_indices) {
    const ExprId at = e.const_int(static_cast<int64_t>(begin.size()));
    begin.push_back(k.out.add(thread::Store{indices, at, e.cast(type, index), ExprId(), false, ExprId()},
                              k.in.kernel.name));
    loads[var] = e.cast(ir::DType::i64, e.load(indices, type, std::vector<ExprId>{at}));
  }
  thread::VarSubstitution replace(e, loads);
  for_each_expr_below(k.out, body, [&](ExprId& x) { x = replace(x); });
  body.insert(body.begin(), begin.begin(), begin.end());
}

ExprId points(LoweringContext& k) {
  return k.simplified(k.out.exprs.binary(ir::ExprOp::min, k.grid.tiles, k.out.exprs.const_int(kMaxPoints)));
}

}  // namespace tilegen::lower
