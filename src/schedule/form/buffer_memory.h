// What rules of the planned form ask of buffers.
#pragma once

#include "ir/program.h"

namespace tilegen::schedule {

inline bool in_memory(const ir::Program& p, ir::BufferId b) {
  const ir::MemScope scope = p.buffer(b).scope;
  return scope == ir::MemScope::global || scope == ir::MemScope::shared;
}

// Tensors that the program writes may share memory.
inline bool may_alias(const ir::Program& p, ir::BufferId a, ir::BufferId b) {
  const auto written = [&](ir::BufferId t) {
    return p.buffer(t).scope == ir::MemScope::global && !p.buffer(t).read_only;
  };
  return a == b || (written(a) && written(b));
}

}  // namespace tilegen::schedule
