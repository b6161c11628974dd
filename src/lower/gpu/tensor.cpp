// Boxes of tensors moved by the copy engine: the maps it needs and the copies that fill a tile.
#include "analysis/shared_rows.h"
#include "arith/simplify.h"
#include "lower/gpu/tensor_coordinate.h"
#include "lower/kernel_lowering.h"
#include "thread/named_barriers.h"
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

}  // namespace

int KernelLowering::tensor_map(ir::BufferId tensor, const std::vector<int64_t>& box, int swizzle) {
  const ir::Buffer& b = p_.buffer(tensor);
  const MemoryId memory = globals_.at(tensor);
  for (size_t i = 0; i < out_.tensor_maps.size(); ++i) {
    const thread::TensorMap& m = out_.tensor_maps[i];
    if (m.tensor == memory && m.box == box && m.swizzle == swizzle) return static_cast<int>(i);
  }
  ir::ExprPool& e = out_.exprs;
  thread::TensorMap map;
  map.name = b.name + ".map" + (out_.tensor_maps.empty() ? "" : std::to_string(out_.tensor_maps.size()));
  map.tensor = memory;
  map.box = box;
  map.swizzle = swizzle;
  const int64_t bytes = ir::dtype_bytes(b.type);
  ExprId stride = e.const_int(bytes);
  for (size_t d = b.shape.size(); d-- > 0;) {
    map.extents.push_back(simplified_for_launch(out_, lower_expr(b.shape[d])));
    if (d == 0) break;
    stride = b.strides.empty() ? e.mul(stride, lower_expr(b.shape[d]))
                               : e.mul(lower_expr(b.strides[d - 1]), bytes);
    map.strides.push_back(simplified_for_launch(out_, stride));
  }
  out_.tensor_maps.push_back(std::move(map));
  return static_cast<int>(out_.tensor_maps.size()) - 1;
}

std::vector<int64_t> KernelLowering::box_of(const ir::Region& r, const analysis::TensorCopyDims& dims,
                                            int64_t rows, int64_t columns) const {
  const size_t last = r.offsets.size() - 1;
  std::vector<int64_t> box(r.offsets.size(), 1);
  box[last - static_cast<size_t>(dims.tensor_inner)] = columns;
  if (dims.tensor_outer >= 0) box[last - static_cast<size_t>(dims.tensor_outer)] = rows;
  return box;
}

std::optional<KernelLowering::TensorBoxes> KernelLowering::tensor_boxes(const analysis::KernelOp& op,
                                                                        const layout::Layout& l,
                                                                        int64_t rows) {
  const auto* copy = p_.as<ir::TileOp>(op.stmt);
  std::string reason;
  const auto dims = analysis::tensor_copy_dims(p_, *copy, &reason);
  const bool load = p_.buffer(copy->operands[0].buffer).scope == ir::MemScope::global;
  const ir::Region& tensor = copy->operands[load ? 0 : 1];
  const auto shape =
      dims ? layout::tensor_tile(l, dims->tile_inner, ir::dtype_bytes(p_.buffer(tensor.buffer).type), &reason)
           : std::nullopt;
  if (!shape) {
    fail(DiagCode::schedule_illegal, op.path, "the copy engine cannot move the tile: " + reason,
         "leave the op's engine out of the schedule to have it planned");
    return std::nullopt;
  }
  TensorBoxes b{-1, {}, *dims, *shape};
  b.map = tensor_map(tensor.buffer, box_of(tensor, *dims, rows > 0 ? rows : shape->rows, shape->inner),
                     shape->swizzle);
  for (size_t d = 0; d < tensor.offsets.size(); ++d)
    b.origin.push_back(tensor_coordinate(ctx_, lower_expr(tensor.offsets[d]),
                                         lower_expr(p_.buffer(tensor.buffer).shape[d])));
  return b;
}

ExprId tensor_coordinate(arith::Context& ctx, ExprId at, ExprId extent) {
  ir::ExprPool& e = ctx.pool();
  const ExprId most = e.const_int(thread::kMaxTensorExtent), least = e.const_int(-thread::kMaxTensorExtent);
  if (arith::prove(ctx, e.le(least, at)) &&
      arith::prove(ctx, e.le(at, e.add(extent, thread::kMaxTensorTile))))
    return at;
  return e.binary(ir::ExprOp::min, e.binary(ir::ExprOp::max, at, least), most);
}

std::vector<ExprId> KernelLowering::box_coordinates(const std::vector<ExprId>& origin,
                                                    const analysis::TensorCopyDims& dims, ExprId row,
                                                    ExprId column) {
  std::vector<ExprId> at = origin;
  const auto move = [&](int dim, ExprId by) {
    if (dim >= 0) at[static_cast<size_t>(dim)] = out_.exprs.add(at[static_cast<size_t>(dim)], by);
  };
  move(dims.tensor_inner, column);
  move(dims.tensor_outer, row);
  for (ExprId& x : at) x = simplified(x);
  return {at.rbegin(), at.rend()};
}

int64_t KernelLowering::tensor_load_bytes(const analysis::KernelOp& op) {
  for (const analysis::OpAccess& a : op.accesses)
    if (a.write)
      return schedule_.values[static_cast<size_t>(a.value)].memory->output_extent(0) *
             ir::dtype_bytes(out_.memory(values_[static_cast<size_t>(a.value)]).type);
  return 0;
}

int64_t KernelLowering::shared_rows_of(const analysis::KernelOp& op) const {
  if (cluster_blocks() == 1) return 0;
  for (const analysis::OpAccess& a : op.accesses)
    if (a.write && a.value >= 0 && schedule_.values[static_cast<size_t>(a.value)].memory)
      return analysis::shared_rows(p_, kernel_, op, *schedule_.values[static_cast<size_t>(a.value)].memory,
                                   *schedule_.cluster);
  return 0;
}

// Of a tile that the blocks of a cluster share each reads its rows of every box, for all of them.
void KernelLowering::tensor_loads(const analysis::KernelOp& op, const PipelineBarriers& line, ExprId slot,
                                  thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  int value = -1;
  for (const analysis::OpAccess& a : op.accesses)
    if (a.write) value = a.value;
  const int64_t share = shared_rows_of(op);
  const auto boxes = tensor_boxes(op, *schedule_.values[static_cast<size_t>(value)].memory, share);
  if (!boxes) return;
  const layout::TensorTile& tile = boxes->tile;
  slots_[value] = slot;
  const ExprId first = share > 0 ? e.mul(cluster_rank(), share) : e.const_int(0);  // row of a box
  for (int64_t row = 0; row < tile.row_boxes; ++row)
    for (int64_t column = 0; column < tile.column_boxes; ++column) {
      thread::TensorLoad load;
      load.map = boxes->map;
      load.coordinates =
          box_coordinates(boxes->origin, boxes->dims, e.add(first, e.const_int(row * tile.rows)),
                          e.const_int(column * tile.inner));
      load.dst = values_[static_cast<size_t>(value)];
      load.dst_index = in_slot(
          value,
          e.add(e.mul(first, tile.inner), e.const_int(row * tile.row_stride + column * tile.column_stride)));
      if (share > 0) load.multicast = (int64_t{1} << cluster_blocks()) - 1;
      load.barriers = line.full;
      load.barrier_index = slot;
      out.push_back(out_.add(std::move(load), op.path));
    }
}

// What threads wrote is there for the engine after their fences and a barrier; one thread has it stored. Who
// overwrites the tile waits until the engine has read it (expand/expand_kernel.cpp).
void KernelLowering::store_tile(const analysis::KernelOp& op, thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const int value = op.accesses.front().value;
  const auto boxes = tensor_boxes(op, *schedule_.values[static_cast<size_t>(value)].memory, 0);
  if (!boxes) return;
  const layout::TensorTile& tile = boxes->tile;
  const MemoryId memory = values_[static_cast<size_t>(value)];
  thread::Memory& bytes = out_.memories[memory.value];
  bytes.alignment = std::max<int64_t>(bytes.alignment, target_.tensor_tile_alignment);
  out.push_back(out_.add(thread::ProxyFence{}, op.path));
  role_barrier(out, op.path);
  thread::Block stores;
  for (int64_t row = 0; row < tile.row_boxes; ++row)
    for (int64_t column = 0; column < tile.column_boxes; ++column) {
      thread::TensorStore store;
      store.map = boxes->map;
      store.coordinates = box_coordinates(boxes->origin, boxes->dims, e.const_int(row * tile.rows),
                                          e.const_int(column * tile.inner));
      store.src = memory;
      store.src_index = in_slot(value, e.const_int(row * tile.row_stride + column * tile.column_stride));
      stores.push_back(out_.add(std::move(store), op.path));
    }
  stores.push_back(out_.add(thread::BulkCommit{}, op.path));
  const ExprId first = e.binary(ir::ExprOp::eq, e.var(out_.thread_var), e.const_int(0));
  out.push_back(out_.add(thread::Branch{first, std::move(stores), {}}, op.path));
}

// Named, also where no other role is: planting barriers leaves it where it stands.
void KernelLowering::role_barrier(thread::Block& out, const std::string& origin) {
  out.push_back(out_.add(thread::Barrier{thread::kRoleBarrier, *schedule_.threads, false}, origin));
}

}  // namespace tilegen::lower
