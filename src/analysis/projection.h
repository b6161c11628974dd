// Moving layouts between an op's iteration space and the buffers it touches.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "analysis/kernel_ops.h"
#include "layout/fragment.h"
#include "ops/element_view.h"

namespace tilegen::analysis {

// Layout of the buffer as the iterations need it: the digits of an iteration dimension go to the buffer
// dimension it walks, or are split among those it goes to (`i * 16 + j`, `i // 16`); iteration dimensions the
// buffer does not have become replicas (threads) or vanish (registers). Nothing when an index is unknown or
// walks a part of the buffer only.
std::optional<layout::Fragment> project(const layout::Fragment& iteration, const ops::ElementAccess& access,
                                        std::span<const int64_t> shape);

// Iteration layout in which every thread runs the points whose element it holds: the reverse. Iteration
// dimensions the buffer does not have are walked by registers, outermost.
std::optional<layout::Fragment> pull_back(const layout::Fragment& held, const ops::ElementAccess& access,
                                          std::span<const int64_t> extents);

// Operand of a copy or fill that is a part of a fragment, where no other operand is a fragment: threads then
// walk what they hold of the fragment, not the op's points. -1 when there is none.
int part_of_fragment(const ir::Program& p, const KernelOp& op,
                     const std::function<bool(ValueId value)>& in_registers);

// Threads that run a point hold its element (Fragment::covers).
bool covers(const layout::Fragment& held, const layout::Fragment& iteration,
            const ops::ElementAccess& access);

// Registers renumbered so that they are dense, in the order of their strides; replica weights likewise.
std::optional<layout::Fragment> compacted(std::vector<int64_t> shape, std::vector<layout::Digit> digits,
                                          int64_t threads);

// The register digit that a vector runs along, of weight 1 and stride 1; nullptr where there is none. Its
// dimension, or -1.
const layout::Digit* vector_digit(const layout::Fragment& iteration);
int vector_dim(const layout::Fragment& iteration);

}  // namespace tilegen::analysis
