// What the schedule has the code rely on: alignments of tensors and multiples of dims, as guards of the
// kernel.
#include "lower/gpu/assumptions.h"

#include <algorithm>
#include <numeric>

#include "lower/lowering_context.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

void declare_assumptions(LoweringContext& k) {
  if (!k.in.schedule.assumptions) return;
  for (const plan::Assumption& a : *k.in.schedule.assumptions) {
    const auto param = std::find_if(k.out.params.begin(), k.out.params.end(),
                                    [&](const thread::Param& own) { return own.name == a.param; });
    if (param == k.out.params.end())
      return k.fail(DiagCode::schedule_mismatch, k.in.kernel.name,
                    "the schedule assumes something of '" + a.param + "', which the program does not have",
                    "leave `assumptions` out to have them planned");
    const int index = static_cast<int>(param - k.out.params.begin());
    if (param->kind == thread::Param::Kind::tensor) {
      thread::Memory& m = k.out.memories[param->memory.value];
      m.alignment = std::max(m.alignment, a.multiple);
      k.out.guards.push_back({index, m.alignment});
      continue;
    }
    const auto facts = k.ctx.facts_of(param->var);
    if (!facts || facts->divisor % a.multiple == 0) continue;
    const int64_t divisor = std::lcm(facts->divisor, a.multiple);
    k.ctx.bind(param->var, facts->range.lo, facts->range.hi, divisor);
    k.out.guards.push_back({index, divisor});
  }
  std::sort(k.out.guards.begin(), k.out.guards.end(),
            [](const thread::Guard& a, const thread::Guard& b) { return a.param < b.param; });
}

}  // namespace tilegen::lower
