// Views of tiles and tensors.
#include <string>

#include "builder/builder.h"
#include "ir/tile_view.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

ir::BufferId Builder::view(ir::BufferId of, ir::TileView::Form form, std::span<const int64_t> numbers) {
  const bool reshapes = form == ir::TileView::Form::reshape;
  const std::string_view call = reshapes ? "tl_view_reshape" : "tl_view_transpose";
  if (!ready(call) || !inside_kernel(call) || !check_buffer(call, "the buffer", of)) return {};
  ir::TileView view{of, form, {}, {}, ir::DType::none};
  if (reshapes) {
    if (!check_rank(call, "the view", numbers.size())) return {};
    return add_view(call, std::move(view), constants(numbers));
  }
  view.order.assign(numbers.begin(), numbers.end());
  return add_view(call, std::move(view), {});
}

ir::BufferId Builder::view(ir::BufferId of, ir::DType type) {
  constexpr std::string_view kCall = "tl_view_reinterpret";
  if (!ready(kCall) || !inside_kernel(kCall) || !check_buffer(kCall, "the buffer", of) ||
      !check_dtype(kCall, type))
    return {};
  return add_view(kCall, {of, ir::TileView::Form::reinterpret, {}, {}, type}, {});
}

ir::BufferId Builder::view(const ir::Region& box) {
  constexpr std::string_view kCall = "tl_view_slice";
  if (!ready(kCall) || !inside_kernel(kCall) || !check_region(kCall, "the box", box)) return {};
  return add_view(kCall, {box.buffer, ir::TileView::Form::slice, {}, box.offsets, ir::DType::none},
                  constants(box.extents));
}

ir::BufferId Builder::view_reshaped(ir::BufferId of, std::span<const ir::ExprId> extents) {
  constexpr std::string_view kCall = "tl_view_reshape_to";
  if (!ready(kCall) || !inside_kernel(kCall) || !check_buffer(kCall, "the buffer", of) ||
      !check_rank(kCall, "the view", extents.size()))
    return {};
  for (size_t d = 0; d < extents.size(); ++d)
    if (!check_index(kCall, "extent " + std::to_string(d), extents[d]) ||
        !check_operands(kCall, {extents[d]}))
      return {};
  return add_view(kCall, {of, ir::TileView::Form::reshape, {}, {}, ir::DType::none}, extents);
}

ir::BufferId Builder::view_box(ir::BufferId of, std::span<const ir::ExprId> offsets,
                               std::span<const ir::ExprId> extents) {
  constexpr std::string_view kCall = "tl_view_box";
  if (!ready(kCall) || !inside_kernel(kCall) || !check_buffer(kCall, "the buffer", of) ||
      !check_indices(kCall, of, offsets))
    return {};
  for (size_t d = 0; d < extents.size(); ++d)
    if (!check_index(kCall, "extent " + std::to_string(d), extents[d]) ||
        !check_operands(kCall, {offsets[d]}) || !check_operands(kCall, {extents[d]}))
      return {};
  ir::TileView view{of, ir::TileView::Form::slice, {}, {offsets.begin(), offsets.end()}, ir::DType::none};
  return add_view(kCall, std::move(view), extents);
}

std::vector<ir::ExprId> Builder::constants(std::span<const int64_t> numbers) {
  std::vector<ir::ExprId> out;
  for (int64_t n : numbers) out.push_back(program_.exprs.const_int(n));
  return out;
}

ir::BufferId Builder::add_view(std::string_view call, ir::TileView view, std::span<const ir::ExprId> shape) {
  if (!outside_parallel(call) || !room_for_buffer(call) || !check_operands(call, {})) return {};
  if (const auto wrong = ir::view_refusal(program_, view, shape)) {
    fail(wrong->code, call, wrong->message, wrong->hint);
    return {};
  }
  const std::string name = program_.buffer(view.of).name;
  return ir::add_view(program_, draft_, std::move(view), shape, name, location_);
}

}  // namespace tilegen::builder
