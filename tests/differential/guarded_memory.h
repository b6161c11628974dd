// Memory of one tensor between inaccessible pages, so that an access outside it is a fault or leaves a mark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tilegen::differential {

class GuardedMemory {
 public:
  // `at_end`: the last byte lies before an inaccessible page; else the first byte lies after one. What is
  // left of the pages on the other side holds the mark.
  GuardedMemory(size_t bytes, bool at_end);
  GuardedMemory(GuardedMemory&& o) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();

  static constexpr std::byte kMark{0xa5};

  std::span<std::byte> bytes() { return {data_, size_}; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  uint64_t slot() const { return reinterpret_cast<uint64_t>(data_); }
  bool marks_intact() const;

 private:
  std::byte* mapping_ = nullptr;
  size_t mapped_ = 0, usable_ = 0;  // usable_ bytes lie one page into the mapping
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tilegen::differential
