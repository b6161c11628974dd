// Lists that computing warpgroups have of their own, and rows of values that go between them.
#include <utility>

#include "analysis/exchange.h"
#include "lower/gpu/exchange.h"
#include "lower/gpu/registers.h"
#include "lower/gpu/warpgroups.h"
#include "lower/lowering_context.h"
#include "lower/scheduled_lowering.h"

namespace tilegen::lower {

// Instructions of a warpgroup stand in no branch inside of its list: which one it is, is known there.
void ScheduledLowering::lower(const expand::PerWarpgroup& s, thread::Block& out) {
  const int64_t threads = k_.in.target.warpgroup;
  std::vector<thread::Block> bodies;
  for (size_t w = 0; w < s.bodies.size(); ++w) {
    const auto first = static_cast<int64_t>(w) * threads;
    auto mark = k_.ctx.mark();
    k_.ctx.bind(k_.out.thread_var, first, first + threads - 1);
    k_.role.warpgroup = static_cast<int64_t>(w);
    lower(s.bodies[w], bodies.emplace_back());
    k_.role.warpgroup.reset();
    k_.ctx.rollback(mark);
  }
  for_each_warpgroup(
      k_, [&](int64_t w) { return std::move(bodies[static_cast<size_t>(w)]); }, out, origin());
}

// Values of rows of a warpgroup have a place of their own.
MemoryId ScheduledLowering::rows_of(ir::StmtId loop, int64_t warpgroup, ValueId value) {
  const auto [known, fresh] = rows_.try_emplace({loop, warpgroup, value});
  if (!fresh) return known->second;
  const ir::DType type = k_.in.program.buffer(k_.in.ops.values[value].buffer).type;
  const int64_t elements = rows_layout(value).output_extent(0),
                warpgroups = *k_.in.schedule.threads / k_.in.target.warpgroup;
  const MemoryId place = planned_memory(k_, plan::Storage::scratch, k_.in.paths[loop.value], type,
                                        warpgroups * elements, k_.in.ops.values[value].name);
  thread::Memory& m = k_.out.memories[place.value];
  m.arena_offset += warpgroup * elements * ir::dtype_bytes(type);
  m.elements = elements;
  return known->second = place;
}

layout::Layout ScheduledLowering::rows_layout(ValueId value) const {
  const analysis::Value& v = k_.in.ops.values[value];
  return analysis::exchange_layout(v.shape, k_.in.program.buffer(v.buffer).type, k_.in.target);
}

namespace {

using Part = analysis::Alternation::Part;

// Of one warpgroup for the other: rows of the middle part are waited for by its number; those of the first
// warpgroup's head, its products and the tails of both have further barriers, since they may be waited for at
// once.
int64_t rows_barrier(const LoweringContext& k, Part part, int64_t warpgroup) {
  const int64_t warpgroups = *k.in.schedule.threads / k.in.target.warpgroup;
  switch (part) {
    case Part::head:
      return warpgroups;
    case Part::middle:
      return 1 - warpgroup;
    case Part::tail:
      return warpgroups + 2 + warpgroup;
  }
  return 0;
}
int64_t products_barrier(const LoweringContext& k) { return rows_barrier(k, Part::head, 0) + 1; }

}  // namespace

void ScheduledLowering::lower(const expand::ProductsDone& s, thread::Block& out) {
  emit(order_barrier(k_, products_barrier(k_), !s.waits), out);
}

void ScheduledLowering::lower(const expand::PutRows& s, thread::Block& out) {
  for (ValueId v : s.values)
    put_in_memory(k_, fragment_view(k_, v), rows_layout(v), rows_of(s.loop, s.warpgroup, v), origin(), out);
  if (s.part == Part::middle) {
    emit(thread::ProxyFence{}, out);
    warpgroup_barrier(k_, out, origin());
  }
  emit(order_barrier(k_, rows_barrier(k_, s.part, s.warpgroup), true), out);
}

void ScheduledLowering::lower(const expand::FetchRows& s, thread::Block& out) {
  emit(order_barrier(k_, rows_barrier(k_, s.part, s.warpgroup), false), out);
  for (ValueId v : s.values) {
    FragmentView to = fragment_view(k_, v);
    if (s.beside.count(v)) {
      const ir::DType type = k_.out.memory(to.memory).type;
      to.memory = fetched_[v] = add_registers(k_, "fetched", type, to.fragment->registers());
    }
    fetch_from_memory(k_, to, rows_layout(v), rows_of(s.loop, s.warpgroup, v), origin(), out);
  }
}

void ScheduledLowering::lower(const expand::WithFetched& s, thread::Block& out) {
  const IdVector<ValueId, MemoryId> own = k_.names.values;
  for (ValueId v : s.values) k_.names.values[v] = fetched_.at(v);
  lower(s.body, out);
  k_.names.values = own;
}

}  // namespace tilegen::lower
