#include "ir/arg_reduction.h"

#include "ir/op_kinds.h"
#include "ir/point_loops.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

class ArgReducer {
 public:
  ArgReducer(Program& p, const ArgReduction& what, const SourceLocation& location, Block& block)
      : p_(p), what_(what), loops_(p, location, block) {}

  std::optional<Diagnostic> check() const {
    const std::string word = what_.largest ? "argmax" : "argmin";
    const auto rank = static_cast<int64_t>(what_.src.extents.size());
    if (what_.axis < 0 || what_.axis >= rank)
      return diagnostic(DiagCode::bad_attribute,
                        "axis " + std::to_string(what_.axis) + " of " + word + " is outside src " +
                            region_text(p_, what_.src),
                        "axes count from 0");
    for (const Region* r : {&what_.value, &what_.index})
      if (!fits_without_axis(what_.src.extents, r->extents, what_.axis))
        return diagnostic(
            DiagCode::shape_mismatch,
            region_text(p_, *r) + " does not fit src " + region_text(p_, what_.src) + " without axis " +
                std::to_string(what_.axis),
            "the results of " + word + " have src's extents without the axis, or with extent 1 there");
    for (const Region* r : {&what_.src, &what_.value})
      if (const DType type = p_.buffer(r->buffer).type; is_storage_only(type))
        return diagnostic(DiagCode::dtype_mismatch,
                          word + " of " + p_.buffer(r->buffer).name + ", which is " + dtype_name(type) +
                              ": no number that is computed in",
                          "cast it into a tile of f16 or f32");
    const DType index = p_.buffer(what_.index.buffer).type;
    if (index != DType::i32 && index != DType::i64)
      return diagnostic(DiagCode::dtype_mismatch,
                        "the place that " + word + " tells is i32 or i64, " +
                            p_.buffer(what_.index.buffer).name + " is " + dtype_name(index),
                        "use a tile of i32");
    return std::nullopt;
  }

  void run() {
    reduce(what_.src, what_.value, what_.largest ? ReduceKind::max : ReduceKind::min);
    Region places = find_places();
    reduce(places, what_.index, ReduceKind::min);
  }

 private:
  void reduce(const Region& from, const Region& to, ReduceKind kind) {
    TileOp op;
    op.kind = OpKind::reduce;
    op.operands = {from, to};
    op.attrs[reduce_attr::kind] = static_cast<int64_t>(kind);
    op.attrs[reduce_attr::axis] = what_.axis;
    loops_.append(std::move(op));
  }

  // For each element the place where it stands, if it is the one that was found, else beyond all of them.
  Region find_places() {
    ExprPool& e = p_.exprs;
    const DType type = p_.buffer(what_.index.buffer).type;
    const auto axis = static_cast<size_t>(what_.axis);
    const Extents& extents = what_.src.extents;
    const BufferId tile = loops_.tile("place", MemScope::fragment, type, extents);
    const Exprs point = loops_.begin(extents);
    const Exprs found = without_axis(e, point, axis, what_.value.extents.size());
    const ExprId value = loops_.load(what_.value.buffer, element_of(e, what_.value, found));
    const ExprId element = loops_.load(what_.src.buffer, element_of(e, what_.src, point));
    const ExprId same = e.binary(ExprOp::eq, e.cast(p_.buffer(what_.value.buffer).type, element), value);
    loops_.store(tile, point, e.select(same, e.cast(type, point[axis]), e.const_int(extents[axis], type)));
    return {tile, Exprs(extents.size(), e.const_int(0)), extents};
  }

  Program& p_;
  const ArgReduction& what_;
  PointLoops loops_;
};

}  // namespace

std::optional<Diagnostic> add_arg_reduction(Program& p, const ArgReduction& what,
                                            const SourceLocation& location, Block& block) {
  ArgReducer reducer(p, what, location, block);
  if (auto error = reducer.check()) return error;
  reducer.run();
  return std::nullopt;
}

}  // namespace tilegen::ir
