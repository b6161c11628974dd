// A vector of plain values whose first N lie in the object: short lists cost no memory of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

namespace tilegen {

template <class T, uint32_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> && N > 0);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  SmallVector(std::initializer_list<T> values) { assign(values.begin(), values.size()); }
  SmallVector(const SmallVector& o) { assign(o.begin(), o.size_); }
  SmallVector(SmallVector&& o) noexcept { take(o); }
  SmallVector& operator=(const SmallVector& o) {
    if (this == &o) return *this;
    size_ = 0;
    assign(o.begin(), o.size_);
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this == &o) return *this;
    delete[] many_;
    take(o);
    return *this;
  }
  ~SmallVector() { delete[] many_; }

  T* data() { return many_ ? many_ : few_; }
  const T* data() const { return many_ ? many_ : few_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  const T& back() const { return data()[size_ - 1]; }

  void push_back(T value) {
    if (size_ == capacity_) reserve(2 * size_t{capacity_});
    data()[size_++] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    T* more = new T[capacity];
    std::copy(begin(), end(), more);
    delete[] many_;
    many_ = more;
    capacity_ = static_cast<uint32_t>(capacity);
  }

  bool operator==(const SmallVector& o) const { return std::equal(begin(), end(), o.begin(), o.end()); }

 private:
  void assign(const T* first, size_t count) {
    reserve(count);
    std::copy(first, first + count, data());
    size_ = static_cast<uint32_t>(count);
  }
  // Leaves `o` empty.
  void take(SmallVector& o) noexcept {
    many_ = std::exchange(o.many_, nullptr);
    capacity_ = std::exchange(o.capacity_, N);
    size_ = std::exchange(o.size_, 0);
    if (!many_) std::copy(o.few_, o.few_ + size_, few_);
  }

  T* many_ = nullptr;
  uint32_t size_ = 0, capacity_ = N;
  T few_[N];
};

}  // namespace tilegen
