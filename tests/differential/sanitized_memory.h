// What a sanitized run remembers of each element.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "interp/storage.h"
#include "ops/index_space.h"

namespace tilegen::differential {

// Which of a set of unordered units (iterations of one loop, blocks of one kernel, operands of one operation)
// touched an element. Marks of an earlier set mean nothing.
struct Mark {
  int64_t set = 0;
  int64_t writer = -1, reader = -1;
  bool many_readers = false;
  bool many_units = false;  // of atomic operations
  bool atomics = false;     // every writer's access was an atomic operation

  // False when two units meet and one of them writes, but for atomic operations alone.
  bool touch(int64_t now, int64_t unit, bool writes, bool atomic = false) {
    if (set != now) *this = Mark{now};
    if (atomic && (writer < 0 || atomics)) {
      // A plain access of this unit that comes later meets those of the others.
      const bool alone = (writer < 0 || writer == unit) && !many_units;
      many_units = !alone;
      atomics = true;
      writer = unit;
      return !many_readers && (reader < 0 || (reader == unit && alone));
    }
    if (many_units) return false;
    atomics = false;
    if (writer >= 0 && writer != unit) return false;
    if (!writes) {
      many_readers = many_readers || (reader >= 0 && reader != unit);
      reader = unit;
      return true;
    }
    writer = unit;
    return !many_readers && (reader < 0 || reader == unit);
  }
};

struct Memory {
  interp::Storage storage;
  std::vector<int64_t> strides;
  std::vector<Mark> by_unit, by_block;
  std::vector<bool> written;  // workspaces
  bool overlaps = false;      // elements share memory

  // -1: outside
  int64_t locate(std::span<const int64_t> index) const {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      if (index[d] < 0 || index[d] >= storage.shape()[d]) return -1;
      at += index[d] * strides[d];
    }
    return at;
  }

  int64_t span(std::span<const int64_t> shape) const {
    int64_t span = 1;
    for (size_t d = 0; d < shape.size(); ++d) span += std::max<int64_t>(shape[d] - 1, 0) * strides[d];
    return span;
  }

  void size_for(int64_t span) {
    by_unit.resize(static_cast<size_t>(span));
    by_block.resize(static_cast<size_t>(span));
    written.resize(static_cast<size_t>(span));
  }

  bool has_overlap(std::span<const int64_t> shape) const {
    std::vector<bool> taken(by_unit.size());
    bool meets = false;
    ops::for_each_index(shape, [&](std::span<const int64_t> index) {
      size_t at = 0;
      for (size_t d = 0; d < index.size(); ++d) at += static_cast<size_t>(index[d] * strides[d]);
      meets = meets || taken[at];
      taken[at] = true;
      return !meets;
    });
    return meets;
  }
};

}  // namespace tilegen::differential
