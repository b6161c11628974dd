#include "schedule/memory/memory_plan.h"

#include <algorithm>
#include <map>
#include <optional>

#include "plan/slots.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::ValueId;

namespace {

// Host tiles of a power of two of bytes, one right after the other, would fall into the same cache sets.
constexpr int64_t kHostSkew = 192;

struct Request {
  plan::Storage storage = plan::Storage::value;
  std::string owner, value;
  int64_t bytes = 0, align = 16, offset = 0;
  analysis::LiveRange live;
  // Of staged tiles and written operands that may share a place: the statements that use them.
  std::optional<analysis::LiveRange> used = std::nullopt;

  bool conflicts(const Request& o) const {
    if (!live.overlaps(o.live)) return false;
    if (!used || !o.used) return true;
    const bool staged = storage == plan::Storage::stage, other = o.storage == plan::Storage::stage;
    return staged && other ? false
           : staged        ? o.used->last >= used->first
                           : !other || used->last >= o.used->first;
  }
};

// The largest first, each at the lowest place that is free while it is alive.
void place(std::vector<Request>& requests) {
  std::vector<Request*> order;
  for (Request& r : requests) order.push_back(&r);
  std::stable_sort(order.begin(), order.end(),
                   [](const Request* a, const Request* b) { return a->bytes > b->bytes; });
  std::multimap<int64_t, const Request*> placed;  // by offset: what was passed is never in the way again
  for (Request* r : order) {
    for (const auto& [offset, o] : placed)
      if (o->conflicts(*r) && r->offset < offset + o->bytes && offset < r->offset + r->bytes)
        r->offset = ceil_div(offset + o->bytes, r->align) * r->align;
    placed.emplace(r->offset, r);
  }
}

// Host: every value has a place of its own, in order.
void place_in_a_row(std::vector<Request>& requests) {
  int64_t offset = 0;
  for (Request& r : requests) {
    r.offset = ceil_div(offset, r.align) * r.align;
    offset = r.offset + r.bytes + kHostSkew;
  }
}

// Where the text declares the tile, or has the operation that needs memory of its own; else the kernel.
SourceLocation location_of(const ir::Program& p, const ir::Kernel& kernel, const analysis::KernelOps& ops,
                           const plan::MemoryPlan& tile) {
  for (const analysis::Value& v : ops.values)
    if (v.name == tile.owner || v.name == tile.value) return p.buffer(v.buffer).location;
  for (const analysis::KernelOp& op : ops.ops)
    if (op.path == tile.owner) return op.location;
  return kernel.location;
}

}  // namespace

// Swizzled tiles start at a repeat of their pattern, others where the banks of shared memory begin.
int64_t value_alignment(const plan::ValuePlan& v, const target::Target& target) {
  if (target.banks.banks == 0) return std::max(target.vector_bytes, 16);
  if (!v.memory || v.memory->swizzle().none()) return target.banks.row_bytes();
  const layout::Swizzle& s = v.memory->swizzle();
  return std::max<int64_t>(target.banks.row_bytes(), int64_t{1} << std::min(s.bits + s.base + s.shift, 10));
}

IdVector<ValueId, int64_t> value_bytes(const ir::Program& p, const analysis::KernelOps& ops,
                                       analysis::ValuePlans values, const target::Target& target) {
  IdVector<ValueId, int64_t> bytes(values.size(), 0);
  for (ValueId v : values.ids()) {
    int64_t elements = 0;
    if (values[v].memory)
      elements = values[v].memory->output_extent(0);
    else if (target.addressable_registers() && values[v].fragment)
      elements = values[v].fragment->registers();
    bytes[v] = elements * ir::dtype_bytes(p.buffer(ops.values[v].buffer).type);
  }
  return bytes;
}

std::vector<plan::MemoryPlan> place_values(const ir::Program& p, const analysis::KernelOps& ops,
                                           const analysis::Liveness& liveness, analysis::ValuePlans values,
                                           const std::vector<Scratch>& scratch, const target::Target& target,
                                           const SharedReservations& engine) {
  const IdVector<ValueId, int64_t> bytes = value_bytes(p, ops, values, target);
  std::vector<Request> requests;
  for (ValueId v : values.ids())
    if (bytes[v] > 0) {
      const bool by_engine = engine.values.count(v) > 0;
      const int64_t align = value_alignment(values[v], target);
      const ir::DType type = p.buffer(ops.values[v].buffer).type;
      const int64_t slot = values[v].memory ? plan::slot_elements(values[v], type, target.banks.row_bytes()) *
                                                  ir::dtype_bytes(type)
                                            : bytes[v];
      requests.push_back({plan::Storage::value, values[v].value, "", slot * values[v].slots,
                          by_engine ? std::max(align, target.tensor_tile_alignment) : align, 0,
                          !by_engine                  ? liveness.values()[v]
                          : engine.split_loop.empty() ? analysis::kAlwaysLive
                                                      : analysis::LiveRange{0, liveness.values()[v].last}});
      if (engine.stages_share && engine.written.count(v)) requests.back().used = liveness.values()[v];
    }
  for (const Reservation& r : engine.reserved) {
    analysis::LiveRange live = analysis::kAlwaysLive;
    if (r.storage == plan::Storage::parts) live = liveness.behind_loop(engine.split_loop);
    requests.push_back({r.storage, r.owner, "", r.bytes, r.align, 0, live});
    if (engine.stages_share && r.storage == plan::Storage::stage)
      requests.back().used = liveness.of_statement(r.owner);
  }
  for (const Scratch& s : scratch)
    requests.push_back({s.storage, s.owner, s.value, s.bytes, std::max<int64_t>(target.vector_bytes, 16), 0,
                        liveness.of_statement(s.statement)});
  target.has_block_threads() ? place(requests) : place_in_a_row(requests);
  std::vector<plan::MemoryPlan> plan;
  for (Request& r : requests)
    plan.push_back({r.storage, std::move(r.owner), std::move(r.value), r.offset, r.bytes});
  return plan;
}

int64_t arena_bytes(const std::vector<plan::MemoryPlan>& plan) {
  int64_t end = 0;
  for (const plan::MemoryPlan& m : plan) end = std::max(end, m.offset + m.bytes);
  return end;
}

Expected<std::vector<plan::MemoryPlan>> plan_memory(
    const ir::Program& p, int kernel, const analysis::KernelOps& ops, const analysis::Liveness& liveness,
    analysis::ValuePlans values, const std::vector<Scratch>& scratch, const target::Target& target,
    const SharedReservations& engine) {
  std::vector<plan::MemoryPlan> plan = place_values(p, ops, liveness, values, scratch, target, engine);
  if (arena_bytes(plan) <= target.shared_bytes) return plan;
  auto largest =
      std::max_element(plan.begin(), plan.end(), [](auto& a, auto& b) { return a.bytes < b.bytes; });
  const ir::Kernel& of = p.kernels[static_cast<size_t>(kernel)];
  return Error(DiagCode::limit_memory, of.name,
               "the kernel's tiles take " + std::to_string(arena_bytes(plan)) + " bytes of on-chip memory; " +
                   target.name + " has " + std::to_string(target.shared_bytes) +
                   " (largest: " + largest->owner + " with " + std::to_string(largest->bytes) + ")",
               "use smaller tiles or fewer stages", location_of(p, of, ops, *largest));
}

}  // namespace tilegen::schedule
