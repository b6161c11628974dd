// What a walk has seen: few values are looked for one after the other, without memory of their own.
#pragma once

#include <algorithm>
#include <unordered_set>

#include "support/small_vector.h"

namespace tilegen {

template <class T, uint32_t N>
class SmallSet {
 public:
  // True where it was not there.
  bool insert(T value) {
    if (many_.empty()) {
      if (std::find(few_.begin(), few_.end(), value) != few_.end()) return false;
      if (few_.size() < N) return few_.push_back(value), true;
      many_.insert(few_.begin(), few_.end());
    }
    return many_.insert(value).second;
  }

 private:
  SmallVector<T, N> few_;
  std::unordered_set<T> many_;
};

}  // namespace tilegen
