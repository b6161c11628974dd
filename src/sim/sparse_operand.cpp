#include "sim/sparse_operand.h"

#include <algorithm>

namespace tilegen::sim {

void multiply_sparse(const target::MmaSemantics& meaning, target::MmaExtents shape, const size_t* places,
                     const double* a, const double* b, double* c, double* taken) {
  const auto rows = static_cast<size_t>(shape.m), columns = static_cast<size_t>(shape.n),
             depth = static_cast<size_t>(shape.k);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t k = 0; k < depth; ++k) {
      const size_t from = k / ir::kSparseKept * ir::kSparseGroup + places[row * depth + k];
      std::copy_n(b + from * columns, columns, taken + k * columns);
    }
    meaning({1, shape.n, shape.k}, a + row * depth, taken, c + row * columns);
  }
}

}  // namespace tilegen::sim
