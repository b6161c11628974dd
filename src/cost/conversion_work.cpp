#include "cost/conversion_work.h"

#include "analysis/exchange.h"
#include "support/checked.h"

namespace tilegen::cost {

namespace {

// Instructions of a word that goes through shared memory.
constexpr double kBounceInstructions = 13.6;

}  // namespace

void count_conversions(const PlannedKernel& k, const analysis::KernelOp& op, OpWork& out) {
  const double warps = static_cast<double>(ceil_div(k.threads(), int64_t{k.t.warp}));
  const auto count = [&](layout::ConversionKind planned, const layout::Fragment& from,
                         const layout::Fragment& to, ir::DType type) {
    const double words = static_cast<double>(ceil_div(to.registers() * ir::dtype_bytes(type), int64_t{4}));
    const auto issue = [&](double each) { out.work[Pipe::issue] += each * words * warps / k.t.schedulers; };
    switch (analysis::planned_kind(planned, from, to, k.t, type)) {
      case layout::ConversionKind::none:
        break;
      case layout::ConversionKind::register_permute:
        issue(1);
        break;
      case layout::ConversionKind::shuffle:
        issue(4);
        out.work[Pipe::shared] += words * warps;
        out.work.latency += k.t.shared_latency;
        break;
      case layout::ConversionKind::shared_bounce:
        issue(kBounceInstructions);
        out.work[Pipe::shared] += 2 * words * warps;
        out.work.latency += 2 * k.t.meeting_latency + 2 * k.t.shared_latency;
        break;
    }
  };
  const analysis::ValuePlans values(k.schedule.values);
  for (const analysis::OpConversion& c :
       analysis::conversions_of(k.p, k.ops, op, values, k.schedule.conversions)) {
    const layout::Fragment& held = *k.value(c.value).fragment;
    const ir::DType type = k.p.buffer(k.ops.values[c.value].buffer).type;
    if (c.before) count(c.kind_before, held, c.form, type);
    if (c.after) count(c.kind_after, c.form, held, type);
  }
}

}  // namespace tilegen::cost
