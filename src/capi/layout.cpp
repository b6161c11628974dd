// Layouts of a schedule as pictures.
#include <string_view>

#include "capi/guard.h"
#include "layout/picture.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

extern "C" {

tl_status tl_layout_draw(const char* layout, tl_picture form, tl_blob** out_picture, tl_error** out_error) {
  return guard("tl_layout_draw", out_error, [&]() -> Checked {
    if (out_picture) *out_picture = nullptr;
    if (!layout || !out_picture) return null_argument(layout ? "out_picture" : "layout");
    if (form != TL_PICTURE_TEXT && form != TL_PICTURE_SVG)
      return Error(DiagCode::bad_enum, "", "there is no picture form " + std::to_string(form),
                   "use a tl_picture");
    const std::string_view text = layout;
    auto blob = std::make_unique<tl_blob>();
    if (text.substr(0, 7) == "threads") {
      auto fragment = layout::Fragment::from_text(text);
      if (!fragment) return fragment.error();
      blob->bytes =
          form == TL_PICTURE_SVG ? layout::fragment_svg(*fragment) : layout::fragment_grid(*fragment);
    } else {
      auto memory = layout::Layout::from_text(text);
      if (!memory) return memory.error();
      blob->bytes = form == TL_PICTURE_SVG ? layout::layout_svg(*memory) : layout::layout_grid(*memory);
    }
    *out_picture = blob.release();
    return Unit{};
  });
}

}  // extern "C"
