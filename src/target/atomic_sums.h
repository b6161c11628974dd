// Sums of floats that a target adds to memory by one instruction.
#pragma once

#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::target {

struct AtomicSum {
  ir::DType type = ir::DType::none;
  int bytes = 0;          // that lie side by side, aligned to as many: each element is a sum of its own
  bool alone = false;     // of one element, anywhere, whose old value it gives; else of global memory
  int capability = 0;     // least, as Target::capability
  int isa_version = 0;    // least, as Target::isa_version
  const char* form = "";  // what follows "red.global.add" where it gives no old value
};

// The widest for at most `bytes` of the store's elements side by side; null: the store is no sum of floats,
// or the target has none.
const AtomicSum* find_atomic_sum(const thread::ThreadProgram& p, const thread::Store& s, const Target& t,
                                 int64_t bytes);

}  // namespace tilegen::target
