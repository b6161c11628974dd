// What the schedule has the code rely on: alignments of tensors and multiples of dims, as guards of the
// kernel.
#include <algorithm>
#include <numeric>

#include "lower/kernel_lowering.h"

namespace tilegen::lower {

void KernelLowering::declare_assumptions() {
  if (!schedule_.assumptions) return;
  for (const plan::Assumption& a : *schedule_.assumptions) {
    const auto param = std::find_if(out_.params.begin(), out_.params.end(),
                                    [&](const thread::Param& own) { return own.name == a.param; });
    if (param == out_.params.end())
      return fail(DiagCode::schedule_mismatch, kernel_.name,
                  "the schedule assumes something of '" + a.param + "', which the program does not have",
                  "leave `assumptions` out to have them planned");
    const int index = static_cast<int>(param - out_.params.begin());
    if (param->kind == thread::Param::Kind::tensor) {
      thread::Memory& m = out_.memories[param->memory.value];
      m.alignment = std::max(m.alignment, a.multiple);
      out_.guards.push_back({index, m.alignment});
      continue;
    }
    const auto facts = ctx_.facts_of(param->var);
    if (!facts || facts->divisor % a.multiple == 0) continue;
    const int64_t divisor = std::lcm(facts->divisor, a.multiple);
    ctx_.bind(param->var, facts->range.lo, facts->range.hi, divisor);
    out_.guards.push_back({index, divisor});
  }
  std::sort(out_.guards.begin(), out_.guards.end(),
            [](const thread::Guard& a, const thread::Guard& b) { return a.param < b.param; });
}

}  // namespace tilegen::lower
