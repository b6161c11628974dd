// Layouts of tiles that annotations ask for.
#include <algorithm>
#include <charconv>

#include "layout/from_offsets.h"
#include "layout/tensor_tile.h"
#include "schedule/annotations.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using layout::Fragment;
using layout::Layout;

namespace {

int64_t number_of(const ir::Annotation& a) {
  int64_t value = 0;
  const std::string& text = a.values.front();
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Error refused(const ir::Annotation& a, const std::string& why, const std::string& hint) {
  return Error(DiagCode::schedule_illegal, "", "the annotation `" + a.key + "` is not possible: " + why, hint,
               a.location);
}

Expected<Layout> swizzled(const ir::Annotation& a, const std::vector<int64_t>& shape, int element_bytes) {
  const int64_t width = number_of(a);
  if (std::find(std::begin(layout::kBoxSwizzles), std::end(layout::kBoxSwizzles), width) ==
      std::end(layout::kBoxSwizzles))
    return refused(a, "a swizzle of " + std::to_string(width) + " bytes, expected 32, 64 or 128",
                   "other swizzles are layouts: layout = (i, j) -> i * 64 + (j ^ i % 4 * 8)");
  int inner = static_cast<int>(shape.size()) - 1;
  while (inner > 0 && shape[static_cast<size_t>(inner)] == 1) --inner;
  int outer = inner - 1;
  while (outer > 0 && shape[static_cast<size_t>(outer)] == 1) --outer;
  if (outer >= 0)
    if (auto l = layout::boxed_tile(shape, inner, outer, element_bytes, static_cast<int>(width)))
      return std::move(*l);
  const int64_t row = shape.empty() ? 0 : shape[static_cast<size_t>(inner)] * element_bytes;
  return refused(a,
                 "the tile has " + std::to_string(outer < 0 ? 1 : shape[static_cast<size_t>(outer)]) +
                     " rows of " + std::to_string(row) + " bytes, expected a multiple of " +
                     std::to_string(layout::kSwizzleRows) + " rows of a multiple of " +
                     std::to_string(width) + " bytes",
                 "take a narrower swizzle, or padding");
}

}  // namespace

Expected<Layout> annotated_memory(const ir::Annotation& a, const std::vector<int64_t>& shape,
                                  int element_bytes) {
  if (a.key == "swizzle") return swizzled(a, shape, element_bytes);
  if (a.key == "padding") return Layout::padded_row_major(shape, number_of(a));
  const std::string& text = a.values.front();
  const auto with = [&](const Error& e) {
    const Diagnostic& d = e.diagnostics.front();
    return refused(a, d.message, d.hint);
  };
  if (text.find('[') != text.npos) {
    auto l = Layout::from_text(text);
    return l ? std::move(l) : Expected<Layout>(with(l.error()));
  }
  const auto offsets = ir::index_function_values(text, shape, Limits());
  if (!offsets) return with(offsets.error());
  auto l = layout::layout_of_offsets(shape, *offsets, element_bytes);
  return l ? std::move(l) : Expected<Layout>(with(l.error()));
}

Expected<Fragment> annotated_fragment(const ir::Annotation& a, const std::vector<int64_t>& shape,
                                      int64_t threads) {
  const std::string& text = a.values.front();
  if (text.find('[') != text.npos) {
    auto f = Fragment::from_text(text);
    if (f) return f;
    return refused(a, f.error().diagnostics.front().message,
                   "give the text of a fragment: \"threads 128 : (64,64) -> [0: ..; 1: ..]\", as a schedule "
                   "shows it");
  }
  if (threads == 0)
    return refused(
        a,
        "a function tells thread * registers + register, and the kernel does not say how many threads it has",
        "state them behind the grid: threads 128");
  const auto places = ir::index_function_values(text, shape, Limits());
  auto f = places ? layout::fragment_of_places(shape, *places, threads) : Expected<Fragment>(places.error());
  if (f) return f;
  const Diagnostic& d = f.error().diagnostics.front();
  return refused(a, d.message, d.hint);
}

}  // namespace tilegen::schedule
