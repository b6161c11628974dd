// Answers by id that are forgotten all at once, often: forgetting takes no time, and remembering no memory of
// its own once the table has grown.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "support/id.h"

namespace tilegen {

template <class Key, class Value>
class MemoTable {
 public:
  // Null where there is none. Valid until the next insert().
  const Value* find(Key key) const {
    if (live_ == 0) return nullptr;
    const Slot& s = slots_[place_of(key)];
    return s.age == age_ ? &s.value : nullptr;
  }
  void insert(Key key, const Value& value) {
    if (2 * (live_ + 1) > slots_.size()) grow();
    Slot& s = slots_[place_of(key)];
    live_ += s.age != age_;
    s.key = key;
    s.age = age_;
    s.value = value;
  }
  void forget() {
    live_ = 0;
    if (++age_ != 0) return;
    for (Slot& s : slots_) s.age = 0;
    age_ = 1;
  }

 private:
  struct Slot {
    Key key;
    uint32_t age = 0;  // filled where it is that of the table
    Value value{};
  };

  // Where `key` is, or the empty slot that it would have.
  size_t place_of(Key key) const {
    const size_t mask = slots_.size() - 1;
    size_t at = (uint64_t{key.value} * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (slots_[at].age == age_ && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? kFirst : 2 * slots_.size());
    before.swap(slots_);
    for (Slot& s : before)
      if (s.age == age_) slots_[place_of(s.key)] = std::move(s);
  }

  static constexpr size_t kFirst = 32;
  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t live_ = 0;
  uint32_t age_ = 1;
};

}  // namespace tilegen
