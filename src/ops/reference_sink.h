// What an op's reference meaning is written against; implemented by interp/.
#pragma once

#include <cstdint>
#include <span>

#include "ir/expr.h"
#include "ir/program.h"

namespace tilegen::ops {

class ReferenceSink {
 public:
  virtual ~ReferenceSink() = default;
  // Element at region-relative index of operand `operand`; out-of-tensor reads give 0, out-of-tensor writes
  // are dropped. Values are in the buffer's dtype.
  virtual ir::ScalarValue read(int operand, std::span<const int64_t> index) = 0;
  virtual void write(int operand, std::span<const int64_t> index, ir::ScalarValue value) = 0;
  virtual std::span<const int64_t> extents(int operand) const = 0;
  virtual ir::DType type(int operand) const = 0;
  virtual ir::ScalarValue value() = 0;  // the op's scalar expression, evaluated
  virtual bool stopped() const = 0;     // nothing more is wanted of the op: it failed, or the caller gave up
};

}  // namespace tilegen::ops
