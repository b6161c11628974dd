#include "schedule/pipeline/register_copies.h"

#include <algorithm>

#include "analysis/exchange.h"
#include "analysis/run_ahead.h"
#include "support/checked.h"

namespace tilegen::schedule {

using analysis::OpId;

namespace {

// Addresses, operands of products and what else a thread has besides values and loads under way.
constexpr int64_t kOtherRegisters = 96;

bool through_registers(const target::Target& t) { return t.register_copies && !t.async_copy(); }

// Why a thread cannot load elements of a fragment iterations ahead to registers that become the fragment's;
// empty where it can.
std::string not_in_place(const ir::Program& p, const analysis::KernelOps& ops,
                         const infer::InferResult& layouts, OpId load) {
  const plan::ValuePlan& value = layouts.values[ops.ops[load].accesses.back().value];
  const plan::OpPlan& plan = layouts.ops[load];
  if (value.memory || !value.fragment) return "its fragment takes more registers than there are";
  const bool converted =
      !analysis::conversions_of(p, ops, ops.ops[load], layouts.values, layouts.conversions).empty();
  return converted || !plan.through_memory.empty() || plan.iteration != value.fragment
             ? "threads load elements that others hold"
             : "";
}

}  // namespace

std::map<OpId, std::string> not_loaded(const ir::Program& p, const analysis::KernelOps& ops,
                                       const target::Target& t, const plan::KernelSchedule* given,
                                       const infer::InferResult& layouts) {
  std::map<OpId, std::string> kept;
  if (!through_registers(t)) return kept;
  int64_t words = kOtherRegisters;
  for (analysis::ValueId v : layouts.values.ids())
    if (!layouts.values[v].memory && layouts.values[v].fragment)
      words += ceil_div(
          layouts.values[v].fragment->registers() * ir::dtype_bytes(p.buffer(ops.values[v].buffer).type),
          int64_t{4});
  for (OpId i : ops.ops.ids()) {
    const analysis::KernelOp& op = ops.ops[i];
    const plan::OpPlan* g = given ? plan::find_op(*given, op.path) : nullptr;
    const std::optional<layout::Fragment>& iteration = layouts.ops[i].iteration;
    const bool fragment = analysis::is_fragment_load(p, op);
    if (!fragment && !analysis::is_tile_load(p, op)) continue;
    if (g && g->engine && g->engine != plan::Engine::register_copy) {
      kept[i] = std::string("the schedule gives it engine '") + plan::engine_name(*g->engine) + "'";
    } else if (!iteration) {
      kept[i] = "no thread has elements of its own";
    } else if (std::string why = fragment ? not_in_place(p, ops, layouts, i) : ""; !why.empty()) {
      kept[i] = why;
    } else {
      const int64_t own = ceil_div(
          iteration->registers() * ir::dtype_bytes(p.buffer(op.accesses.front().buffer).type), int64_t{4});
      if (words + own > t.max_role_registers)
        kept[i] = "a thread would keep " + std::to_string(own) + " registers of it beside " +
                  std::to_string(words) + " others, and has " + std::to_string(t.max_role_registers);
      else
        words += own;
    }
  }
  return kept;
}

void take_register_copies(const analysis::KernelOps& ops, const target::Target& t,
                          const std::vector<plan::LoopPlan>& loops, infer::InferResult& layouts) {
  if (!through_registers(t)) return;
  for (const plan::LoopPlan& loop : loops)
    for (const auto& [path, stage] : loop.stages)
      for (OpId i : ops.ops.ids())
        if (ops.ops[i].path == path && stage < loop.num_stages - 1)
          layouts.ops[i].engine = plan::Engine::register_copy;
}

}  // namespace tilegen::schedule
