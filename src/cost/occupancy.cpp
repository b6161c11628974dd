#include "cost/occupancy.h"

#include <algorithm>

#include "support/checked.h"

namespace tilegen::cost {

namespace {

// Fitted as those of kernel_walk.cpp: addresses, predicates, counters, an element on its way;
constexpr int64_t kOtherRegisters = 23;
// how many times what is needed the vendor's assembler takes where it may.
constexpr double kTaken = 1.226;

int64_t words(int64_t elements, ir::DType type) {
  return ceil_div(elements * ir::dtype_bytes(type), int64_t{4});
}

// Values of which one begins where another ends may share registers: those alive at once at the fullest op.
int64_t value_words(const PlannedKernel& k) {
  const size_t ops = k.ops.ops.size();
  std::vector<int64_t> alive(ops + 1, 0);
  for (size_t v = 0; v < k.schedule.values.size(); ++v) {
    const plan::ValuePlan& value = k.schedule.values[v];
    if (!value.fragment) continue;
    size_t first = ops, last = 0;
    for (analysis::OpId i : k.ops.ops.ids())
      for (const analysis::OpAccess& a : k.ops.ops[i].accesses)
        if (a.value == analysis::ValueId(v))
          first = std::min(first, i.index()), last = std::max(last, i.index());
    for (size_t i = first; i <= last && i < ops; ++i)
      alive[i] += words(value.fragment->registers() * std::max<int64_t>(1, value.slots),
                        k.p.buffer(k.ops.values[analysis::ValueId(v)].buffer).type);
  }
  return *std::max_element(alive.begin(), alive.end());
}

}  // namespace

Occupancy occupancy(const PlannedKernel& k) {
  const target::Target& t = k.t;
  Occupancy o;
  o.registers = value_words(k) + kOtherRegisters;
  int64_t arena = 0;
  for (const plan::MemoryPlan& m : k.schedule.memory) arena = std::max(arena, m.offset + m.bytes);
  int64_t threads = k.threads(), given = 0;
  if (k.schedule.roles && !k.schedule.roles->empty()) {
    threads = 0;
    for (const plan::RolePlan& r : *k.schedule.roles) threads += r.warps * t.warp;
    given = k.schedule.roles->front().registers;
  }
  const int64_t whole = ceil_div(threads, int64_t{t.warpgroup}) * t.warpgroup;
  o.may_have = given > 0 ? given : std::min<int64_t>(t.registers_per_thread, t.registers_at_launch(whole));
  const int64_t unit = t.register_unit;
  // Where nothing tells the vendor's assembler how many blocks there shall be, it takes what it likes.
  const int64_t min_blocks = k.schedule.launch ? k.schedule.launch->min_blocks : 1;
  const bool multiplies =
      std::any_of(k.schedule.ops.begin(), k.schedule.ops.end(), [](const plan::OpPlan& op) {
        return op.engine == plan::Engine::mma || op.engine == plan::Engine::warpgroup_mma;
      });
  const int64_t taken = multiplies || min_blocks > 1
                            ? o.registers
                            : static_cast<int64_t>(kTaken * static_cast<double>(o.registers));
  const int64_t each =
      std::min(o.may_have, std::max<int64_t>(t.least_registers, ceil_div(taken, unit) * unit));
  const int64_t shared = arena + t.reserved_shared_bytes;
  const int64_t by_shared = (t.shared_bytes + t.reserved_shared_bytes) / std::max<int64_t>(1, shared);
  const int64_t by_registers =
      given > 0 ? 1 : t.registers_per_multiprocessor / std::max<int64_t>(1, each * threads);
  const int64_t by_threads = std::min(t.blocks_per_multiprocessor, t.threads_per_multiprocessor / threads);
  o.blocks = std::max<int64_t>(1, std::min({by_shared, by_registers, by_threads}));
  o.bound = o.blocks >= by_shared ? "shared memory" : o.blocks >= by_registers ? "registers" : "threads";
  return o;
}

}  // namespace tilegen::cost
