#include "schedule/memory_plan.h"

#include <algorithm>

#include "support/checked.h"

namespace tilegen::schedule {

namespace {

// Host tiles of a power of two of bytes, one right behind the other, would fall into the same cache sets.
constexpr int64_t kHostSkew = 192;

// Swizzled tiles start at a repeat of their pattern; others at the widest access.
int64_t alignment_of(const plan::ValuePlan& v, const target::Target& t) {
  if (v.memory && !v.memory->swizzle().none())
    return int64_t{1} << (v.memory->swizzle().bits + v.memory->swizzle().base + 3);
  return std::max(t.vector_bytes, 16);
}

}  // namespace

std::vector<int64_t> value_bytes(const ir::Program& p, const infer::KernelOps& ops,
                                 const std::vector<plan::ValuePlan>& values, const target::Target& target) {
  std::vector<int64_t> bytes(values.size(), 0);
  for (size_t v = 0; v < values.size(); ++v) {
    int64_t elements = 0;
    if (values[v].memory)
      elements = values[v].memory->output_extent(0);
    else if (target.is_host() && values[v].fragment)
      elements = values[v].fragment->registers();
    bytes[v] = elements * ir::dtype_bytes(p.buffer(ops.values[v].buffer).type);
  }
  return bytes;
}

Expected<std::vector<plan::MemoryPlan>> plan_memory(const ir::Program& p, const infer::KernelOps& ops,
                                                    const std::vector<plan::ValuePlan>& values,
                                                    const std::vector<Scratch>& scratch,
                                                    const target::Target& target, const std::string& kernel) {
  std::vector<int64_t> bytes = value_bytes(p, ops, values, target);
  std::vector<plan::MemoryPlan> plan;
  int64_t offset = 0;
  for (size_t v = 0; v < values.size(); ++v) {
    if (bytes[v] == 0) continue;
    int64_t align = alignment_of(values[v], target);
    offset = ceil_div(offset, align) * align;
    plan.push_back({values[v].value, offset, bytes[v] * values[v].slots});
    offset += bytes[v] * values[v].slots;
    if (target.is_host()) offset += kHostSkew;
  }
  const int64_t align = std::max(target.vector_bytes, 16);
  const int64_t behind = ceil_div(offset, align) * align;
  for (const Scratch& s : scratch) {
    plan.push_back({s.name, behind, s.bytes});
    offset = std::max(offset, behind + s.bytes);
  }
  if (offset <= target.shared_bytes) return plan;
  auto largest =
      std::max_element(plan.begin(), plan.end(), [](auto& a, auto& b) { return a.bytes < b.bytes; });
  return Error(DiagCode::limit_memory, kernel,
               "the kernel's tiles take " + std::to_string(offset) + " bytes of on-chip memory; " +
                   target.name + " has " + std::to_string(target.shared_bytes) +
                   " (largest: " + largest->value + " with " + std::to_string(largest->bytes) + ")",
               "use smaller tiles or fewer stages");
}

}  // namespace tilegen::schedule
