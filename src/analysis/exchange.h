// How the threads of a block exchange elements of fragments: in their own registers, between the lanes of a
// warp, or through a scratch slice of shared memory. Planning asks for the bytes, lowering for the way; both
// ask here.
#pragma once

#include <optional>
#include <span>

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::analysis {

// What it takes at least to turn a value held as `from` into one held as `to`: no threads that exchange where
// every thread has what it needs; shuffles where a lane of the own warp has it, told by the lane's own
// digits.
layout::ConversionKind conversion_kind(const layout::Fragment& from, const layout::Fragment& to,
                                       const target::Target& t, ir::DType type);
// `kind` can do it: that, or a way through memory.
bool may_convert(layout::ConversionKind kind, const layout::Fragment& from, const layout::Fragment& to,
                 const target::Target& t, ir::DType type);
// Cycles of a block: a move per register, a shuffle per register, or a trip through shared memory with two
// barriers.
int64_t conversion_cycles(layout::ConversionKind kind, const layout::Fragment& to, ir::DType type);

// How many values of a thread digit its lanes reach by flipping bits of the thread: the whole extent, a part
// of it, or 1. `digits`: all thread digits, by ascending stride.
int64_t reached_by_lanes(const std::vector<layout::Digit>& digits, const layout::Digit& d, ir::DType type,
                         const target::Target& t);
// Of positive stride, by ascending stride.
std::vector<layout::Digit> thread_digits(const layout::Fragment& f);

// Where the elements of a value lie in its scratch slice.
layout::Layout exchange_layout(std::span<const int64_t> shape, ir::DType type, const target::Target& t);

// How the threads of a reduction's axis come together, after what each has combined on its own.
struct ReductionExchange {
  std::vector<int64_t> butterflies;  // lane masks
  // Thread digits of the axis, by ascending stride, and the part of each that butterflies do not reach.
  struct Partial {
    layout::Digit digit;
    int64_t reached = 1;  // digit value % reached is done by butterflies
  };
  std::vector<Partial> partials;
  int64_t parts = 1;  // partial results per element of the result: product of digit extent / reached
  bool through_scratch = false;
  int64_t results = 1;  // elements of the result
  int64_t scratch_elements() const { return through_scratch ? parts * results : 0; }
};
// Layout of the partial results in dst's terms: thread digits of the axis are replicas. Nothing for maps that
// dst's shape does not take (a part of dst).
std::optional<layout::Fragment> result_fragment(const ir::Program& p, const KernelOp& op,
                                                const layout::Fragment& iteration);
ReductionExchange reduction_exchange(const ir::Program& p, const KernelOp& op,
                                     const layout::Fragment& iteration, const plan::ValuePlan& dst,
                                     const target::Target& t);

// A conversion as an op sees it: before it the value goes from how it is held to how the op takes it,
// after it from how the op made it to how it is held.
struct OpConversion {
  ValueId value;
  layout::Fragment form;  // the op's
  bool before = false, after = false;
  // As planned; none: what it takes at least.
  layout::ConversionKind kind_before = layout::ConversionKind::none,
                         kind_after = layout::ConversionKind::none;
};
std::vector<OpConversion> conversions_of(const ir::Program& p, const KernelOps& ops, const KernelOp& op,
                                         ValuePlans values,
                                         const std::vector<plan::ConversionPlan>& conversions);
// How the value goes from `from` to `to`; register_permute where every thread has what it needs.
layout::ConversionKind planned_kind(layout::ConversionKind planned, const layout::Fragment& from,
                                    const layout::Fragment& to, const target::Target& t, ir::DType type);

// The value as an op that works on a copy in memory sees it.
plan::ValuePlan copy_in_memory(const plan::ValuePlan& held, ir::DType type, const target::Target& t);
}  // namespace tilegen::analysis
