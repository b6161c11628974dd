#include "lower/lower_kernel.h"

#include <algorithm>
#include <utility>

#include "analysis/copy_groups.h"
#include "ir/annotations.h"
#include "lower/access_facts.h"
#include "lower/declarations.h"
#include "lower/gpu/assumptions.h"
#include "lower/gpu/grid.h"
#include "lower/gpu/program_barriers.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "lower/scheduled_lowering.h"
#include "sync/plant_barriers.h"

namespace tilegen::lower {

namespace {

void declare(LoweringContext& k) {
  declare_parameters(k);
  if (k.block_threads()) declare_assumptions(k);
  k.block_threads() ? declare_linear_grid(k) : declare_grid(k);
  declare_values(k);
  declare_barriers(k);
}

void clear_registers(LoweringContext& k) {
  const std::set<ValueId> moved = moved_unwritten(k);
  for (ValueId v : k.in.ops.values.ids())
    if (k.in.schedule.values[v.index()].fragment)
      clear_unheld(k, fragment_view(k, v), k.out.body, k.in.kernel.name, moved.count(v) > 0);
}

sync::Planting planting(const ir::Program& p, int kernel) {
  bool fixed = false;
  ir::for_each_statement(p, p.kernels[static_cast<size_t>(kernel)].body,
                         [&](ir::StmtId s, int) { fixed = fixed || ir::fixes_threads(p.stmt(s)); });
  return {analysis::counts_own_groups(p, kernel), fixed};
}

// What is said of a statement has its place in the text.
Error at_place(const LoweringContext& k, Error error) {
  for (Diagnostic& d : error.diagnostics)
    for (const analysis::KernelOp& op : k.in.ops.ops)
      if (op.path == d.op) d.location = op.location;
  return error;
}

// Its copies are not legal everywhere: threads move what they would.
bool by_threads(const std::pair<const std::string, plan::OpAccessFacts>& op) {
  return op.second.async_seen && op.second.async.empty();
}

}  // namespace

Expected<thread::ThreadProgram> lower_kernel(const ir::Program& p, const expand::ScheduledKernel& scheduled,
                                             const target::Target& target) {
  LoweringContext k(p, scheduled, target);
  declare(k);
  if (k.block_threads()) clear_registers(k);
  ScheduledLowering(k, scheduled).run();
  if (k.failed()) return std::move(k.error);
  if (k.block_threads()) drop_unused_assumptions(k);
  if (k.block_threads()) guard_loads(k.out);
  if (k.block_threads())
    if (Checked planted = sync::plant_barriers(k.out, planting(p, scheduled.kernel)); !planted)
      return at_place(k, planted.error());
  if (Checked numbers = has_numbers(k.out, k.in.kernel.name); !numbers) return numbers.error();
  return std::move(k.out);
}

Expected<plan::AccessFacts> find_access_facts(const ir::Program& p, const expand::ScheduledKernel& scheduled,
                                              const target::Target& target, const FactsAsked& asked) {
  LoweringContext k(p, scheduled, target);
  FactSearch& search = k.facts.emplace();
  search.all_widths = asked.all_widths;
  search.beside_copies = asked.beside_copies;
  search.for_estimate = asked.for_estimate;
  declare(k);
  ScheduledLowering(k, scheduled).run();
  if (k.failed()) return std::move(k.error);
  FactsAsked again = asked;
  again.all_widths = asked.all_widths || search.differ;
  again.beside_copies =
      asked.beside_copies || std::any_of(search.found.begin(), search.found.end(), by_threads);
  return again == asked ? std::move(search.found) : find_access_facts(p, scheduled, target, again);
}

}  // namespace tilegen::lower
