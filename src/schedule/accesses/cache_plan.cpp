#include "schedule/accesses/cache_plan.h"

#include <algorithm>

#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::OpAccess;
using analysis::OpId;

namespace {

Error refused(const KernelOp& op, const std::string& value, const std::string& why, const std::string& hint) {
  return Error(DiagCode::schedule_illegal, op.path,
               "the given `cache` '" + value + "' is not possible: " + why, hint, op.location);
}

bool is_atomic(const ir::Program& p, const KernelOp& op) {
  const auto* tile = p.as<ir::TileOp>(op.stmt);
  if (tile) return ops::layout_rule(*tile).atomic.has_value();
  bool found = false;
  ir::for_each_statement(p, {op.stmt}, [&](ir::StmtId s, int) {
    const auto* store = p.as<ir::Store>(s);
    found = found || (store && store->atomic);
  });
  return found;
}

// Asynchronous copies of threads of fewer than 16 bytes go through the nearest cache.
bool takes_place(const ir::Program& p, const KernelOp& op, const plan::OpPlan& plan) {
  constexpr int64_t kPastNearest = 16;
  if (plan.engine != plan::Engine::async_copy || plan.cache != "no_allocate") return false;
  return std::any_of(op.accesses.begin(), op.accesses.end(), [&](const OpAccess& a) {
    return !a.value.valid() && plan.vector * ir::dtype_bytes(p.buffer(a.buffer).type) < kPastNearest;
  });
}

}  // namespace

Checked plan_caching(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                     const plan::KernelSchedule* given, plan::KernelSchedule& s) {
  if (!given) return Unit{};
  for (OpId i : ops.ops.ids())
    if (const plan::OpPlan* g = plan::find_op(*given, ops.ops[i].path)) s.ops[i.index()].cache = g->cache;
  for (OpId i : ops.ops.ids()) {
    const KernelOp& op = ops.ops[i];
    const plan::OpPlan& plan = s.ops[i.index()];
    if (plan.cache.empty()) continue;
    if (!takes_hints(t))
      return refused(op, plan.cache, t.name + " has no accesses that tell caches",
                     "leave `cache` out, or compile for sm_80 or newer");
    if (is_atomic(p, op))
      return refused(op, plan.cache, "it combines elements in memory", "leave `cache` out");
    if (takes_place(p, op, plan))
      return refused(
          op, plan.cache,
          "asynchronous copies of " + std::to_string(plan.vector) + " elements go through the nearest cache",
          "copy 16 bytes at once, or give the engine vector_copy");
    bool any = false;
    for (const OpAccess& a : op.accesses) {
      if (a.value.valid()) continue;
      any = true;
      for (OpId j : ops.ops.ids())
        for (const OpAccess& other : ops.ops[j].accesses) {
          const bool same = !other.value.valid() && other.buffer == a.buffer &&
                            ((a.read && other.read) || (a.write && other.write));
          if (same && s.ops[j.index()].cache != plan.cache)
            return refused(
                op, plan.cache,
                ops.ops[j].path + (a.read ? " reads" : " writes") + " tensor '" + p.buffer(a.buffer).name +
                    "' too, and says " +
                    (s.ops[j.index()].cache.empty() ? "nothing of it" : "'" + s.ops[j.index()].cache + "'"),
                "say the same of both");
        }
    }
    if (!any) return refused(op, plan.cache, "it accesses no tensor", "leave `cache` out");
  }
  return Unit{};
}

}  // namespace tilegen::schedule
