// What the caller decided for a kernel: taken where planning has another choice, refused where it cannot
// be had.
#include <algorithm>

#include "analysis/exchange.h"
#include "analysis/projection.h"
#include "analysis/run_ahead.h"
#include "schedule/check/check_schedule.h"
#include "schedule/kernel_planner.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

// A value may go through memory where less would do.
void KernelPlanner::take_given_conversions() {
  if (!given_) return;
  for (const plan::ConversionPlan& g : given_->conversions)
    for (plan::ConversionPlan& c : layouts_.conversions) {
      const auto value = std::find_if(layouts_.values.begin(), layouts_.values.end(),
                                      [&](const plan::ValuePlan& v) { return v.value == c.value; });
      if (g.kind == layout::ConversionKind::none || !is_same_conversion(g, c, &*value)) continue;
      const ir::DType type = p_.buffer(ops_.values[layouts_.values.id_of(*value)].buffer).type;
      if (g.kind == c.kind || !analysis::may_convert(g.kind, c.from, c.to, target_, type)) continue;
      c.kind = g.kind;
      c.cost = analysis::conversion_cycles(g.kind, c.to, type);
    }
}

// They are judged by plan_accesses.
void KernelPlanner::keep_given_accesses(KernelSchedule& s) const {
  for (OpId i : ops_.ops.ids())
    if (const plan::OpPlan* g = given_op(i)) {
      // Inference has no vectors for reductions, and for boxes of fragments.
      const bool open = ops_.ops[i].form == analysis::OpForm::reduction ||
                        analysis::part_of_fragment(p_, ops_.ops[i], [&](ValueId value) {
                          return s.values[value.index()].fragment.has_value();
                        }) >= 0;
      plan::OpPlan& plan = s.ops[i.index()];
      if (g->vector > 0 && open) plan.vector = g->vector;
      plan.full_tile_version = g->full_tile_version;
      plan.unmasked_version = g->unmasked_version;
      plan.unroll = g->unroll;
      plan.mask_parts = g->mask_parts;
    }
}

Checked KernelPlanner::check_given_engines() const {
  for (OpId i : ops_.ops.ids()) {
    const plan::OpPlan* g = given_op(i);
    if (!g || g->engine != Engine::tensor_copy || layouts_.ops[i].engine == Engine::tensor_copy) continue;
    std::string why = "it moves no tile between a tensor and shared memory";
    if (analysis::is_tile_load(p_, ops_.ops[i]))
      why = "no producer loads its tile: neither threads nor products of warpgroups alone read it";
    if (!target_.tensor_copy) why = target_.name + " has no copy engine";
    if (const auto it = not_stored_.find(i); it != not_stored_.end()) why = it->second;
    if (const auto it = tensor_loads_.by_threads.find(i); it != tensor_loads_.by_threads.end())
      why = it->second;
    for (const auto& [product, refusal] : refused_) why += "; " + ops_.ops[product].path + ": " + refusal;
    return Error(DiagCode::schedule_illegal, ops_.ops[i].path, "the schedule gives tensor copies, but " + why,
                 "leave the engine out to let the planner choose", ops_.ops[i].location);
  }
  return Unit{};
}

}  // namespace tilegen::schedule
