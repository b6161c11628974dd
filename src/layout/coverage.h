// Who holds the elements that iterations name, where indices are more than the iterations' own.
#pragma once

#include <vector>

#include "layout/fragment.h"

namespace tilegen::layout {

// Fragment::covers for any element of each point: index i of dimension k adds threads_by_dim[k][i] to the
// thread that holds the element.
bool covers(const Fragment& held, const Fragment& iteration,
            const std::vector<std::vector<int64_t>>& threads_by_dim);

}  // namespace tilegen::layout
