#include "ir/sort.h"

#include <map>

#include "ir/sort_keys.h"
#include "ir/sort_lanes.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

constexpr int kSteps = 2;  // of the network, that a thread takes at once

class MemorySorter : SortStatements {
 public:
  using SortStatements::SortStatements;

  void run() {
    const int64_t padded = padded_extent(), wanted = what_.dst.extents[axis_];
    const int64_t run = std::min(padded, std::max<int64_t>(round_up(wanted), int64_t{1} << kSteps));
    Tiles keys = take_keys(MemScope::shared);
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

  void sort_runs(const Tiles& keys, int64_t extent, int64_t run);
  void merge(const Tiles& keys, int64_t extent, int64_t block, int steps);
  void pass(const Tiles& keys, const Pass& pass);
  static std::vector<Step> steps_of(const Pass& pass);
  std::pair<Exprs, Exprs> ordered(const Exprs& a, const Exprs& b);
  const std::vector<Tiles>& registers(int64_t extent, int64_t count, int set);

  std::map<std::pair<int64_t, int>, std::vector<Tiles>> registers_;  // by extent along the axis, and set
};

void MemorySorter::sort_runs(const Tiles& keys, int64_t extent, int64_t run) {
  const int first = std::min(kSteps, log2_of(run));
  pass(keys, {extent, int64_t{1} << first, first, Form::run});
  for (int64_t block = int64_t{2} << first; block <= run; block *= 2) {
    const int steps = log2_of(block), at_once = std::min(kSteps, steps);
    pass(keys, {extent, block, at_once, Form::mirrored});
    merge(keys, extent, block, steps - at_once);
  }
}

// The last `steps` steps of a merge.
void MemorySorter::merge(const Tiles& keys, int64_t extent, int64_t block, int steps) {
  while (steps > 0) {
    const int at_once = std::min(kSteps, steps);
    block = int64_t{1} << steps;
    pass(keys, {extent, block, at_once, Form::bitonic});
    steps -= at_once;
  }
}

std::vector<MemorySorter::Step> MemorySorter::steps_of(const Pass& pass) {
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
void MemorySorter::pass(const Tiles& keys, const Pass& pass) {
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
std::pair<Exprs, Exprs> MemorySorter::ordered(const Exprs& a, const Exprs& b) {
  if (!keys_.pair()) return {{e_.binary(ExprOp::min, a[0], b[0])}, {e_.binary(ExprOp::max, a[0], b[0])}};
  const ExprId swap = keys_.swapped(a, b);
  return {{e_.select(swap, b[0], a[0]), e_.select(swap, b[1], a[1])},
          {e_.select(swap, a[0], b[0]), e_.select(swap, a[1], b[1])}};
}

const std::vector<Tiles>& MemorySorter::registers(int64_t extent, int64_t count, int set) {
  std::vector<Tiles>& tiles_of = registers_[{extent, set}];
  while (static_cast<int64_t>(tiles_of.size()) < count)
    tiles_of.push_back(tiles(set == 0 ? "key" : "next_key", MemScope::fragment, extent));
  return tiles_of;
}

std::optional<Diagnostic> check(const Program& p, const Sort& what, const Limits& limits) {
  const Extents &src = what.src.extents, &dst = what.dst.extents;
  const std::string word = what.first_ones ? "topk" : "sort";
  const auto axis = static_cast<size_t>(what.axis);
  const DType type = p.buffer(what.src.buffer).type;
  const std::string from = word + " of " + region_text(p, what.src);
  for (const Region* r : {&what.src, &what.dst, what.index ? &*what.index : &what.dst})
    if (p.buffer(r->buffer).scope == MemScope::global)
      return diagnostic(DiagCode::scope_not_allowed, region_text(p, *r) + ": expected an on-chip buffer",
                        word + " in a fragment and copy from or to global memory");
  if (what.axis < 0 || axis >= src.size())
    return diagnostic(DiagCode::bad_attribute, from + ": there is no axis " + std::to_string(what.axis),
                      "axes count from 0");
  if (is_bool(type) || is_storage_only(type))
    return diagnostic(DiagCode::dtype_mismatch,
                      from + ": " + dtype_name(type) + " is no number that is computed in",
                      is_bool(type) ? "sort u8" : "cast it into a tile of f16 or f32");
  if (p.buffer(what.dst.buffer).type != type)
    return diagnostic(DiagCode::dtype_mismatch,
                      from + ", which is " + dtype_name(type) + ", into " + p.buffer(what.dst.buffer).name +
                          ", which is " + dtype_name(p.buffer(what.dst.buffer).type),
                      "use one type");
  Extents wanted = src;
  if (dst.size() == src.size() && what.first_ones) wanted[axis] = std::min(wanted[axis], dst[axis]);
  if (dst != wanted)
    return diagnostic(DiagCode::shape_mismatch, region_text(p, what.dst) + " does not fit " + from,
                      what.first_ones ? "it has src's extents, along the axis as many as are wanted"
                                      : "it has src's extents; topk gives the first elements alone");
  if (what.index) {
    const Buffer& index = p.buffer(what.index->buffer);
    if (index.type != DType::i32 && index.type != DType::i64)
      return diagnostic(DiagCode::dtype_mismatch,
                        "the places that " + word + " tells are i32 or i64, " + index.name + " is " +
                            dtype_name(index.type),
                        "use a tile of i32");
    if (what.index->extents != dst || what.index->buffer == what.dst.buffer)
      return diagnostic(
          DiagCode::shape_mismatch,
          region_text(p, *what.index) + " does not fit the elements " + region_text(p, what.dst),
          "the places are a tile of their own, of the same extents");
  }
  Extents padded = src;
  padded[axis] = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(2, src[axis]))));
  const auto elements = checked_product(padded);
  if (src[axis] > kMaxSortedExtent || !elements || *elements > limits.tile_elements)
    return diagnostic(DiagCode::bad_shape,
                      from + ": " + std::to_string(src[axis]) + " elements in a row, expected at most " +
                          std::to_string(kMaxSortedExtent),
                      "sort parts, and merge what they give by topk");
  return refuse_beyond_limits(p, {.statements = 1 << 13, .buffers = 128, .nodes = 1 << 16}, limits, from);
}

}  // namespace

std::optional<Diagnostic> add_sort(Program& p, const Sort& what, const SourceLocation& location, Block& block,
                                   const Limits& limits) {
  if (auto error = check(p, what, limits)) return error;
  if (lanes_hold_keys(p, what))
    sort_in_lanes(p, what, location, block);
  else
    MemorySorter(p, what, location, block).run();
  return std::nullopt;
}

}  // namespace tilegen::ir
