// Dense arrays indexed by one kind of id: an index of another kind does not compile.
#pragma once

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/id.h"

namespace tilegen {

// The ids 0 to n - 1, in order.
template <class I>
class IdRange {
 public:
  class iterator {
   public:
    explicit iterator(size_t at) : at_(at) {}
    I operator*() const { return I(at_); }
    iterator& operator++() { return ++at_, *this; }
    bool operator==(const iterator&) const = default;

   private:
    size_t at_;
  };
  explicit IdRange(size_t n) : n_(n) {}
  iterator begin() const { return iterator(0); }
  iterator end() const { return iterator(n_); }

 private:
  size_t n_;
};

// An array that owns its elements. `list` is the plain array, for what does not know the ids.
template <class I, class T>
class IdVector {
 public:
  using List = std::vector<T>;

  IdVector() = default;
  explicit IdVector(size_t size, const T& fill = T()) : list_(size, fill) {}

  typename List::reference operator[](I id) { return list_[id.index()]; }
  typename List::const_reference operator[](I id) const { return list_[id.index()]; }
  size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  IdRange<I> ids() const { return IdRange<I>(list_.size()); }
  auto begin() { return list_.begin(); }
  auto end() { return list_.end(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  const T& front() const { return list_.front(); }
  const T& back() const { return list_.back(); }
  void resize(size_t size) { list_.resize(size); }
  // The id of the new element.
  I push_back(T element) {
    list_.push_back(std::move(element));
    return I(list_.size() - 1);
  }
  // requires: the element is one of the array.
  I id_of(const T& element) const { return I(static_cast<size_t>(&element - list_.data())); }
  const List& list() const& { return list_; }
  List list() && { return std::move(list_); }
  bool operator==(const IdVector&) const = default;

 private:
  List list_;
};

// An array of others, seen by ids: of an IdVector, or a list that is parallel to one.
template <class I, class T>
class IdSpan {
 public:
  using Element = std::remove_const_t<T>;

  IdSpan(const IdVector<I, Element>& v) : span_(v.list()) {}
  IdSpan(const std::vector<Element>& list) : span_(list) {}

  T& operator[](I id) const { return span_[id.index()]; }
  size_t size() const { return span_.size(); }
  IdRange<I> ids() const { return IdRange<I>(span_.size()); }
  auto begin() const { return span_.begin(); }
  auto end() const { return span_.end(); }

 private:
  std::span<T> span_;
};

}  // namespace tilegen
