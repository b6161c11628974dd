#include "lower/gpu_occupancy.h"

#include <algorithm>

#include "support/checked.h"

namespace tilegen::lower {

// Addresses, conditions and what an expression is computed through.
constexpr int64_t kOtherRegisters = 24;

void choose_min_blocks(thread::ThreadProgram& p, const target::Target& target) {
  const bool multiplies = std::any_of(p.stmts.begin(), p.stmts.end(), [](const thread::Stmt& s) {
    return std::holds_alternative<thread::WarpMma>(s.node);
  });
  if (multiplies || target.registers_per_multiprocessor == 0) return;
  int64_t registers = kOtherRegisters;
  for (const thread::Memory& m : p.memories)
    if (m.in_registers) registers += ceil_div(m.elements * ir::dtype_bytes(m.type), 4);
  int64_t blocks = target.registers_per_multiprocessor / (p.threads * registers);
  blocks = std::min(blocks, target.threads_per_multiprocessor / p.threads);
  p.min_blocks = std::max<int64_t>(blocks, 1);
}

}  // namespace tilegen::lower
