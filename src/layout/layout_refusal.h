// How the layout algebra says no: one code, a message naming the dimension and its radices, and a way out.
#pragma once

#include <string>
#include <utility>

#include "layout/layout.h"
#include "support/diag_codes.h"

namespace tilegen::layout {

inline Error refuse_layout(std::string message, std::string hint) {
  return Error(DiagCode::bad_shape, "layout", std::move(message), std::move(hint));
}

// "dimension 1 (extent 12, digits 4x3)"
std::string describe_dim(const Layout& l, int dim);

}  // namespace tilegen::layout
