// The A of a sparse matrix instruction: two values of each four neighbours along k, with their places among
// the four.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/compress.h"
#include "target/mma_semantics.h"

namespace tilegen::sim {

// Places of A's values, row-major, from the words that lanes hold: `table` has the group of four by
// [position in the word * lanes + lane]. Of lanes that have the same places the first is read.
template <class WordOf>
void read_places(const std::vector<uint32_t>& table, size_t lanes, uint32_t nothing, WordOf word_of,
                 size_t* places) {
  constexpr size_t kGroup = ir::kSparseGroup, kKept = ir::kSparseKept;
  for (size_t position = 0; position * lanes < table.size(); ++position)
    for (size_t l = lanes; l-- > 0;) {
      const uint32_t group = table[position * lanes + l];
      if (group == nothing) continue;
      const int64_t word = word_of(l);
      for (size_t v = 0; v < kKept; ++v)
        places[group * kKept + v] =
            static_cast<size_t>(word >> (position * kGroup + v * ir::kSparsePlaceBits)) % kGroup;
    }
}

// c += a * b, each row of A with those rows of B that its places name: `shape` has A's own depth, `taken` is
// room for as many rows of B.
void multiply_sparse(const target::MmaSemantics& meaning, target::MmaExtents shape, const size_t* places,
                     const double* a, const double* b, double* c, double* taken);

}  // namespace tilegen::sim
