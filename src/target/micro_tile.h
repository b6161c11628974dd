// Register tile of a host micro-kernel, the "8x32" of an atom name "fma.f32:8x32".
#pragma once

#include <optional>
#include <string_view>

#include "target/target.h"

namespace tilegen::target {

struct MicroTile {
  const MicroKernelAtom* atom = nullptr;
  int64_t mr = 1, nr = 1;
};

// Nothing where the target has no such atom, or too few registers for the tile.
std::optional<MicroTile> micro_tile_from_name(const Target& t, std::string_view name);

// A register tile of matrix registers: so many of C one below the other and beside each other, of at most so
// many rows, columns and elements of k.
struct MatrixTiles {
  int64_t down = 1, across = 1, rows = 1, columns = 1, k = 1;
};
// Nothing for atoms of vectors, for tiles that do not divide so, and where there are too few registers.
std::optional<MatrixTiles> matrix_tiles(const MicroKernelAtom& atom, int64_t mr, int64_t nr, int64_t k);

// Lanes of the vectors that rows of `nr` elements are made of.
int64_t vector_lanes(const MicroKernelAtom& atom, int64_t nr);
// Whether accumulators, one row of B and an element of A are all held at once.
bool fits_registers(const MicroKernelAtom& atom, int64_t mr, int64_t nr);

}  // namespace tilegen::target
