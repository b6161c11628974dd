#include "lower/gpu_occupancy.h"

#include <algorithm>

#include "support/checked.h"

namespace tilegen::lower {

// Addresses, conditions and what an expression is computed through; what any kernel may have; and the values
// with which a thread has enough to do at once without more warps beside it.
constexpr int64_t kOtherRegisters = 24, kLeastRegisters = 64, kMostValues = 40;

void choose_min_blocks(thread::ThreadProgram& p, const target::Target& target) {
  if (target.registers_per_multiprocessor == 0) return;
  int64_t values = 0;
  for (const thread::Memory& m : p.memories)
    if (m.in_registers) values += ceil_div(m.elements * ir::dtype_bytes(m.type), 4);
  if (values > kMostValues) return;
  const int64_t registers = std::max(values + kOtherRegisters, kLeastRegisters);
  int64_t blocks = target.registers_per_multiprocessor / (p.threads * registers);
  blocks = std::min(blocks, target.threads_per_multiprocessor / p.threads);
  p.min_blocks = std::max<int64_t>(blocks, 1);
}

}  // namespace tilegen::lower
