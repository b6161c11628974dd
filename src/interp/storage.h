// The elements of one buffer while a program is interpreted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/expr.h"
#include "ir/program.h"

namespace tilegen::interp {

enum class AccessResult : uint8_t { done, outside, unwritten };

// A global tensor is the caller's memory: reads outside its extents give 0, writes there are dropped. An
// on-chip buffer is a plain array of the running block, each element a number in its dtype's exact range and
// a mark saying that something wrote it.
class Storage {
 public:
  Storage() = default;
  static Storage global(ir::DType type, std::vector<int64_t> shape, std::vector<int64_t> strides,
                        std::byte* base);
  static Storage on_chip(ir::DType type, std::vector<int64_t> shape);

  ir::DType type() const { return type_; }
  std::span<const int64_t> shape() const { return shape_; }
  // `out` is 0 unless the element is there.
  AccessResult load(std::span<const int64_t> index, ir::ScalarValue* out) const {
    *out = {type_, 0, 0};
    int64_t at = 0;
    const bool inside = locate(index, &at);
    if (is_global_) return inside ? load_global(at, out) : AccessResult::done;
    if (!inside) return AccessResult::outside;
    const Cell& cell = cells_[static_cast<size_t>(at)];
    is_float_ ? void(out->f = cell.f) : void(out->i = cell.i);
    return written_[static_cast<size_t>(at)] ? AccessResult::done : AccessResult::unwritten;
  }
  AccessResult store(std::span<const int64_t> index, ir::ScalarValue value) {
    int64_t at = 0;
    const bool inside = locate(index, &at);
    if (is_global_) return inside ? store_global(at, value) : AccessResult::done;
    if (!inside) return AccessResult::outside;
    Cell& cell = cells_[static_cast<size_t>(at)];
    is_float_ ? void(cell.f = value.f) : void(cell.i = value.i);
    written_[static_cast<size_t>(at)] = 1;
    return AccessResult::done;
  }
  void append(std::span<const int64_t> index, ir::ScalarValue value);  // of ir/print.h, to a tensor
  bool all_one() const;  // every element of a float on-chip buffer is written, and 1
  // Adds an on-chip buffer of the same shape and type, rounded; what either has not written is not written.
  void add(const Storage& other);
  void forget();  // a new block starts: no on-chip element is written

 private:
  union Cell {
    int64_t i;
    double f;
  };
  // False when outside; else the linear position, which is negative in a tensor of negative strides.
  bool locate(std::span<const int64_t> index, int64_t* at) const {
    uint64_t sum = 0;
    const int64_t *shape = shape_.data(), *strides = strides_.data();
    for (size_t d = 0; d < index.size(); ++d) {
      if (index[d] < 0 || index[d] >= shape[d]) return false;
      sum += static_cast<uint64_t>(index[d]) * static_cast<uint64_t>(strides[d]);
    }
    *at = static_cast<int64_t>(sum);
    return true;
  }
  AccessResult load_global(int64_t at, ir::ScalarValue* out) const;
  AccessResult store_global(int64_t at, ir::ScalarValue value);

  ir::DType type_ = ir::DType::none;
  bool is_global_ = false;
  bool is_float_ = false;
  int bytes_ = 0;
  std::vector<int64_t> shape_, strides_;
  std::byte* base_ = nullptr;
  std::vector<Cell> cells_;
  std::vector<uint8_t> written_;
};

// One element in memory: bits in the dtype's format, low bits first.
ir::ScalarValue value_from_bits(ir::DType type, uint64_t bits);
uint64_t value_to_bits(ir::ScalarValue value);

}  // namespace tilegen::interp
