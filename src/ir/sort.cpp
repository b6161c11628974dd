#include "ir/sort.h"

#include <bit>
#include <cmath>
#include <map>

#include "ir/point_loops.h"
#include "ir/unsigned_types.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

constexpr int kSteps = 2;  // of the network, that a thread takes at once

// Elements as unsigned numbers of their order, and back. Keys of up to 32 bits are one number of that order
// and the place, wider ones two.
class Keys {
 public:
  Keys(ExprPool& e, DType type, bool descending)
      : e_(e),
        type_(type),
        bits_(dtype_bits(type)),
        order_(unsigned_of(bits_)),
        descending_(descending),
        shift_(bits_ > 16 ? 32 : 16) {}

  bool pair() const { return bits_ == 64; }
  std::vector<DType> types() const {
    if (pair()) return {DType::u64, DType::u32};
    return {shift_ == 32 ? DType::u64 : DType::u32};
  }
  Exprs of(ExprId element, ExprId place) {
    const ExprId order = order_of(element);
    if (pair()) return {order, e_.cast(DType::u32, place)};
    const DType t = types()[0];
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
  const bool descending_;
  const int64_t shift_;
};

class Sorter {
 public:
  Sorter(Program& p, const Sort& what, const SourceLocation& location, Block& block)
      : p_(p),
        e_(p.exprs),
        what_(what),
        axis_(static_cast<size_t>(what.axis)),
        word_(what.first_ones ? "topk" : "sort"),
        loops_(p, location, block),
        keys_(e_, p.buffer(what.src.buffer).type, what.descending) {}

  std::optional<Diagnostic> check(const Limits& limits) const;

  void run() {
    const int64_t padded = padded_extent(), wanted = what_.dst.extents[axis_];
    const int64_t run = std::min(padded, std::max<int64_t>(round_up(wanted), int64_t{1} << kSteps));
    Tiles keys = take_keys(padded);
    sort_runs(keys, padded, run);
    for (int64_t extent = padded; extent > run; extent /= 2) {
      const Tiles lower = tiles("keys", MemScope::shared, extent / 2);
      const int g = std::min(kSteps, log2_of(run));
      pass(lower, {extent / 2, run, g, Form::halves, &keys});
      merge(lower, extent / 2, run, log2_of(run) - g);
      keys = lower;
    }
    put_results(keys);
  }

 private:
  // halves: of two sorted runs the lower elements, which are bitonic; mirrored: two sorted runs, the second
  // from its end; bitonic: what is left of a merge; run: elements in any order.
  enum class Form : uint8_t { run, mirrored, bitonic, halves };
  struct Pass {
    int64_t extent = 0;  // elements along the axis
    int64_t block = 0;   // that the steps are within
    int steps = 0;
    Form form = Form::run;
    const Tiles* from = nullptr;  // halves
  };
  using Step = std::vector<std::pair<int64_t, int64_t>>;  // elements that are put in order

  static int64_t round_up(int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); }
  static int log2_of(int64_t n) { return std::countr_zero(static_cast<uint64_t>(n)); }
  int64_t padded_extent() const { return std::max<int64_t>(2, round_up(what_.src.extents[axis_])); }
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

  Tiles take_keys(int64_t padded);
  void sort_runs(const Tiles& keys, int64_t extent, int64_t run);
  void merge(const Tiles& keys, int64_t extent, int64_t block, int steps);
  void pass(const Tiles& keys, const Pass& pass);
  static std::vector<Step> steps_of(const Pass& pass);
  std::pair<Exprs, Exprs> ordered(const Exprs& a, const Exprs& b);
  const std::vector<Tiles>& registers(int64_t extent, int64_t count, int set);
  void put_results(const Tiles& keys);

  Program& p_;
  ExprPool& e_;
  const Sort& what_;
  const size_t axis_;
  const std::string word_;
  PointLoops loops_;
  Keys keys_;
  std::map<std::pair<int64_t, int>, std::vector<Tiles>> registers_;  // by extent along the axis, and set
};

Tiles Sorter::take_keys(int64_t padded) {
  const int64_t extent = what_.src.extents[axis_];
  const Tiles keys = tiles("keys", MemScope::shared, padded);
  const Exprs point = loops_.begin(what_.src.extents);
  loops_.store(keys, point,
               keys_.of(loops_.load(what_.src.buffer, element_of(e_, what_.src, point)), point[axis_]));
  if (padded > extent) {
    const Exprs behind = loops_.begin(with_axis(padded - extent));
    loops_.store(keys, at(behind, e_.add(behind[axis_], extent)), keys_.padding());
  }
  return keys;
}

void Sorter::sort_runs(const Tiles& keys, int64_t extent, int64_t run) {
  const int first = std::min(kSteps, log2_of(run));
  pass(keys, {extent, int64_t{1} << first, first, Form::run});
  for (int64_t block = int64_t{2} << first; block <= run; block *= 2) {
    const int steps = log2_of(block), at_once = std::min(kSteps, steps);
    pass(keys, {extent, block, at_once, Form::mirrored});
    merge(keys, extent, block, steps - at_once);
  }
}

// The last `steps` steps of a merge.
void Sorter::merge(const Tiles& keys, int64_t extent, int64_t block, int steps) {
  while (steps > 0) {
    const int at_once = std::min(kSteps, steps);
    block = int64_t{1} << steps;
    pass(keys, {extent, block, at_once, Form::bitonic});
    steps -= at_once;
  }
}

std::vector<Sorter::Step> Sorter::steps_of(const Pass& pass) {
  const int64_t count = int64_t{1} << pass.steps;
  std::vector<Step> steps;
  const auto mirror = [&](int64_t size) {
    Step& step = steps.emplace_back();
    for (int64_t m = 0; m < count; ++m)
      if (m % size < size / 2) step.push_back({m, m / size * size + size - 1 - m % size});
  };
  const auto halve = [&](int64_t distance) {
    for (; distance >= 1; distance /= 2) {
      Step& step = steps.emplace_back();
      for (int64_t m = 0; m < count; ++m)
        if (m / distance % 2 == 0) step.push_back({m, m + distance});
    }
  };
  if (pass.form == Form::run) {
    for (int64_t size = 2; size <= count; size *= 2) mirror(size), halve(size / 4);
  } else if (pass.form == Form::mirrored) {
    mirror(count), halve(count / 4);
  } else {
    halve(count / 2);
  }
  return steps;
}

// Steps whose elements, of each block that many, an iteration has all of. They change between two sets of
// registers; the first step reads keys, the last one writes them.
void Sorter::pass(const Tiles& keys, const Pass& pass) {
  const int64_t count = int64_t{1} << pass.steps, apart = pass.block / count, extent = pass.extent / count;
  const std::vector<Tiles> sets[] = {registers(extent, count, 0), registers(extent, count, 1)};
  const Exprs point = loops_.begin(with_axis(extent));
  const ExprId p = point[axis_];
  const bool one_block = pass.block == pass.extent;
  const ExprId block = one_block ? number(0) : apart == 1 ? p : e_.floordiv(p, number(apart));
  const ExprId within = one_block ? p : apart == 1 ? number(0) : e_.floormod(p, number(apart));
  const ExprId begin = e_.mul(block, pass.block);
  const auto place = [&](int64_t m) {
    if (pass.form == Form::mirrored && m >= count / 2)
      return at(point, e_.sub(e_.add(begin, pass.block - 1 - (count - 1 - m) * apart), within));
    return at(point, e_.add(e_.add(begin, m * apart), within));
  };
  std::vector<Exprs> values;
  for (int64_t m = 0; m < count; ++m) {
    if (pass.form != Form::halves) {
      values.push_back(loops_.load(keys, place(m)));
      continue;
    }
    const ExprId pair = e_.mul(block, 2 * pass.block), in = e_.add(within, m * apart);
    const Exprs first = loops_.load(*pass.from, at(point, e_.add(pair, in)));
    const Exprs second = loops_.load(*pass.from, at(point, e_.sub(e_.add(pair, 2 * pass.block - 1), in)));
    values.push_back(ordered(first, second).first);
  }
  const auto keep = [&](const std::vector<Tiles>& set) {
    for (size_t m = 0; m < values.size(); ++m) loops_.store(set[m], point, values[m]);
    for (size_t m = 0; m < values.size(); ++m) values[m] = loops_.load(set[m], point);
  };
  const std::vector<Step> steps = steps_of(pass);
  if (steps.size() == 1 || (pass.form == Form::halves && keys_.pair())) keep(sets[1]);
  for (size_t s = 0; s < steps.size(); ++s) {
    for (const auto& [low, high] : steps[s]) {
      auto [first, second] = ordered(values[static_cast<size_t>(low)], values[static_cast<size_t>(high)]);
      values[static_cast<size_t>(low)] = std::move(first);
      values[static_cast<size_t>(high)] = std::move(second);
    }
    if (s + 1 < steps.size()) keep(sets[s % 2]);
  }
  for (int64_t m = 0; m < count; ++m) loops_.store(keys, place(m), values[static_cast<size_t>(m)]);
}

// The one that stands in front, and the other one.
std::pair<Exprs, Exprs> Sorter::ordered(const Exprs& a, const Exprs& b) {
  if (!keys_.pair()) return {{e_.binary(ExprOp::min, a[0], b[0])}, {e_.binary(ExprOp::max, a[0], b[0])}};
  const ExprId swap = keys_.swapped(a, b);
  return {{e_.select(swap, b[0], a[0]), e_.select(swap, b[1], a[1])},
          {e_.select(swap, a[0], b[0]), e_.select(swap, a[1], b[1])}};
}

const std::vector<Tiles>& Sorter::registers(int64_t extent, int64_t count, int set) {
  std::vector<Tiles>& tiles_of = registers_[{extent, set}];
  while (static_cast<int64_t>(tiles_of.size()) < count)
    tiles_of.push_back(tiles(set == 0 ? "key" : "next_key", MemScope::fragment, extent));
  return tiles_of;
}

void Sorter::put_results(const Tiles& keys) {
  const Exprs point = loops_.begin(what_.dst.extents);
  const Exprs key = loops_.load(keys, point);
  loops_.store(what_.dst.buffer, element_of(e_, what_.dst, point), keys_.element(key));
  if (what_.index)
    loops_.store(what_.index->buffer, element_of(e_, *what_.index, point),
                 keys_.place(key, p_.buffer(what_.index->buffer).type));
}

std::optional<Diagnostic> Sorter::check(const Limits& limits) const {
  const Extents &src = what_.src.extents, &dst = what_.dst.extents;
  const DType type = p_.buffer(what_.src.buffer).type;
  const std::string from = word_ + " of " + region_text(p_, what_.src);
  for (const Region* r : {&what_.src, &what_.dst, what_.index ? &*what_.index : &what_.dst})
    if (p_.buffer(r->buffer).scope == MemScope::global)
      return diagnostic(DiagCode::scope_not_allowed, region_text(p_, *r) + ": expected an on-chip buffer",
                        word_ + " in a fragment and copy from or to global memory");
  if (what_.axis < 0 || axis_ >= src.size())
    return diagnostic(DiagCode::bad_attribute, from + ": there is no axis " + std::to_string(what_.axis),
                      "axes count from 0");
  if (is_bool(type) || is_storage_only(type))
    return diagnostic(DiagCode::dtype_mismatch,
                      from + ": " + dtype_name(type) + " is no number that is computed in",
                      is_bool(type) ? "sort u8" : "cast it into a tile of f16 or f32");
  if (p_.buffer(what_.dst.buffer).type != type)
    return diagnostic(DiagCode::dtype_mismatch,
                      from + ", which is " + dtype_name(type) + ", into " + p_.buffer(what_.dst.buffer).name +
                          ", which is " + dtype_name(p_.buffer(what_.dst.buffer).type),
                      "use one type");
  Extents wanted = src;
  if (dst.size() == src.size() && what_.first_ones) wanted[axis_] = std::min(wanted[axis_], dst[axis_]);
  if (dst != wanted)
    return diagnostic(DiagCode::shape_mismatch, region_text(p_, what_.dst) + " does not fit " + from,
                      what_.first_ones ? "it has src's extents, along the axis as many as are wanted"
                                       : "it has src's extents; topk gives the first elements alone");
  if (what_.index) {
    const Buffer& index = p_.buffer(what_.index->buffer);
    if (index.type != DType::i32 && index.type != DType::i64)
      return diagnostic(DiagCode::dtype_mismatch,
                        "the places that " + word_ + " tells are i32 or i64, " + index.name + " is " +
                            dtype_name(index.type),
                        "use a tile of i32");
    if (what_.index->extents != dst || what_.index->buffer == what_.dst.buffer)
      return diagnostic(
          DiagCode::shape_mismatch,
          region_text(p_, *what_.index) + " does not fit the elements " + region_text(p_, what_.dst),
          "the places are a tile of their own, of the same extents");
  }
  const auto elements = checked_product(with_axis(padded_extent()));
  if (src[axis_] > kMaxSortedExtent || !elements || *elements > limits.tile_elements)
    return diagnostic(DiagCode::bad_shape,
                      from + ": " + std::to_string(src[axis_]) + " elements in a row, expected at most " +
                          std::to_string(kMaxSortedExtent),
                      "sort parts, and merge what they give by topk");
  return refuse_beyond_limits(p_, {.statements = 1 << 13, .buffers = 128, .nodes = 1 << 16}, limits, from);
}

}  // namespace

std::optional<Diagnostic> add_sort(Program& p, const Sort& what, const SourceLocation& location, Block& block,
                                   const Limits& limits) {
  Sorter sorter(p, what, location, block);
  if (auto error = sorter.check(limits)) return error;
  sorter.run();
  return std::nullopt;
}

}  // namespace tilegen::ir
