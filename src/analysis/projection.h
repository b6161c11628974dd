// Moving layouts between an op's iteration space and the buffers it touches.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "analysis/kernel_ops.h"
#include "layout/fragment.h"
#include "ops/element_view.h"

namespace tilegen::analysis {

// Who runs a point and who holds its element: one thread, or lanes of one warp, which may hand it over.
// Digits whose values an access permutes (`j ^ 32`), and those of which it names one value (`2 * j + 1`),
// then lie on the lanes as they lie there, the latter as copies of the point; else they must lie in
// registers.
struct Reach {
  int64_t lanes = 1;
  bool has(const layout::Digit& d) const { return d.stride * d.extent <= lanes; }
};

// Layout of the buffer as the iterations need it: the digits of an iteration dimension go to the digits of
// the buffer that they walk (analysis/index_links.h); those that no index depends on become replicas
// (threads) or vanish (registers), and digits of the buffer that none walks are held by registers. Nothing
// when an index is unknown or walks a part of the buffer that is none of its digits.
std::optional<layout::Fragment> project(const layout::Fragment& iteration, const ops::ElementAccess& access,
                                        std::span<const int64_t> shape, Reach reach = {});

// Iteration layout in which every thread runs the points whose element it holds: the reverse. What no index
// depends on is walked by registers: neighbours in a row innermost, other digits and dimensions outermost.
std::optional<layout::Fragment> pull_back(const layout::Fragment& held, const ops::ElementAccess& access,
                                          std::span<const int64_t> extents, Reach reach = {});

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
