// Memory cost of element-wise work under an iteration layout: the measure by which free layouts are chosen.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::infer {

using analysis::ValueId;

// Layouts of on-chip buffers as far as they are known.
struct KnownLayouts {
  IdVector<ValueId, std::optional<layout::Fragment>> fragments;
  IdVector<ValueId, std::optional<layout::Layout>> memories;
};

// Iteration dimensions that are known to tell the element, one split among several of the buffer's as often.
int walked_dims(const ops::ElementAccess& a);

// Elements one access of the op moves: along the register digit of weight 1 and stride 1, as far as every
// memory access is contiguous there (GPU) or as many lanes as the widest type leaves (host, where strided
// lanes are gathered).
int64_t vector_width(const ir::Program& p, const analysis::KernelOp& op, const layout::Fragment& iteration,
                     const KnownLayouts& known, const target::Target& t);

// A copy into a tile whose neighbours lie along another dimension than the tensor's, or are fewer: blocks of
// elements that a thread loads along the tensor's rows and stores as the tile lies, and the vector of its
// loads. Nothing for others.
struct TransposingCopy {
  layout::Fragment iteration;
  int64_t vector = 1;
};
std::optional<TransposingCopy> transposing_copy(const ir::Program& p, const analysis::KernelOp& op,
                                                int64_t threads, const KnownLayouts& known,
                                                const target::Target& t);

// Estimated cycles of a block: memory transactions weighted by level, plus registers held.
double access_cost(const ir::Program& p, const analysis::KernelOp& op, const layout::Fragment& iteration,
                   const KnownLayouts& known, const target::Target& t);

}  // namespace tilegen::infer
