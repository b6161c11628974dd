// What the forms of a sort are made of: keys of elements, and the loops that take and give them.
#pragma once

#include <bit>
#include <cmath>

#include "ir/point_loops.h"
#include "ir/sort.h"
#include "ir/unsigned_types.h"

namespace tilegen::ir {

// Elements as unsigned numbers of their order, and back. With places, elements of up to 32 bits are one
// number of that order and the place, wider ones two; without, equal elements cannot be told apart.
class SortKeys {
 public:
  SortKeys(ExprPool& e, DType type, bool descending, bool with_place)
      : e_(e),
        type_(type),
        bits_(dtype_bits(type)),
        order_(unsigned_of(bits_)),
        descending_(descending),
        with_place_(with_place),
        shift_(!with_place  ? 0
               : bits_ > 16 ? 32
                            : 16) {}

  bool pair() const { return bits_ == 64 && with_place_; }
  std::vector<DType> types() const {
    if (pair()) return {DType::u64, DType::u32};
    return {bits_ + shift_ > 32 ? DType::u64 : DType::u32};
  }
  Exprs of(ExprId element, ExprId place) {
    const ExprId order = order_of(element);
    if (pair()) return {order, e_.cast(DType::u32, place)};
    const DType t = types()[0];
    if (!with_place_) return {e_.cast(t, order)};
    return {e_.binary(ExprOp::bit_or, e_.binary(ExprOp::shl, e_.cast(t, order), e_.const_int(shift_, t)),
                      e_.cast(t, place))};
  }
  // Behind all others.
  Exprs padding() {
    Exprs key;
    for (DType t : types()) key.push_back(ones(t));
    return key;
  }
  ExprId element(const Exprs& key) {
    if (pair()) return element_of_order(key[0]);
    const DType t = types()[0];
    if (!with_place_) return element_of_order(e_.cast(order_, key[0]));
    return element_of_order(e_.cast(order_, e_.binary(ExprOp::shr, key[0], e_.const_int(shift_, t))));
  }
  ExprId place(const Exprs& key, DType type) {
    if (pair()) return e_.cast(type, key[1]);
    const DType t = types()[0];
    const ExprId mask = e_.const_int((int64_t{1} << shift_) - 1, t);
    return e_.cast(type, e_.binary(ExprOp::bit_and, key[0], mask));
  }
  // b stands in front of a.
  ExprId swapped(const Exprs& a, const Exprs& b) {
    const ExprId place = e_.logical_and(e_.binary(ExprOp::eq, b[0], a[0]), e_.lt(b[1], a[1]));
    return e_.binary(ExprOp::logical_or, e_.lt(b[0], a[0]), place);
  }

 private:
  ExprId ones(DType t) { return e_.const_int(wrap_to(t, -1), t); }
  ExprId sign() { return e_.const_int(wrap_to(order_, int64_t{1} << (bits_ - 1)), order_); }
  ExprId flipped(ExprId order) { return descending_ ? e_.unary(ExprOp::bit_not, order) : order; }

  ExprId order_of(ExprId x) {
    if (dtype_kind(type_) == DTypeKind::unsigned_int) return flipped(x);
    const ExprId code = e_.bitcast(order_, x), upper = e_.binary(ExprOp::bit_xor, code, sign());
    if (!is_float(type_)) return flipped(upper);
    const ExprId negative = e_.lt(upper, sign());
    const ExprId order = e_.select(negative, e_.unary(ExprOp::bit_not, code), upper);
    return flipped(e_.select(e_.unary(ExprOp::isnan, x), ones(order_), order));
  }
  ExprId element_of_order(ExprId order) {
    order = flipped(order);
    if (dtype_kind(type_) == DTypeKind::unsigned_int) return order;
    const ExprId upper = e_.binary(ExprOp::bit_xor, order, sign());
    if (!is_float(type_)) return e_.bitcast(type_, upper);
    const ExprId code = e_.select(e_.lt(order, sign()), e_.unary(ExprOp::bit_not, order), upper);
    return e_.select(e_.binary(ExprOp::eq, order, ones(order_)), e_.const_float(NAN, type_),
                     e_.bitcast(type_, code));
  }

  ExprPool& e_;
  const DType type_;
  const int bits_;
  const DType order_;
  const bool descending_, with_place_;
  const int64_t shift_;
};

// A sort being made into statements: what its forms share.
class SortStatements {
 public:
  SortStatements(Program& p, const Sort& what, const SourceLocation& location, Block& block)
      : p_(p),
        e_(p.exprs),
        what_(what),
        axis_(static_cast<size_t>(what.axis)),
        loops_(p, location, block),
        keys_(e_, p.buffer(what.src.buffer).type, what.descending, what.index.has_value()) {}

 protected:
  static int64_t round_up(int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); }
  static int log2_of(int64_t n) { return std::countr_zero(static_cast<uint64_t>(n)); }
  int64_t extent() const { return what_.src.extents[axis_]; }
  int64_t padded_extent() const { return std::max<int64_t>(2, round_up(extent())); }
  Extents with_axis(int64_t extent) const {
    Extents extents = what_.src.extents;
    extents[axis_] = extent;
    return extents;
  }
  Exprs at(Exprs point, ExprId index) const {
    point[axis_] = index;
    return point;
  }
  ExprId number(int64_t v) { return e_.const_int(v); }
  Tiles tiles(const std::string& name, MemScope scope, int64_t extent) {
    Tiles made;
    for (DType t : keys_.types()) made.push_back(loops_.tile(name, scope, t, with_axis(extent)));
    return made;
  }
  // Of src's elements, padded.
  Tiles take_keys(MemScope scope);
  // Of dst's elements, which are the first.
  void put_results(const Tiles& keys);

  Program& p_;
  ExprPool& e_;
  const Sort& what_;
  const size_t axis_;
  PointLoops loops_;
  SortKeys keys_;
};

}  // namespace tilegen::ir
