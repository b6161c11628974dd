#include "interp/storage.h"

#include <algorithm>
#include <cstring>

#include "ir/print.h"

namespace tilegen::interp {

using ir::DType;
using ir::ScalarValue;

ScalarValue value_from_bits(DType type, uint64_t bits) {
  if (ir::is_float(type)) return {type, 0, ir::float_from_bits(type, bits)};
  if (ir::is_bool(type)) return {type, (bits & 0xff) != 0, 0};
  return {type, ir::wrap_to(type, static_cast<int64_t>(bits)), 0};
}

uint64_t value_to_bits(ScalarValue value) {
  return ir::is_float(value.type) ? ir::float_to_bits(value.type, value.f) : static_cast<uint64_t>(value.i);
}

Storage Storage::global(DType type, std::vector<int64_t> shape, std::vector<int64_t> strides,
                        std::byte* base) {
  Storage s;
  s.type_ = type;
  s.is_global_ = true;
  s.is_float_ = ir::is_float(type);
  s.bytes_ = ir::dtype_bytes(type);
  s.shape_ = std::move(shape);
  s.strides_ = std::move(strides);
  s.base_ = base;
  return s;
}

Storage Storage::on_chip(DType type, std::vector<int64_t> shape) {
  Storage s;
  s.type_ = type;
  s.is_float_ = ir::is_float(type);
  s.shape_ = std::move(shape);
  s.strides_.resize(s.shape_.size());
  int64_t elements = 1;
  for (size_t d = s.shape_.size(); d-- > 0;) {
    s.strides_[d] = elements;
    elements *= s.shape_[d];
  }
  s.cells_.resize(elements);
  s.written_.resize(elements);
  return s;
}

void Storage::append(std::span<const int64_t> index, ScalarValue value) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides_[d];
  ir::append_record(base_, at, value_to_bits(value));
}

bool Storage::all_one() const {
  return std::all_of(written_.begin(), written_.end(), [](uint8_t written) { return written != 0; }) &&
         std::all_of(cells_.begin(), cells_.end(), [](const Cell& c) { return c.f == 1; });
}

void Storage::add(const Storage& other) {
  for (size_t i = 0; i < cells_.size(); ++i) {
    const auto value = [&](const Cell& c) {
      return is_float_ ? ir::ScalarValue{type_, 0, c.f} : ir::ScalarValue{type_, c.i, 0};
    };
    const ir::ScalarValue sum =
        ir::eval_binary(ir::ExprOp::add, type_, value(cells_[i]), value(other.cells_[i]));
    is_float_ ? void(cells_[i].f = sum.f) : void(cells_[i].i = sum.i);
    written_[i] &= other.written_[i];
  }
}

void Storage::forget() { std::fill(written_.begin(), written_.end(), 0); }

AccessResult Storage::load_global(int64_t at, ScalarValue* out) const {
  uint64_t bits = 0;
  std::memcpy(&bits, base_ + at * bytes_, static_cast<size_t>(bytes_));
  *out = value_from_bits(type_, bits);
  return AccessResult::done;
}

AccessResult Storage::store_global(int64_t at, ScalarValue value) {
  const uint64_t bits = value_to_bits(value);
  std::memcpy(base_ + at * bytes_, &bits, static_cast<size_t>(bytes_));
  return AccessResult::done;
}

}  // namespace tilegen::interp
