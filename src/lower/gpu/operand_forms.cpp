#include "lower/gpu/operand_forms.h"

#include <algorithm>

#include "analysis/exchange.h"
#include "lower/gpu/exchange.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"

namespace tilegen::lower {

void begin_copies(LoweringContext& k, const analysis::KernelOp& op, const plan::OpPlan& plan,
                  thread::Block& out) {
  for (const analysis::OpAccess& a : op.accesses) {
    if (!a.value.valid() || k.forms.copies.count(a.value)) continue;
    const plan::ValuePlan& value = k.in.schedule.values[a.value.index()];
    if (!value.fragment || std::find(plan.through_memory.begin(), plan.through_memory.end(), value.value) ==
                               plan.through_memory.end())
      continue;
    const ir::DType type = k.in.program.buffer(a.buffer).type;
    OperandForms::Copy copy{analysis::copy_in_memory(value, type, k.in.target), MemoryId()};
    copy.memory = planned_memory(k, plan::Storage::copy, op.path, type, copy.plan.memory->output_extent(0),
                                 value.value);
    if (!overwrites(k, op, a.value))
      put_in_memory(k, fragment_view(k, a.value), *copy.plan.memory, copy.memory, op.path, out);
    k.forms.copies[a.value] = std::move(copy);
  }
}

void end_copies(LoweringContext& k, const analysis::KernelOp& op, thread::Block& out) {
  const std::map<ValueId, OperandForms::Copy> copies = std::move(k.forms.copies);
  k.forms.copies.clear();
  for (const auto& [value, copy] : copies) {
    const bool written =
        std::any_of(op.accesses.begin(), op.accesses.end(),
                    [v = value](const analysis::OpAccess& a) { return a.value == v && a.write; });
    if (written) fetch_from_memory(k, fragment_view(k, value), *copy.plan.memory, copy.memory, op.path, out);
  }
}

// Brings what the op takes in another form into registers of its own; `end_conversions` brings back what it
// made.
void begin_conversions(LoweringContext& k, const analysis::KernelOp& op, thread::Block& out) {
  k.forms.converted.clear();
  if (op.form == analysis::OpForm::reduction) return;
  for (analysis::OpConversion& c : analysis::conversions_of(k.in.program, k.in.ops, op, k.in.schedule.values,
                                                            k.in.schedule.conversions)) {
    const FragmentView held_as = fragment_view(k, c.value);
    k.forms.fragments.push_back(std::make_unique<layout::Fragment>(std::move(c.form)));
    const thread::Memory& m = k.out.memory(held_as.memory);
    const ir::DType type = m.type;
    const FragmentView form = {add_registers(k, m.name + ".as", type, k.forms.fragments.back()->registers()),
                               k.forms.fragments.back().get()};
    clear_unheld(k, form, out, op.path);
    if (c.before) exchange(k, c.kind_before, held_as, form, op.path, out);
    k.forms.conversions.push_back({c.value, form, c.after, c.kind_after});
  }
  for (const OperandForms::Conversion& c : k.forms.conversions) k.forms.converted[c.value] = c.form;
}

void end_conversions(LoweringContext& k, const analysis::KernelOp& op, thread::Block& out) {
  k.forms.converted.clear();
  for (const OperandForms::Conversion& c : k.forms.conversions)
    if (c.after) exchange(k, c.kind, c.form, fragment_view(k, c.value), op.path, out);
  k.forms.conversions.clear();
}

}  // namespace tilegen::lower
