// A fragment of matrix accumulators on its way to a tensor by the copy engine: every warpgroup writes the
// rows it holds to a staged tile of its own, one pass of columns after the other, and stores them box by box.
//
// requires: a copy or atomic operation from a fragment, laid out by wgmma, to a tensor whose last dimension
//   is dense.
// ensures: warpgroup w's part begins at byte w * part_bytes; a pass is boxes of `rows` x `inner` elements of
// the tensor's type, one after the other, each with the engine's swizzle.
// refuses (a reason): other layouts, 8-byte elements, tensors whose strides cannot be multiples of 16 bytes.
#pragma once

#include <optional>
#include <string>

#include "analysis/kernel_ops.h"
#include "layout/fragment.h"
#include "target/target.h"

namespace tilegen::analysis {

struct EpilogueTile {
  int64_t rows = 0;         // of a warpgroup's part, at most a box's: whole rows or columns of instructions
  int64_t columns = 0;      // of a warpgroup's part of the fragment
  bool transposed = false;  // rows of the tensor are columns of the instructions
  // warpgroup w holds rows (w / warpgroups_n) * rows .., columns (w % warpgroups_n) * columns ..
  int64_t warpgroups_m = 1, warpgroups_n = 1;
  int64_t inner = 0;  // elements of a box along the tensor's last dimension
  int swizzle = 128;
  int64_t epilogue_columns = 0;  // columns staged at once: a multiple of least_columns that divides columns
  int64_t least_columns = 0;     // of a box, and of an instruction whose rows they are
  int64_t part_bytes = 0;        // of a warpgroup
};

// `epilogue_columns` of the result is the whole width; planning may take less to save memory.
std::optional<EpilogueTile> epilogue_tile(const ir::Program& p, const KernelOp& op,
                                          const layout::Fragment& source, const target::Target& t,
                                          std::string* reason);

}  // namespace tilegen::analysis
