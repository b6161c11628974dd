#include "ir/carried_scan.h"

#include <utility>

#include "ir/op_kinds.h"
#include "ir/point_loops.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

constexpr MadeSize kMade{16, static_cast<int64_t>(kMaxCombinedValues), 512};

class Carrier {
 public:
  Carrier(Program& p, const CarriedScan& what, const SourceLocation& location, Block& block)
      : p_(p),
        e_(p.exprs),
        what_(what),
        scan_(what.scan),
        axis_(static_cast<size_t>(scan_.axis)),
        location_(location),
        block_(block),
        loops_(p, location, block) {}

  std::optional<Diagnostic> check(const Limits& limits) const {
    const Region& src = scan_.src[0];
    if (scan_.axis < 0 || axis_ >= src.extents.size())
      return diagnostic(
          DiagCode::bad_attribute,
          "axis " + std::to_string(scan_.axis) + " of scan is outside src " + region_text(p_, src),
          "axes count from 0");
    if (what_.carry.size() != scan_.src.size())
      return diagnostic(DiagCode::rank_mismatch,
                        "scan of " + std::to_string(scan_.src.size()) + " values carries " +
                            std::to_string(what_.carry.size()),
                        "name a tile for each value: scan x, y -> u, v by f carry c, d");
    if (scan_.dst.size() == scan_.src.size())  // else the scan says so
      for (size_t i = 0; i < what_.carry.size(); ++i) {
        if (auto wrong = check_shapes(scan_.dst[i], what_.carry[i])) return wrong;
        if (auto wrong = check_types(scan_.dst[i], what_.carry[i])) return wrong;
        if (auto wrong = check_tiles(what_.carry[i])) return wrong;
      }
    return refuse_beyond_limits(p_, kMade, limits, "scan");
  }

  std::optional<Diagnostic> run(const Limits& limits) {
    Extents end = scan_.src[0].extents;
    end[axis_] = 1;
    Tiles last;
    if (scan_.exclusive) last = keep_last(end);
    if (what_.op)
      scan_onto_carried();
    else if (auto wrong = add_combination(p_, scan_, location_, block_, limits))
      return wrong;
    const Exprs point = loops_.begin(end);
    const Exprs up_to = values(scan_.dst, at_end(point));
    const Exprs total = scan_.exclusive ? joined(up_to, loops_.load(last, point)) : up_to;
    for (size_t i = 0; i < total.size(); ++i)
      loops_.store(what_.carry[i].buffer, carried(i, point), total[i]);
    return std::nullopt;
  }

 private:
  std::optional<Diagnostic> check_shapes(const Region& dst, const Region& carry) const {
    const Region& src = scan_.src[0];
    if (dst.extents != src.extents)
      return diagnostic(DiagCode::shape_mismatch,
                        region_text(p_, dst) + " does not fit src " + region_text(p_, src),
                        "the results of scan have src's extents");
    if (fits_without_axis(src.extents, carry.extents, scan_.axis)) return std::nullopt;
    return diagnostic(DiagCode::shape_mismatch,
                      region_text(p_, carry) + " does not fit src " + region_text(p_, src) +
                          " without axis " + std::to_string(scan_.axis),
                      "what is carried has src's extents without the axis, or with extent 1 there");
  }

  std::optional<Diagnostic> check_types(const Region& dst, const Region& carry) const {
    const DType type = p_.buffer(dst.buffer).type, found = p_.buffer(carry.buffer).type;
    if (is_bool(type) || is_storage_only(type) || is_packed(type))
      return diagnostic(DiagCode::dtype_mismatch,
                        "dst " + region_text(p_, dst) + " is " + dtype_name(type) + ", which is not scanned",
                        "scan into a tile of numbers that are computed in, as f32 or i32");
    if (type == found) return std::nullopt;
    return diagnostic(DiagCode::dtype_mismatch,
                      "what scan carries, " + region_text(p_, carry) + ", is " + dtype_name(found) +
                          ", its result " + region_text(p_, dst) + " is " + dtype_name(type),
                      std::string("carry a tile of ") + dtype_name(type));
  }

  std::optional<Diagnostic> check_tiles(const Region& carry) const {
    if (p_.buffer(carry.buffer).scope == MemScope::global)
      return diagnostic(DiagCode::scope_not_allowed,
                        "what scan carries, " + region_text(p_, carry) + ": expected an on-chip buffer",
                        "carry a fragment and copy it to global memory");
    for (const auto* regions : {&scan_.src, &scan_.dst})
      for (const Region& r : *regions)
        if (r.buffer == carry.buffer)
          return diagnostic(DiagCode::parallel_race,
                            "scan carries " + region_text(p_, carry) + ", of the tile that it " +
                                (regions == &scan_.src ? "reads" : "writes"),
                            "carry a tile of its own");
    for (const Region& other : what_.carry)
      if (&other != &carry && other.buffer == carry.buffer)
        return diagnostic(DiagCode::parallel_race,
                          "scan carries two values in '" + p_.buffer(carry.buffer).name + "'",
                          "carry a tile for each value");
    return std::nullopt;
  }

  Tiles keep_last(const Extents& end) {
    Tiles kept;
    for (const Region& dst : scan_.dst)
      kept.push_back(loops_.tile(p_.buffer(dst.buffer).name + "_last", MemScope::fragment,
                                 p_.buffer(dst.buffer).type, end));
    const Exprs point = loops_.begin(end);
    Exprs elements = values(scan_.src, at_end(point));
    for (size_t i = 0; i < kept.size(); ++i) elements[i] = e_.cast(p_.buffer(kept[i]).type, elements[i]);
    loops_.store(kept, point, elements);
    return kept;
  }

  void scan_onto_carried() {
    TileOp op = *what_.op;
    op.operands = {scan_.src[0], scan_.dst[0]};
    loops_.append(std::move(op));
    const Exprs point = loops_.begin(scan_.src[0].extents);
    const ExprId before = loops_.load(what_.carry[0].buffer, carried(0, point));
    const ExprId sum = joined({before}, values(scan_.dst, point))[0];
    loops_.store(scan_.dst[0].buffer, element_of(e_, scan_.dst[0], point), sum);
  }

  // What is in front of an element, or behind it in reverse, and the element.
  Exprs joined(const Exprs& before, const Exprs& own) {
    if (!what_.op)
      return scan_.reverse ? combined(e_, scan_.by, own, before) : combined(e_, scan_.by, before, own);
    static constexpr ExprOp kOps[] = {ExprOp::add, ExprOp::max, ExprOp::min, ExprOp::mul};
    return {e_.binary(kOps[what_.op->attrs[scan_attr::kind]], before[0], own[0])};
  }

  Exprs values(const std::vector<Region>& regions, const Exprs& point) {
    Exprs all;
    for (const Region& r : regions) all.push_back(loops_.load(r.buffer, element_of(e_, r, point)));
    return all;
  }
  // Where the scan ends.
  Exprs at_end(Exprs point) {
    if (!scan_.reverse) point[axis_] = e_.const_int(scan_.src[0].extents[axis_] - 1);
    return point;
  }
  Exprs carried(size_t i, const Exprs& point) {
    const Region& r = what_.carry[i];
    return element_of(e_, r, without_axis(e_, point, axis_, r.extents.size()));
  }

  Program& p_;
  ExprPool& e_;
  const CarriedScan& what_;
  const Combination& scan_;
  const size_t axis_;
  const SourceLocation& location_;
  Block& block_;
  PointLoops loops_;
};

}  // namespace

CarriedScan carried_scan(const Region& src, const Region& dst, const Region& carry, TileOp op) {
  CarriedScan what;
  what.scan.src = {src};
  what.scan.dst = {dst};
  what.scan.scan = true;
  what.scan.axis = op.attrs[scan_attr::axis];
  what.scan.reverse = op.flag(scan_attr::reverse);
  what.scan.exclusive = op.flag(scan_attr::exclusive);
  what.carry = {carry};
  what.op = std::move(op);
  return what;
}

std::optional<Diagnostic> add_carried_scan(Program& p, CarriedScan what, const SourceLocation& location,
                                           Block& block, const Limits& limits) {
  if (!what.op) what.scan.carry = what.carry;
  Carrier carrier(p, what, location, block);
  if (auto error = carrier.check(limits)) return error;
  return carrier.run(limits);
}

}  // namespace tilegen::ir
