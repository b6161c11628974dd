// Operands of warpgroup products that threads write to shared memory. Each program is seen to be planned with
// such products.
#pragma once

#include "attention_program.h"

namespace tilegen::differential {

// Empty: all products are warpgroups', and the threads' tiles are as `written` of them say.
inline std::string products_refusal(const std::string& text, const std::string& written) {
  plan::KernelSchedule k;
  if (std::string why = plan_on_hopper(text, k); !why.empty()) return why;
  bool said = false;
  for (const plan::OpPlan& op : k.ops) {
    if (op.engine == plan::Engine::mma)
      return op.op + " is done by mma: " + plan::schedule_to_text({"", "", {k}});
    said = said || op.reason.find(written) != op.reason.npos;
  }
  return said ? "" : "no product says '" + written + "'";
}
inline const std::string kByAll = "for all warpgroups", kByWarpgroup = "each warpgroup what it multiplies";

}  // namespace tilegen::differential
