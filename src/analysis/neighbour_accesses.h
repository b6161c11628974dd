// Elements beside each other that one point of a loop reads, or writes, by accesses of their own:
// x[4 * t], x[4 * t + 1], ... They may be one wide access of the thread that walks the point.
//
// requires: an op of element form. ensures: runs of a power of two of elements of a row, at multiples of as
//   many as far as the index's own coefficients tell, none longer than the widest access; each access is in
//   one run at most. What stands between the accesses, and what the base is aligned to, is not asked: that is
//   for lowering, which joins them (lower/gpu/joined_accesses.h).
// why here: widths of vectors, layouts of tiles, assumptions and the cost model count the same runs.
// refuses: nothing. Accesses under conditions, and those whose indices are read from memory, are left alone.
#pragma once

#include <vector>

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"

namespace tilegen::analysis {

struct NeighbourRun {
  ir::BufferId buffer;
  bool write = false;
  std::vector<std::vector<ir::ExprId>> elements;  // indices of each, in the order of their places
  // Points beside each other along the loop's last variable have runs beside each other.
  bool continued = false;

  int64_t width() const { return static_cast<int64_t>(elements.size()); }
};

std::vector<NeighbourRun> neighbour_runs(const ir::Program& p, const KernelOp& op, int64_t most_bytes);

// Some access to memory lies along the vectors that the iteration has: those are planned, and no runs.
bool walks_in_vectors(const ir::Program& p, const KernelOp& op, const layout::Fragment& iteration,
                      int64_t vector);

// What an access of the op's view moves for each point, its runs cut to the planned vector.
struct JoinedAccess {
  int64_t elements = 1;  // 0: it moves with another
  bool continued = false;
};
// For each access of the view; empty where the op walks in vectors, or there are no runs. A tile whose layout
// takes runs apart has none.
std::vector<JoinedAccess> joined_accesses(const ir::Program& p, const KernelOp& op, const plan::OpPlan& plan,
                                          ValuePlans values, int64_t most_bytes);

}  // namespace tilegen::analysis
