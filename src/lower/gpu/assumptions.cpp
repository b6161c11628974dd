// What the schedule has the code rely on: alignments and sizes of tensors and multiples of dims, as guards of
// the kernel.
#include "lower/gpu/assumptions.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "lower/addressing.h"
#include "lower/lowering_context.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

namespace {

const ir::Buffer& buffer_of(const LoweringContext& k, MemoryId tensor) {
  const auto named = std::find_if(k.names.globals.begin(), k.names.globals.end(),
                                  [&](const auto& global) { return global.second == tensor; });
  return k.in.program.buffer(named->first);
}

// Of the tensor, from its first to its last.
ExprId elements_of(LoweringContext& k, MemoryId tensor) {
  const ir::Buffer& b = buffer_of(k, tensor);
  ir::ExprPool& e = k.out.exprs;
  ExprId elements = e.const_int(1);
  for (size_t d = 0; d < b.shape.size(); ++d) {
    const ExprId extent = lower_expr(k, b.shape[d]);
    elements = b.strides.empty()
                   ? e.mul(elements, extent)
                   : e.add(elements, e.mul(e.sub(extent, e.const_int(1)), lower_expr(k, b.strides[d])));
  }
  return k.simplified(elements);
}

}  // namespace

ExprId reach_of(LoweringContext& k, MemoryId tensor, int64_t rows_beyond) {
  const ir::Buffer& b = buffer_of(k, tensor);
  if (!b.strides.empty()) return ExprId();
  ir::ExprPool& e = k.out.exprs;
  ExprId elements = e.const_int(1);
  for (size_t d = 0; d < b.shape.size(); ++d) {
    const ExprId extent = e.add(lower_expr(k, b.shape[d]), e.const_int(d == 0 ? rows_beyond : 0));
    elements = e.mul(elements, e.binary(ir::ExprOp::max, extent, e.const_int(1)));
  }
  return k.simplified(elements);
}

void declare_assumptions(LoweringContext& k) {
  if (!k.in.schedule.assumptions) return;
  for (const plan::Assumption& a : *k.in.schedule.assumptions) {
    const auto param = std::find_if(k.out.params.begin(), k.out.params.end(),
                                    [&](const thread::Param& own) { return own.name == a.param; });
    if (param == k.out.params.end())
      return k.fail(DiagCode::schedule_mismatch, k.in.kernel.name,
                    "the schedule assumes something of '" + a.param + "', which the program does not have",
                    "leave `assumptions` out to have them planned");
    const int index = static_cast<int>(param - k.out.params.begin());
    if (param->kind == thread::Param::Kind::tensor) {
      thread::Memory& m = k.out.memories[param->memory.value];
      m.alignment = std::max(m.alignment, a.multiple);
      thread::Guard guard{index, a.multiple > 1 ? m.alignment : 1};
      if (a.most_bytes > 0) {
        guard.most_bytes = a.most_bytes;
        guard.elements = elements_of(k, param->memory);
        guard.reach = reach_of(k, param->memory, 0);
      }
      k.out.guards.push_back(std::move(guard));
      continue;
    }
    const auto facts = k.ctx.facts_of(param->var);
    if (!facts || facts->divisor % a.multiple == 0) continue;
    const int64_t divisor = std::lcm(facts->divisor, a.multiple);
    k.ctx.bind(param->var, facts->range.lo, facts->range.hi, divisor);
    k.out.guards.push_back({index, divisor});
  }
  std::sort(k.out.guards.begin(), k.out.guards.end(),
            [](const thread::Guard& a, const thread::Guard& b) { return a.param < b.param; });
}

void drop_unused_assumptions(LoweringContext& k) {
  std::set<MemoryId> bounded;
  for (size_t i = 0; i < k.out.exprs.size(); ++i)
    if (k.out.exprs[ExprId(i)].op == ir::ExprOp::load && k.out.exprs.indices(ExprId(i)).size() > 1)
      bounded.insert(k.out.exprs[ExprId(i)].object);
  for (const thread::Stmt& s : k.out.stmts) {
    const auto* store = std::get_if<thread::Store>(&s.node);
    if (store && store->predicate.valid() && !store->atomic) bounded.insert(store->memory);
    const auto* copy = std::get_if<thread::AsyncCopy>(&s.node);
    if (copy && k.in.target.buffer_async_copies) bounded.insert(copy->src);
  }
  std::erase_if(k.out.guards, [&](thread::Guard& g) {
    const thread::Param& param = k.out.params[static_cast<size_t>(g.param)];
    if (param.kind == thread::Param::Kind::tensor && !bounded.count(param.memory)) g = {g.param, g.divisor};
    return g.divisor == 1 && g.most_bytes == 0;
  });
}

}  // namespace tilegen::lower
