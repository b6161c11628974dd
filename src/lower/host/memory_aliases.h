// Which memories of a thread program may share bytes (may_alias of accesses.h), by memory.
#pragma once

#include <span>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::lower {

class MemoryAliases {
 public:
  explicit MemoryAliases(const thread::ThreadProgram& p);

  // With the memory itself.
  std::span<const thread::MemoryId> of(thread::MemoryId m) const {
    return is_global_[m.value] ? std::span<const thread::MemoryId>(global_) : on_chip_[m.value];
  }

 private:
  std::vector<bool> is_global_;
  std::vector<thread::MemoryId> global_;
  std::vector<std::vector<thread::MemoryId>> on_chip_;
};

}  // namespace tilegen::lower
