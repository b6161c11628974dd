// Which element of its tile each element of a memory is, by the plan, and which statements must respect it.
//
// The thread program has plain indices: that a tile's reader and its writer mean the same layout is not to be
// seen in it, nor that an element of a tensor stands in another row than the access means. With these tables
// the simulator judges what holds whatever the data: a copy moves all of a region by one distance; a matrix
// instruction multiplies whole rows of one tile with whole columns of the other; k, rows and columns of the
// three tiles of one product keep their distances from instruction to instruction.
#pragma once

#include <cstdint>
#include <vector>

namespace tilegen::sim {

// The tile that a memory holds.
struct TilePlaces {
  std::vector<int64_t> shape;    // empty: nothing is known
  std::vector<int32_t> element;  // row-major number within the tile, -1: none. Shared: by place within a
                                 // slot; registers: by register * threads + thread
  int64_t threads = 0;           // registers
  bool known() const { return !shape.empty(); }
};

// How a place of a copy's side becomes one number: the sum of its coordinates, each times the weight of its
// dimension. Weights are large and odd, so that different differences of coordinates have different sums.
struct CopySide {
  bool tensor = false;
  std::vector<uint64_t> weights;  // by dimension of the tile
  struct Dimension {
    int64_t stride = 1, extent = 1;
    uint64_t weight = 0;
  };
  std::vector<Dimension> dimensions;  // of the tensor, largest stride first
};

struct StatementPlaces {
  bool product = false;  // of a matrix product: what it moves stays the element it was
  // Of a product: the dimensions of the three tiles that are rows, columns and k.
  int a_row = 0, a_k = 1, b_k = 0, b_column = 1, c_row = 0, c_column = 1;
  uint32_t op = 0;    // the same for all statements of one operation
  bool copy = false;  // of a copy: in each dimension the place it comes from and the one it goes to differ by
                      // a constant
  CopySide from, to;
};

struct ElementPlaces {
  std::vector<TilePlaces> memories;         // by memory
  std::vector<StatementPlaces> statements;  // by statement
  uint32_t ops = 0;                         // numbers that StatementPlaces::op may have
};

}  // namespace tilegen::sim
