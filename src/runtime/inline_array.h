// An array whose size is known when it is made: small ones stand in the object itself, so that a launch of a
// program with a usual number of parameters allocates nothing. Its elements are not set.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace tilegen::runtime {

template <class T, size_t kInline>
class InlineArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit InlineArray(size_t size) : size_(size) {
    if (size > kInline) [[unlikely]]
      more_ = std::make_unique<T[]>(size);
    data_ = more_ ? more_.get() : reinterpret_cast<T*>(inside_);
  }
  InlineArray(const InlineArray&) = delete;
  InlineArray& operator=(const InlineArray&) = delete;

  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* data() { return data_; }
  size_t size() const { return size_; }
  operator std::span<T>() { return {data_, size_}; }
  operator std::span<const T>() const { return {data_, size_}; }

 private:
  alignas(T) std::byte inside_[kInline * sizeof(T)];
  std::unique_ptr<T[]> more_;
  T* data_;
  size_t size_;
};

}  // namespace tilegen::runtime
