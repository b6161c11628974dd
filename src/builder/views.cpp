// Views of tiles.
#include <string>

#include "builder/builder.h"
#include "ir/tile_view.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

ir::BufferId Builder::view(ir::BufferId of, ir::TileView::Form form, std::span<const int64_t> numbers) {
  const bool reshapes = form == ir::TileView::Form::reshape;
  const std::string_view call = reshapes ? "tl_view_reshape" : "tl_view_transpose";
  if (!ready(call) || !inside_kernel(call) || !check_buffer(call, "the tile", of)) return {};
  ir::TileView view{of, form, {}, {}, ir::DType::none};
  std::vector<int64_t> shape(numbers.begin(), numbers.end());
  if (reshapes && !check_rank(call, "the view", shape.size())) return {};
  if (!reshapes) std::swap(view.order, shape);
  return add_view(call, std::move(view), shape);
}

ir::BufferId Builder::view(ir::BufferId of, ir::DType type) {
  constexpr std::string_view kCall = "tl_view_reinterpret";
  if (!ready(kCall) || !inside_kernel(kCall) || !check_buffer(kCall, "the tile", of) ||
      !check_dtype(kCall, type))
    return {};
  const bool tile = program_.buffer(of).scope != ir::MemScope::global;
  return add_view(kCall, {of, ir::TileView::Form::reinterpret, {}, {}, type},
                  tile ? program_.tile_shape(of) : std::vector<int64_t>());
}

ir::BufferId Builder::view(const ir::Region& box) {
  constexpr std::string_view kCall = "tl_view_slice";
  if (!ready(kCall) || !inside_kernel(kCall) || !check_region(kCall, "the box", box)) return {};
  return add_view(kCall, {box.buffer, ir::TileView::Form::slice, {}, box.offsets, ir::DType::none},
                  box.extents);
}

ir::BufferId Builder::add_view(std::string_view call, ir::TileView view, std::span<const int64_t> shape) {
  if (!outside_parallel(call) || !room_for_buffer(call) || !check_operands(call, {})) return {};
  if (const auto wrong = ir::view_refusal(program_, view, shape)) {
    fail(wrong->code, call, wrong->message, wrong->hint);
    return {};
  }
  std::vector<int64_t> extents(shape.begin(), shape.end());
  if (view.form == ir::TileView::Form::transpose)
    extents = ir::transposed_shape(program_.tile_shape(view.of), view.order);
  const std::string name = program_.buffer(view.of).name;
  return ir::add_view(program_, draft_, std::move(view), extents, name, location_);
}

}  // namespace tilegen::builder
