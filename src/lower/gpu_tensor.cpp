// Boxes of tensors moved by the copy engine: the maps it needs and the copies that fill a tile.
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

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
    map.extents.push_back(simplified(lower_expr(b.shape[d])));
    if (d == 0) break;
    stride = b.strides.empty() ? e.mul(stride, lower_expr(b.shape[d])) : e.mul(lower_expr(b.strides[d - 1]), bytes);
    map.strides.push_back(simplified(stride));
  }
  out_.tensor_maps.push_back(std::move(map));
  return static_cast<int>(out_.tensor_maps.size()) - 1;
}

std::optional<KernelLowering::TensorBoxes> KernelLowering::tensor_boxes(const infer::KernelOp& op, int tensor, int tile,
                                                                        const layout::Layout& l) {
  const auto* tile_op = p_.as<ir::TileOp>(op.stmt);
  const ir::Region& from = tile_op->operands[static_cast<size_t>(tensor)];
  const ops::ElementAccess &t = op.view.accesses[static_cast<size_t>(tensor)],
                           &s = op.view.accesses[static_cast<size_t>(tile)];
  TensorBoxes b;
  b.inner_dim = static_cast<int>(from.offsets.size()) - 1;
  int inner_of_tile = -1;
  for (size_t d = 0; d < s.dim_of.size(); ++d)
    if (s.dim_of[d] >= 0 && s.dim_of[d] == t.dim_of[static_cast<size_t>(b.inner_dim)]) inner_of_tile = static_cast<int>(d);
  for (int d = 0; d < b.inner_dim; ++d)
    if (from.extents[static_cast<size_t>(d)] > 1) b.row_dim = d;
  std::string reason = "its last dimension is not one of the tile";
  const ir::Buffer& buffer = p_.buffer(from.buffer);
  const auto shape = inner_of_tile < 0 ? std::nullopt
                                       : layout::tensor_tile(l, inner_of_tile, ir::dtype_bytes(buffer.type), &reason);
  if (!shape) {
    fail(DiagCode::schedule_illegal, op.path, "the copy engine cannot move the tile: " + reason,
         "leave the op's engine out of the schedule to have it planned");
    return std::nullopt;
  }
  b.tile = *shape;
  std::vector<int64_t> box(from.offsets.size(), 1);
  box[0] = b.tile.inner;
  if (b.row_dim >= 0) box[static_cast<size_t>(b.inner_dim - b.row_dim)] = b.tile.rows;
  b.map = tensor_map(from.buffer, box, b.tile.swizzle);
  for (ExprId offset : from.offsets) b.origin.push_back(simplified(lower_expr(offset)));
  return b;
}

std::vector<ExprId> KernelLowering::box_coordinates(const TensorBoxes& b, ExprId row, ExprId column) {
  std::vector<ExprId> at(b.origin.rbegin(), b.origin.rend());
  at[0] = simplified(out_.exprs.add(at[0], column));
  if (b.row_dim >= 0) {
    ExprId& r = at[static_cast<size_t>(b.inner_dim - b.row_dim)];
    r = simplified(out_.exprs.add(r, row));
  }
  return at;
}

int64_t KernelLowering::tensor_load_bytes(const infer::KernelOp& op) {
  for (const infer::OpAccess& a : op.accesses)
    if (a.write) {
      const thread::Memory& m = out_.memory(values_[static_cast<size_t>(a.value)]);
      return m.elements / m.slots * ir::dtype_bytes(m.type);
    }
  return 0;
}

void KernelLowering::tensor_loads(const infer::KernelOp& op, const Channel& c, ExprId slot, thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  int value = -1;
  for (const infer::OpAccess& a : op.accesses)
    if (a.write) value = a.value;
  const auto boxes = tensor_boxes(op, 0, 1, *schedule_.values[static_cast<size_t>(value)].memory);
  if (!boxes) return;
  const layout::TensorTile& tile = boxes->tile;
  slots_[value] = slot;
  for (int64_t row = 0; row < tile.row_boxes; ++row)
    for (int64_t column = 0; column < tile.column_boxes; ++column) {
      thread::TensorLoad load;
      load.map = boxes->map;
      load.coordinates = box_coordinates(*boxes, e.const_int(row * tile.rows), e.const_int(column * tile.inner));
      load.dst = values_[static_cast<size_t>(value)];
      load.dst_index = in_slot(value, e.const_int(row * tile.row_stride + column * tile.column_stride));
      load.barriers = c.full;
      load.barrier_index = slot;
      out.push_back(out_.add(std::move(load), op.path));
    }
}

}  // namespace tilegen::lower
