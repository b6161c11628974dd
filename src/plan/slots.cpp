#include "plan/slots.h"

#include "support/checked.h"

namespace tilegen::plan {

int64_t slot_elements(const ValuePlan& v, ir::DType type, int64_t row_bytes) {
  const int64_t elements = v.memory->output_extent(0), unit = row_bytes / ir::dtype_bytes(type);
  return v.slots > 1 ? ceil_div(elements, unit) * unit : elements;
}

}  // namespace tilegen::plan
