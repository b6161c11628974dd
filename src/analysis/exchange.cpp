#include "analysis/exchange.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <tuple>

#include "ir/store_parts.h"
#include "ops/op.h"

namespace tilegen::analysis {

using layout::Digit;
using layout::Fragment;
using layout::kReplica;
using layout::kThread;

namespace {

constexpr int kShuffleBytes = 4;

bool power_of_two(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

}  // namespace

std::vector<Digit> thread_digits(const Fragment& f) {
  std::vector<Digit> list;
  for (const Digit& d : f.map().digits())
    if (d.output == kThread && d.stride > 0) list.push_back(d);
  std::sort(list.begin(), list.end(), [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
  return list;
}

// Flipping a bit of the thread changes this digit alone when nothing above carries into it.
int64_t reached_by_lanes(const std::vector<Digit>& digits, const Digit& d, ir::DType type,
                         const target::Target& t) {
  bool separate = ir::dtype_bytes(type) <= kShuffleBytes && power_of_two(d.stride) && power_of_two(d.extent);
  for (const Digit& other : digits)
    if (other.stride > d.stride && other.stride % (d.stride * d.extent) != 0) separate = false;
  int64_t reached = 1;
  while (separate && reached < d.extent && d.stride * reached < t.warp) reached *= 2;
  return reached;
}

namespace {

// One bit of a thread number: the dimension and weight it stands for.
using ThreadBit = std::tuple<int64_t, int, int64_t>;  // stride, dim, weight

std::optional<std::set<ThreadBit>> thread_bits(const Fragment& f) {
  std::set<ThreadBit> bits;
  for (const Digit& d : thread_digits(f)) {
    if (!power_of_two(d.stride) || !power_of_two(d.extent)) return std::nullopt;
    for (int64_t b = 1; b < d.extent; b *= 2) bits.insert({d.stride * b, d.dim, d.weight * b});
  }
  return bits;
}

std::vector<int> identity_map(const Fragment& f) {
  std::vector<int> map(static_cast<size_t>(f.rank()));
  std::iota(map.begin(), map.end(), 0);
  return map;
}

}  // namespace

// Lanes: every bit of `from`'s threads above the lanes stands for what it stands for in `to` (or for a copy),
// so the element's holder that differs from the asking thread in lane bits only is of its warp.
layout::ConversionKind conversion_kind(const Fragment& from, const Fragment& to, const target::Target& t,
                                       ir::DType type) {
  using layout::ConversionKind;
  if (from.covers(to, identity_map(from)))
    return layout::same_registers(from, to) ? ConversionKind::none : ConversionKind::register_permute;
  if (ir::dtype_bytes(type) > kShuffleBytes) return ConversionKind::shared_bounce;
  const auto have = thread_bits(from), want = thread_bits(to);
  if (!have || !want) return ConversionKind::shared_bounce;
  std::set<int64_t> held_by;
  for (const ThreadBit& bit : *have) {
    held_by.insert(std::get<0>(bit));
    if (std::get<0>(bit) >= t.warp && std::get<1>(bit) != kReplica && !want->count(bit))
      return ConversionKind::shared_bounce;
  }
  for (const ThreadBit& bit : *want)  // a warp that holds nothing cannot ask its own lanes
    if (std::get<0>(bit) >= t.warp && !held_by.count(std::get<0>(bit))) return ConversionKind::shared_bounce;
  return ConversionKind::shuffle;
}

bool may_convert(layout::ConversionKind kind, const Fragment& from, const Fragment& to,
                 const target::Target& t, ir::DType type) {
  if (kind == layout::ConversionKind::shared_bounce) return true;
  const layout::ConversionKind least = conversion_kind(from, to, t, type);
  return kind == least ||
         (kind == layout::ConversionKind::register_permute && least == layout::ConversionKind::none);
}

int64_t conversion_cycles(layout::ConversionKind kind, const Fragment& to, ir::DType type) {
  const int64_t words = (to.registers() * ir::dtype_bytes(type) + 3) / 4;
  switch (kind) {
    case layout::ConversionKind::none:
      return 0;
    case layout::ConversionKind::register_permute:
      return words;
    case layout::ConversionKind::shuffle:
      return 4 * words;
    case layout::ConversionKind::shared_bounce:
      return 8 * words + 60;
  }
  return 0;
}

// Rows an odd number of vectors apart: neighbouring rows, as many as vectors go into a row of banks, begin in
// other banks.
layout::Layout exchange_layout(std::span<const int64_t> shape, ir::DType type, const target::Target& t) {
  const int64_t bytes = ir::dtype_bytes(type);
  if (shape.size() < 2 || shape.back() * bytes % (2 * t.vector_bytes) != 0)
    return layout::Layout::row_major(shape);
  return layout::Layout::padded_row_major(shape, t.vector_bytes / bytes);
}

std::optional<Fragment> result_fragment(const ir::Program& p, const KernelOp& op, const Fragment& iteration) {
  const auto& tile_op = *p.as<ir::TileOp>(op.stmt);
  const ir::Region& dst = tile_op.operands[1];
  const std::vector<int64_t> shape = p.tile_shape(dst.buffer);
  if (shape != dst.extents) return std::nullopt;
  const ops::Reduction reduction = *ops::layout_rule(tile_op).reduction;
  const Fragment made = iteration.reduce(reduction.axis, true);
  std::vector<Digit> digits;
  for (Digit d : made.map().digits()) {
    if (d.dim != kReplica) d.dim = reduction.dst_dims[static_cast<size_t>(d.dim)];
    if (d.dim < 0 && d.dim != kReplica) return std::nullopt;
    digits.push_back(d);
  }
  auto map = layout::Layout::make(shape, std::move(digits), 2);
  if (!map) return std::nullopt;
  auto f = Fragment::make(*map, iteration.threads());
  return f ? std::optional<Fragment>(*f) : std::nullopt;
}

ReductionExchange reduction_exchange(const ir::Program& p, const KernelOp& op, const Fragment& iteration,
                                     const plan::ValuePlan& dst, const target::Target& t) {
  const auto& tile_op = *p.as<ir::TileOp>(op.stmt);
  const int axis = ops::layout_rule(tile_op).reduction->axis;
  ReductionExchange x;
  for (size_t d = 0; d < iteration.shape().size(); ++d)
    if (static_cast<int>(d) != axis) x.results *= iteration.shape()[d];

  const std::vector<Digit> digits = thread_digits(iteration);
  for (const Digit& d : digits) {
    if (d.dim != axis) continue;
    const int64_t reached = reached_by_lanes(digits, d, p.buffer(tile_op.operands[1].buffer).type, t);
    for (int64_t bit = 1; bit < reached; bit *= 2) x.butterflies.push_back(d.stride * bit);
    x.partials.push_back({d, reached});
    x.parts *= d.extent / reached;
  }
  if (x.parts > 1) x.through_scratch = true;
  if (dst.fragment && dst.fragment->threads() > 1 && !x.through_scratch) {
    const auto made = result_fragment(p, op, iteration);
    const bool direct = made ? made->covers(*dst.fragment, identity_map(*made))
                             : iteration.reduce(axis, true).replicas() == iteration.threads();
    x.through_scratch = !direct;
  }
  return x;
}

namespace {

// A loop that writes the buffer under conditions only leaves some elements as they were.
bool may_keep_elements(const ir::Program& p, const KernelOp& op, ir::BufferId buffer) {
  const auto* loop = p.as<ir::Loop>(op.stmt);
  if (!loop) return !p.as<ir::TileOp>(op.stmt);
  return std::none_of(loop->body.begin(), loop->body.end(), [&](ir::StmtId s) {
    const auto* store = p.as<ir::Store>(s);
    return store && ir::writes(*store, buffer);
  });
}

}  // namespace

std::vector<OpConversion> conversions_of(const ir::Program& p, const KernelOps& ops, const KernelOp& op,
                                         ValuePlans values,
                                         const std::vector<plan::ConversionPlan>& conversions) {
  std::vector<OpConversion> list;
  for (const plan::ConversionPlan& c : conversions) {
    const bool consumes = c.consumer == op.path, produces = c.producer == op.path;
    if (!consumes && !produces) continue;
    for (ValueId v : values.ids()) {
      if (values[v].value != c.value || !values[v].fragment) continue;
      const bool reads = consumes && values[v].fragment->equivalent(c.from);
      const bool writes = !reads && produces && values[v].fragment->equivalent(c.to);
      if (!reads && !writes) continue;
      const Fragment& form = reads ? c.to : c.from;
      auto same = std::find_if(list.begin(), list.end(), [&](const OpConversion& o) {
        return o.value == v && o.form.equivalent(form);
      });
      if (same == list.end()) same = list.insert(list.end(), {v, form});
      (reads ? same->before : same->after) = true;
      (reads ? same->kind_before : same->kind_after) = c.kind;
    }
  }
  for (OpConversion& c : list)
    for (const OpAccess& a : op.accesses) {
      if (a.value != c.value) continue;
      // What it writes in registers of its own goes back, also where every thread has what it held.
      c.after = c.after || (c.before && a.write);
      c.before = c.before || (c.after && (a.read || may_keep_elements(p, op, a.buffer)));
    }
  (void)ops;
  return list;
}

layout::ConversionKind planned_kind(layout::ConversionKind planned, const Fragment& from, const Fragment& to,
                                    const target::Target& t, ir::DType type) {
  if (planned != layout::ConversionKind::none) return planned;
  const layout::ConversionKind least = conversion_kind(from, to, t, type);
  return least == layout::ConversionKind::none ? layout::ConversionKind::register_permute : least;
}

plan::ValuePlan copy_in_memory(const plan::ValuePlan& held, ir::DType type, const target::Target& t) {
  plan::ValuePlan copy = held;
  copy.memory = exchange_layout(held.fragment->shape(), type, t);
  copy.fragment.reset();
  return copy;
}

}  // namespace tilegen::analysis
