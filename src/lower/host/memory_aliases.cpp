#include "lower/host/memory_aliases.h"

#include <algorithm>

#include "lower/accesses.h"

namespace tilegen::lower {

using thread::MemoryId;

MemoryAliases::MemoryAliases(const thread::ThreadProgram& p)
    : is_global_(p.memories.size()), on_chip_(p.memories.size()) {
  std::vector<MemoryId> placed;  // in the arena
  for (size_t m = 0; m < p.memories.size(); ++m) {
    is_global_[m] = p.memories[m].space == thread::Space::global;
    if (is_global_[m]) {
      global_.push_back(MemoryId(m));
    } else {
      on_chip_[m].push_back(MemoryId(m));
      if (p.memories[m].arena_offset >= 0) placed.push_back(MemoryId(m));
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [&](MemoryId a, MemoryId b) {
    return p.memory(a).arena_offset < p.memory(b).arena_offset;
  });
  std::vector<MemoryId> open;  // those before that reach as far as the one looked at
  for (MemoryId m : placed) {
    std::erase_if(open, [&](MemoryId o) {
      const thread::Memory& before = p.memory(o);
      return before.arena_offset + before.elements * ir::dtype_bytes(before.type) <= p.memory(m).arena_offset;
    });
    for (MemoryId o : open) {
      if (!may_alias(p, o, m)) continue;
      on_chip_[o.value].push_back(m);
      on_chip_[m.value].push_back(o);
    }
    open.push_back(m);
  }
}

}  // namespace tilegen::lower
