// What the copy engine (TMA) demands of a copy between a tensor and an on-chip tile, or of a tile that is
// combined with a tensor (atomic), as far as the program tells.
//
// requires: a checked copy or atomic operation.
// ensures: the copy moves rows along the tensor's dense dimension, which are those of one other dimension of
// the tile: of one of the tensor's, or of several, a box of them in row-major order; strides of the
// tensor are multiples of 16 bytes, or become so when dims are multiples of a constant (guards of the kernel,
// with the tensor's address); the place is the same for all threads and told by what every thread can read, a
// multiple of 16 bytes along the dense dimension, and for stores not before the tensor (measured on an
// H200: the instruction is illegal otherwise); rows of a tensor that is stored to are, or become, multiples
// of 16 bytes (the engine clips in such units). refuses (a reason): anything else. How the tile lies in
// memory is layout/tensor_tile.h's business.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "layout/tensor_tile.h"

namespace tilegen::analysis {

struct TensorCopyDims {
  // A dimension of the tensor; the rows of the tile are the product of one or several, slowest first.
  struct Rows {
    int dim = 0;
    int64_t extent = 1;
  };
  bool load = true;  // from the tensor to the tile; else the other way
  int tensor_inner = 0;
  std::vector<Rows> tensor_outer;       // empty: there is one row only
  int tile_inner = 0, tile_outer = -1;  // dimensions with several elements
  // Of these the elements of the tile that the copy moves.
  struct Range {
    int64_t first = 0, extent = 1;
  };
  Range inner, outer;

  // Of `rows` rows that follow a multiple of as many the box in the dims of tensor_outer; nothing where they
  // are none.
  std::optional<std::vector<int64_t>> box_of_rows(int64_t rows) const;
};
std::optional<TensorCopyDims> tensor_copy_dims(const ir::Program& p, const ir::TileOp& copy,
                                               std::string* reason);

// layout/tensor_tile.h's boxes of the tile, or of the part that the copy moves, whose rows are a box of the
// tensor's dimensions too.
std::optional<layout::TensorTile> tensor_boxes(const TensorCopyDims& dims, const layout::Layout& tile,
                                               int element_bytes, std::string* reason);

// A size from `lower` to `upper` that `divisor` divides, as a dim's facts say, may be a multiple of `d`, and
// not 0: code that relies on it serves a launch.
bool has_multiple(int64_t lower, int64_t upper, int64_t divisor, int64_t d);

}  // namespace tilegen::analysis
