#include "plan/slots.h"

#include "support/checked.h"

namespace tilegen::plan {

int64_t slot_elements(const ValuePlan& v, ir::DType type) {
  const int64_t elements = v.memory->output_extent(0), unit = kBankBytes / ir::dtype_bytes(type);
  return v.slots > 1 ? ceil_div(elements, unit) * unit : elements;
}

}  // namespace tilegen::plan
