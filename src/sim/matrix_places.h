// How the matrix of one instruction lies in its tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilegen::sim {

// Which element of which tile each element of an instruction's matrix is.
struct MatrixElements {
  size_t columns = 1;
  std::vector<uint64_t> elements;  // row-major; memory + 1 in the high half, the tile's element in the low one; 0: unknown

  bool operator==(const MatrixElements&) const = default;
  struct Hash {
    size_t operator()(const MatrixElements& m) const {
      uint64_t h = m.columns;
      for (uint64_t e : m.elements) h = (h ^ e) * 0x9e3779b97f4a7c15u, h ^= h >> 32;
      return h;
    }
  };
};

struct MatrixPlaces {
  bool known = false;  // all of them are of one tile
  uint32_t memory = 0;
  // Coordinate in the tile by row, and by column, of the dimension that runs along them; empty: none or
  // several do.
  std::vector<int64_t> rows, columns;
  std::string wrong;  // an element that is in none of its row's and column's places
};

}  // namespace tilegen::sim
