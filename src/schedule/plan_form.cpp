#include "schedule/plan_form.h"

#include <algorithm>

#include "target/operand_matrices.h"

namespace tilegen::schedule {

const char* plan_form_text(PlanForm form) {
  switch (form) {
    case PlanForm::full:
      return "with all that the target has";
    case PlanForm::in_order:
      return "without ops out of order, sums in parts and blocks that walk";
    case PlanForm::no_tensor_stores:
      return "without tensor copies to tensors";
    case PlanForm::product_loads:
      return "without tensor copies of tiles that no product reads";
    case PlanForm::no_tensor_copies:
      return "without tensor copies and products of warpgroups";
    case PlanForm::no_async_copies:
      return "without asynchronous copies";
    case PlanForm::multiply_adds:
      return "without matrix instructions";
  }
  return "";
}

bool is_form_of(PlanForm form, const target::Target& t) {
  switch (form) {
    case PlanForm::no_tensor_stores:
    case PlanForm::product_loads:
    case PlanForm::no_tensor_copies:
      return t.tensor_copy;
    case PlanForm::no_async_copies:
      return t.loads_ahead();
    default:
      return t.has_block_threads();
  }
}

// As if it had less.
target::Target target_of_form(const target::Target& t, PlanForm form) {
  target::Target less = t;
  less.async_copy_bytes.clear();
  less.register_copies = false;
  if (form < PlanForm::multiply_adds) return less;
  std::erase_if(less.mma, [&](const target::MmaAtom& atom) {
    return !target::is_multiply_add(atom) &&
           std::any_of(t.mma.begin(), t.mma.end(), [&](const target::MmaAtom& other) {
             return target::is_multiply_add(other) && other.a == atom.a && other.b == atom.b &&
                    other.c == atom.c && other.tf32 == atom.tf32;
           });
  });
  return less;
}

TensorCopies copies_of_form(PlanForm form) {
  return form < PlanForm::no_tensor_stores   ? TensorCopies::loads_and_stores
         : form < PlanForm::product_loads    ? TensorCopies::loads
         : form < PlanForm::no_tensor_copies ? TensorCopies::product_loads
                                             : TensorCopies::none;
}

}  // namespace tilegen::schedule
