// Boxes of tensors moved by the copy engine: the maps it needs and the copies that fill a tile.
#include "lower/gpu/tensor.h"

#include <algorithm>

#include "analysis/shared_rows.h"
#include "analysis/tensor_copy.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "layout/tensor_tile.h"
#include "lower/addressing.h"
#include "lower/gpu/grid.h"
#include "lower/gpu/warpgroups.h"
#include "lower/lowering_context.h"
#include "ops/op.h"
#include "support/diag_codes.h"
#include "thread/tensor_coordinates.h"

namespace tilegen::lower {

namespace {

// By what is known of dims alone: the launch makes a map, whether or not a block comes to the copy. What
// facts leave no size but 0 stays as it is: a launch takes another form then, and none has blocks.
ExprId simplified_for_launch(thread::ThreadProgram& p, ExprId e) {
  arith::Context launch(p.exprs);
  for (const thread::Param& param : p.params)
    if (param.kind == thread::Param::Kind::dim) {
      const ir::Var& v = p.vars[param.var.value];
      launch.bind(param.var, v.lower, v.upper, v.divisor);
    }
  const ExprId simple = arith::simplify(launch, e);
  int64_t known = 1;
  return p.exprs.is_const_int(simple, &known) && known <= 0 ? e : simple;
}

struct TensorBoxes {
  int map = -1;
  std::vector<ExprId> origin;  // per tensor dimension, slowest first
  analysis::TensorCopyDims dims;
  layout::TensorTile tile;
};

// How the copy engine moves a region of a tensor from or to an on-chip tile of this layout.
// `rows`: of a box, where not all that the layout has are moved at once.
std::optional<TensorBoxes> tensor_boxes(LoweringContext& k, const analysis::KernelOp& op,
                                        const layout::Layout& l, int64_t rows) {
  const auto* copy = k.in.program.as<ir::TileOp>(op.stmt);
  std::string reason;
  const auto dims = analysis::tensor_copy_dims(k.in.program, *copy, &reason);
  const bool load = k.in.program.buffer(copy->operands[0].buffer).scope == ir::MemScope::global;
  const ir::Region& tensor = copy->operands[load ? 0 : 1];
  const auto shape = dims ? analysis::tensor_boxes(
                                *dims, l, ir::dtype_bytes(k.in.program.buffer(tensor.buffer).type), &reason)
                          : std::nullopt;
  if (!shape) {
    k.fail(DiagCode::schedule_illegal, op.path, "the copy engine cannot move the tile: " + reason,
           "leave the op's engine out of the schedule to have it planned");
    return std::nullopt;
  }
  TensorBoxes b{-1, {}, *dims, *shape};
  b.map = tensor_map(k, tensor.buffer, box_of(tensor, *dims, rows > 0 ? rows : shape->rows, shape->inner),
                     shape->swizzle);
  for (size_t d = 0; d < tensor.offsets.size(); ++d)
    b.origin.push_back(tensor_coordinate(k.ctx, lower_expr(k, tensor.offsets[d]),
                                         lower_expr(k, k.in.program.buffer(tensor.buffer).shape[d])));
  return b;
}

}  // namespace

int tensor_map(LoweringContext& k, ir::BufferId tensor, const std::vector<int64_t>& box, int swizzle) {
  const MemoryId memory = k.names.globals.at(tensor);
  for (size_t i = 0; i < k.out.tensor_maps.size(); ++i) {
    const thread::TensorMap& m = k.out.tensor_maps[i];
    if (m.tensor == memory && m.box == box && m.swizzle == swizzle) return static_cast<int>(i);
  }
  thread::TensorMap map = box_map(k, tensor, box);
  if (!k.out.tensor_maps.empty()) map.name += std::to_string(k.out.tensor_maps.size());
  map.swizzle = swizzle;
  k.out.tensor_maps.push_back(std::move(map));
  return static_cast<int>(k.out.tensor_maps.size()) - 1;
}

thread::TensorMap box_map(LoweringContext& k, ir::BufferId tensor, const std::vector<int64_t>& box) {
  const ir::Buffer& b = k.in.program.buffer(tensor);
  ir::ExprPool& e = k.out.exprs;
  thread::TensorMap map;
  map.name = b.name + ".map";
  map.tensor = k.names.globals.at(tensor);
  map.box = box;
  const int64_t bytes = ir::dtype_bytes(b.type);
  ExprId stride = e.const_int(bytes);
  for (size_t d = b.shape.size(); d-- > 0;) {
    map.extents.push_back(simplified_for_launch(k.out, lower_expr(k, b.shape[d])));
    if (d == 0) break;
    stride = b.strides.empty() ? e.mul(stride, lower_expr(k, b.shape[d]))
                               : e.mul(lower_expr(k, b.strides[d - 1]), bytes);
    map.strides.push_back(simplified_for_launch(k.out, stride));
  }
  return map;
}

std::vector<int64_t> box_of(const ir::Region& r, const analysis::TensorCopyDims& dims, int64_t rows,
                            int64_t columns) {
  const size_t last = r.offsets.size() - 1;
  std::vector<int64_t> box(r.offsets.size(), 1);
  box[last - static_cast<size_t>(dims.tensor_inner)] = columns;
  const auto of_rows = dims.box_of_rows(rows);  // one that planning has found to be a box
  for (size_t i = 0; of_rows && i < of_rows->size(); ++i)
    box[last - static_cast<size_t>(dims.tensor_outer[i].dim)] = (*of_rows)[i];
  return box;
}

ExprId tensor_coordinate(arith::Context& ctx, ExprId at, ExprId extent) {
  ir::ExprPool& e = ctx.pool();
  const ExprId most = e.const_int(thread::kMaxTensorExtent), least = e.const_int(-thread::kMaxTensorExtent);
  if (arith::prove(ctx, e.le(least, at)) &&
      arith::prove(ctx, e.le(at, e.add(extent, thread::kMaxTensorTile))))
    return at;
  return e.binary(ir::ExprOp::min, e.binary(ir::ExprOp::max, at, least), most);
}

std::vector<ExprId> box_coordinates(LoweringContext& k, const std::vector<ExprId>& origin,
                                    const analysis::TensorCopyDims& dims, ExprId row, ExprId column) {
  std::vector<ExprId> at = origin;
  ir::ExprPool& e = k.out.exprs;
  const auto move = [&](int dim, ExprId by) {
    at[static_cast<size_t>(dim)] = e.add(at[static_cast<size_t>(dim)], by);
  };
  move(dims.tensor_inner, column);
  for (size_t i = dims.tensor_outer.size(); i-- > 0;) {
    const auto [dim, extent] = dims.tensor_outer[i];
    move(dim, i == 0 ? row : e.floormod(row, e.const_int(extent)));
    if (i > 0) row = e.floordiv(row, e.const_int(extent));
  }
  for (ExprId& x : at) x = k.simplified(x);
  return {at.rbegin(), at.rend()};
}

int64_t tensor_load_bytes(const LoweringContext& k, const analysis::KernelOp& op) {
  const ir::Region& to = k.in.program.as<ir::TileOp>(op.stmt)->operands[1];
  int64_t bytes = ir::dtype_bytes(k.in.program.buffer(to.buffer).type);
  for (int64_t extent : to.extents) bytes *= extent;
  return bytes;
}

int64_t shared_rows_of(const LoweringContext& k, const analysis::KernelOp& op) {
  if (k.cluster_blocks() == 1) return 0;
  for (const analysis::OpAccess& a : op.accesses)
    if (a.write && a.value.valid() && k.in.schedule.values[a.value.index()].memory)
      return analysis::shared_rows(k.in.program, k.in.kernel, op,
                                   *k.in.schedule.values[a.value.index()].memory, *k.in.schedule.cluster);
  return 0;
}

// Of a tile that the blocks of a cluster share each reads its rows of every box, for all of them.
void tensor_loads(LoweringContext& k, const analysis::KernelOp& op, const PipelineBarriers& line, ExprId slot,
                  thread::Block& out) {
  ir::ExprPool& e = k.out.exprs;
  ValueId value;
  for (const analysis::OpAccess& a : op.accesses)
    if (a.write) value = a.value;
  const int64_t share = shared_rows_of(k, op);
  const auto boxes = tensor_boxes(k, op, *k.in.schedule.values[value.index()].memory, share);
  if (!boxes) return;
  const layout::TensorTile& tile = boxes->tile;
  k.names.slots[value] = slot;
  const int64_t parts = line.pipeline->parts, columns = tile.column_boxes / parts,
                begin = line.pipeline->part * columns;
  if (columns * parts != tile.column_boxes)
    return k.fail(DiagCode::schedule_illegal, op.path,
                  "pipeline '" + line.pipeline->name + "' has " + std::to_string(parts) +
                      " parts, and its tile comes in " + std::to_string(tile.column_boxes) +
                      " boxes of columns",
                  "leave `parts` out to have them planned");
  const ExprId first = share > 0 ? e.mul(cluster_rank(k), share) : e.const_int(0);  // row of a box
  for (int64_t row = 0; row < tile.row_boxes; ++row)
    for (int64_t column = begin; column < begin + columns; ++column) {
      thread::TensorLoad load;
      load.map = boxes->map;
      load.coordinates =
          box_coordinates(k, boxes->origin, boxes->dims, e.add(first, e.const_int(row * tile.rows)),
                          e.const_int(column * tile.inner));
      load.dst = k.names.values[value];
      load.dst_index =
          in_slot(k, value,
                  e.add(e.mul(first, tile.inner),
                        e.const_int(tile.first + row * tile.row_stride + column * tile.column_stride)));
      if (share > 0) load.multicast = (int64_t{1} << k.cluster_blocks()) - 1;
      load.barriers = line.full;
      load.barrier_index = slot;
      out.push_back(k.out.add(std::move(load), op.path));
    }
}

// What threads wrote is there for the engine after their fences and a barrier; one thread has it stored. Who
// overwrites the tile waits until the engine has read it, and copies that fill it are awaited before
// (expand/expand_kernel.cpp).
void store_tile(LoweringContext& k, const analysis::KernelOp& op, thread::Block& out) {
  ir::ExprPool& e = k.out.exprs;
  const ValueId value = op.accesses.front().value;
  const auto boxes = tensor_boxes(k, op, *k.in.schedule.values[value.index()].memory, 0);
  if (!boxes) return;
  const layout::TensorTile& tile = boxes->tile;
  const MemoryId memory = k.names.values[value];
  thread::Memory& bytes = k.out.memories[memory.value];
  bytes.alignment = std::max<int64_t>(bytes.alignment, k.in.target.tensor_tile_alignment);
  out.push_back(k.out.add(thread::ProxyFence{}, op.path));
  role_barrier(k, out, op.path);
  thread::Block stores;
  for (int64_t row = 0; row < tile.row_boxes; ++row)
    for (int64_t column = 0; column < tile.column_boxes; ++column) {
      thread::TensorStore store;
      store.map = boxes->map;
      store.coordinates = box_coordinates(k, boxes->origin, boxes->dims, e.const_int(row * tile.rows),
                                          e.const_int(column * tile.inner));
      store.src = memory;
      store.src_index = in_slot(k, value, e.const_int(row * tile.row_stride + column * tile.column_stride));
      store.reduction = ops::layout_rule(*k.in.program.as<ir::TileOp>(op.stmt)).atomic;
      stores.push_back(k.out.add(std::move(store), op.path));
    }
  stores.push_back(k.out.add(thread::BulkCommit{}, op.path));
  const ExprId first = e.binary(ir::ExprOp::eq, e.var(k.out.thread_var), e.const_int(0));
  out.push_back(k.out.add(thread::Branch{first, std::move(stores), {}}, op.path));
}

}  // namespace tilegen::lower
