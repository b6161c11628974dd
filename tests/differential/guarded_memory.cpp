#include "guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace tilegen::differential {

GuardedMemory::GuardedMemory(size_t bytes, bool at_end) : size_(bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  usable_ = (bytes + page - 1) / page * page + (bytes % page == 0 ? page : 0);
  mapped_ = usable_ + 2 * page;
  void* p = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert(p != MAP_FAILED);
  mapping_ = static_cast<std::byte*>(p);
  [[maybe_unused]] const int opened = mprotect(mapping_ + page, usable_, PROT_READ | PROT_WRITE);
  assert(opened == 0);
  std::fill_n(mapping_ + page, usable_, kMark);
  data_ = mapping_ + page + (at_end ? usable_ - bytes : 0);
}

GuardedMemory::GuardedMemory(GuardedMemory&& o) noexcept
    : mapping_(std::exchange(o.mapping_, nullptr)),
      mapped_(o.mapped_),
      usable_(o.usable_),
      data_(o.data_),
      size_(o.size_) {}

GuardedMemory::~GuardedMemory() {
  if (mapping_) munmap(mapping_, mapped_);
}

bool GuardedMemory::marks_intact() const {
  const std::byte* first = mapping_ + (mapped_ - usable_) / 2;
  const auto marked = [](const std::byte* a, const std::byte* b) {
    return std::all_of(a, b, [](std::byte x) { return x == kMark; });
  };
  return marked(first, data_) && marked(data_ + size_, first + usable_);
}

}  // namespace tilegen::differential
