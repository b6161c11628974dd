#include "schedule/memory/scratch_plan.h"

#include <algorithm>
#include <map>

#include "analysis/carried_sums.h"
#include "analysis/scan_exchange.h"
#include "ir/statement_paths.h"

namespace tilegen::schedule {

using analysis::OpId;
using analysis::ValueId;

std::vector<Scratch> plan_scratch(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                                  analysis::ValuePlans values, analysis::OpPlans plans,
                                  const std::vector<plan::ConversionPlan>& conversions,
                                  const target::Target& t) {
  std::vector<Scratch> list;
  std::map<std::pair<std::string, std::string>, size_t> places;  // in the list, by owner and value
  if (!t.has_block_threads()) return list;
  auto need_slice = [&](const Scratch& slice, int64_t bytes) {
    if (bytes == 0) return;
    const auto [at, fresh] = places.try_emplace({slice.owner, slice.value}, list.size());
    if (fresh) list.push_back(slice);
    list[at->second].bytes = std::max(list[at->second].bytes, bytes);
  };
  auto need = [&](const std::string& path, int64_t bytes) {
    need_slice({path, plan::Storage::scratch, path, ""}, bytes);
  };
  auto type_of = [&](ValueId v) { return p.buffer(ops.values[v].buffer).type; };
  auto value_bytes = [&](ValueId v) {
    const auto& shape = ops.values[v].shape;
    return analysis::exchange_layout(shape, type_of(v), t).output_extent(0) * ir::dtype_bytes(type_of(v));
  };
  for (OpId i : ops.ops.ids()) {
    const analysis::KernelOp& op = ops.ops[i];
    std::map<ValueId, plan::ValuePlan> copies;
    for (const analysis::OpAccess& a : op.accesses) {
      if (!a.value.valid()) continue;
      const plan::ValuePlan& held = values[a.value];
      const auto& through = plans[i].through_memory;
      if (!held.fragment || std::find(through.begin(), through.end(), held.value) == through.end()) continue;
      copies[a.value] = analysis::copy_in_memory(held, type_of(a.value), t);
      need_slice({op.path, plan::Storage::copy, op.path, held.value}, value_bytes(a.value));
    }
    const bool in_parts = plans[i].deferred_to && !plans[i].deferred_to->empty();  // below
    if (op.form == analysis::OpForm::reduction && plans[i].iteration && !in_parts) {
      const ValueId dst = op.accesses[1].value;
      const auto x = analysis::reduction_exchange(p, op, *plans[i].iteration,
                                                  copies.count(dst) ? copies.at(dst) : values[dst], t);
      need(op.path, x.scratch_elements() * ir::dtype_bytes(type_of(dst)));
      continue;  // the results go to dst's holders on the way
    }
    if (in_parts) continue;
    if (op.scan && plans[i].iteration) {
      const ir::DType type = p.buffer(op.accesses.back().buffer).type;
      need(op.path, analysis::scan_exchange(*plans[i].iteration, op.scan->axis, type, t).scratch_elements *
                        ir::dtype_bytes(type));
    }
    for (const analysis::OpConversion& c : analysis::conversions_of(p, ops, op, values, conversions)) {
      const layout::Fragment& held = *values[c.value].fragment;
      const auto bounces = [&](bool goes, layout::ConversionKind kind, const layout::Fragment& from,
                               const layout::Fragment& to) {
        return goes && analysis::planned_kind(kind, from, to, t, type_of(c.value)) ==
                           layout::ConversionKind::shared_bounce;
      };
      if (bounces(c.before, c.kind_before, held, c.form) || bounces(c.after, c.kind_after, c.form, held))
        need(op.path, value_bytes(c.value));
    }
  }
  const ir::KernelPaths paths(p, kernel);
  for (const analysis::CarriedSums& c : analysis::carried_sums(p, kernel, ops, plans)) {
    const ValueId dst = c.reduction->accesses[1].value;
    const auto& iteration = *plans[ops.id_of(*c.reduction)].iteration;
    const auto x = analysis::reduction_exchange(p, *c.reduction, iteration, values[dst], t);
    need_slice({paths[c.loop.value], plan::Storage::scratch, c.reduction->path, ""},
               x.scratch_elements() * ir::dtype_bytes(type_of(dst)));
  }
  return list;
}

}  // namespace tilegen::schedule
