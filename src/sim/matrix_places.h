// How the matrix of one instruction lies in its tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilegen::sim {

// Where an instruction's matrix comes from: what tells which element of which tile each of its elements is.
struct MatrixSource {
  const void* table = nullptr;  // of the lanes' elements
  // by register and lane; of a memory whose tile is known: memory, warp and index
  std::vector<uint64_t> held;

  bool operator==(const MatrixSource&) const = default;
  struct Hash {
    size_t operator()(const MatrixSource& m) const {
      constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
      uint64_t h[4] = {reinterpret_cast<uintptr_t>(m.table), 1, 2, 3};
      for (size_t i = 0; i < m.held.size(); ++i) h[i % 4] = (h[i % 4] ^ m.held[i]) * kOdd;
      uint64_t all = 0;
      for (uint64_t part : h) all = ((all ^ part) * kOdd) ^ (part >> 32);
      return all;
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
