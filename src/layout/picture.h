// Pictures of layouts for people: a text grid and an SVG.
#pragma once

#include <string>

#include "layout/fragment.h"

namespace tilegen::layout {

// Rank 1 and 2 only (others are shown as their last two dimensions at index 0 of the rest). A memory layout
// shows the offset in each cell, a fragment "T<thread>:R<register>" with "+n" for n further holders. At most
// max_rows x max_cols.
std::string layout_grid(const Layout& l, int max_rows = 32, int max_cols = 32);
std::string fragment_grid(const Fragment& f, int max_rows = 32, int max_cols = 32);
std::string layout_svg(const Layout& l, int max_rows = 64, int max_cols = 64);      // coloured by bank
std::string fragment_svg(const Fragment& f, int max_rows = 64, int max_cols = 64);  // coloured by thread

}  // namespace tilegen::layout
