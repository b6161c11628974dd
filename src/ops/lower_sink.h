// What an op's lowering is written against; implemented by lower/.
#pragma once

#include <functional>
#include <span>

#include "ir/expr.h"
#include "ops/layout_rule.h"

namespace tilegen::ops {

class LowerSink {
 public:
  virtual ~LowerSink() = default;
  // Value to store for one point of the op's iteration box, as an expression of the thread program.
  using PointValue = std::function<ir::ExprId(std::span<const ir::ExprId> point)>;

  virtual ir::ExprPool& exprs() = 0;
  virtual ir::DType type(int operand) const = 0;
  // Element of operand `operand` at a point of the iteration box; out-of-tensor reads give 0.
  virtual ir::ExprId load(int operand, std::span<const ir::ExprId> point) = 0;
  virtual ir::ExprId value() = 0;  // the op's scalar expression
  // operand[point] = value(point) for every point, under the op's planned iteration layout.
  virtual void for_each_point(int operand, const PointValue& value) = 0;
  // The same as atomic operations on what is there.
  virtual void update_each_point(int operand, ir::AtomicKind kind, const PointValue& value) = 0;
  // dst = kind over `axis` of src.
  virtual void reduce(int src, int dst, ir::ReduceKind kind, int axis, bool accumulate) = 0;
  // dst = scan of src, an element of the iterations for one of each; the regions may be the same.
  virtual void scan(int src, int dst, const Scan& scan) = 0;
  // c = a * b (+ c) with the planned atom.
  virtual void contract(int a, int b, int c, bool clear) = 0;
};

}  // namespace tilegen::ops
