// Which views there are of a tile or a tensor, and the buffer that stands for one while a program is made;
// which boxes may be copied to each other.
#include <algorithm>
#include <utility>

#include "ir/draft_exprs.h"
#include "ir/reinterpret.h"
#include "ir/text.h"
#include "ir/tile_view.h"
#include "ir/view_shape.h"
#include "ir/view_widths.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

class Refusal {
 public:
  Refusal(const Program& p, const TileView& view, std::span<const ExprId> shape)
      : p_(p), view_(view), shape_(shape), of_(p.buffer(view.of)), extents_(of_.shape) {}

  std::optional<ViewRefusal> run() const {
    switch (view_.form) {
      case TileView::Form::reinterpret:
        return reinterpreted();
      case TileView::Form::reshape:
        if (auto wrong = of_extents()) return wrong;
        return reshaped();
      case TileView::Form::transpose:
        return transposed();
      case TileView::Form::slice:
        if (auto wrong = of_extents()) return wrong;
        return sliced();
    }
    return std::nullopt;
  }

 private:
  bool tensor() const { return of_.scope == MemScope::global; }
  std::string_view kind() const { return tensor() ? "tensor" : "tile"; }
  std::string text(std::span<const ExprId> shape) const {
    std::string all = "[";
    for (size_t d = 0; d < shape.size(); ++d) all += (d ? ", " : "") + print_expr(p_, shape[d]);
    return all + "]";
  }
  std::string what() const { return "'" + of_.name + "' " + text(extents_); }
  std::optional<int64_t> constant(ExprId e) const {
    int64_t value = 0;
    return p_.exprs.is_const_int(e, &value) ? std::optional(value) : std::nullopt;
  }

  std::optional<ViewRefusal> of_extents() const {
    for (size_t d = 0; d < shape_.size(); ++d) {
      const std::string which = "extent " + std::to_string(d) + " of a view of " + what();
      const auto extent = constant(shape_[d]);
      if (extent && *extent < 1)
        return ViewRefusal{DiagCode::bad_shape, which + " is " + std::to_string(*extent),
                           "give extents of at least 1"};
      if (!extent && !tensor())
        return ViewRefusal{DiagCode::bad_shape, which + " is " + print_expr(p_, shape_[d]) + ", no constant",
                           "a tile's views have constant extents, as it has"};
      if (!extent && !DraftExprs(p_).reads(shape_[d]).empty())
        return ViewRefusal{DiagCode::scope_not_allowed, which + " reads memory",
                           "name its value first: let n = ..., and the view of extent n"};
    }
    return std::nullopt;
  }

  // Elements of more bits are whole runs of the last dimension.
  std::optional<ViewRefusal> reinterpreted() const {
    const bool bits = is_bool(of_.type) || is_bool(view_.type) || extents_.empty();
    if (const auto wrong = bits_refusal("a view of '" + of_.name + "'", of_.type, view_.type); wrong && bits)
      return ViewRefusal{DiagCode::dtype_mismatch, wrong->message, wrong->hint};
    if (dtype_bits(view_.type) <= dtype_bits(of_.type)) return std::nullopt;
    const int64_t ratio = width_ratio(view_.type, of_.type);
    if (ExtentFacts(p_).divides(ratio, extents_.back())) return std::nullopt;
    const std::string times = std::to_string(ratio);
    return ViewRefusal{DiagCode::shape_mismatch,
                       "the last extent of " + what() + " is not known to be a multiple of " + times +
                           ", and a " + dtype_name(view_.type) + " has the bits of " + times + " of its " +
                           dtype_name(of_.type),
                       "choose an extent of whole ones, or a dim that is 'divisible " + times + "'"};
  }

  std::optional<ViewRefusal> reshaped() const {
    const ExtentFacts facts(p_);
    const auto has = facts.product(extents_), wanted = facts.product(shape_);
    const auto number = [](const std::optional<ExtentProduct>& e) {
      return e && e->factors.empty() && e->over == 1;
    };
    if (number(has) && (number(wanted) || !wanted)) {
      if (wanted && has->times == wanted->times) return std::nullopt;
      return ViewRefusal{DiagCode::shape_mismatch,
                         what() + " has " + std::to_string(has->times) + " elements, its view " +
                             text(shape_) +
                             (wanted ? " " + std::to_string(wanted->times) : std::string(" more")),
                         "the extents of a view multiply to the elements of the " + std::string(kind())};
    }
    if (common_ranges(facts, shape_, extents_)) return std::nullopt;
    return ViewRefusal{
        DiagCode::shape_mismatch,
        "the view " + text(shape_) + " of " + what() + " is not known to have as many elements",
        "write its extents as products and quotients of the tensor's dims, with " + quotient()};
  }

  // "n // 64 only of a dim that is 'divisible 64'": of the view's extents, where there is one.
  std::string quotient() const {
    std::string by = "64", shown = "n // 64";
    std::vector<ExprId> todo(shape_.rbegin(), shape_.rend());
    while (!todo.empty()) {
      const ExprId e = todo.back();
      todo.pop_back();
      if (!e.valid()) continue;
      const ExprNode& n = p_.exprs[e];
      const auto over = n.op == ExprOp::floordiv ? constant(n.b) : std::nullopt;
      if (over) {
        by = std::to_string(*over), shown = print_expr(p_, e);
        break;
      }
      if (n.op != ExprOp::load) todo.insert(todo.end(), {n.b, n.a});
    }
    return shown + " only of a dim that is 'divisible " + by + "'";
  }

  std::optional<ViewRefusal> transposed() const {
    std::vector<int64_t> sorted = view_.order;
    std::sort(sorted.begin(), sorted.end());
    bool each = sorted.size() == extents_.size();
    for (size_t d = 0; each && d < sorted.size(); ++d) each = sorted[d] == static_cast<int64_t>(d);
    if (each) return std::nullopt;
    std::string order = "[";
    for (size_t d = 0; d < view_.order.size(); ++d) order += (d ? ", " : "") + std::to_string(view_.order[d]);
    return ViewRefusal{
        DiagCode::bad_attribute,
        "the order " + order + "] does not name each dimension of " + what() + " once",
        "write the dimensions of the " + std::string(kind()) + " in the order of the view's, from 0"};
  }

  std::optional<ViewRefusal> sliced() const {
    for (ExprId e : view_.offsets)
      if (!DraftExprs(p_).reads(e).empty())
        return ViewRefusal{DiagCode::scope_not_allowed, "an offset of a view of " + what() + " reads memory",
                           "name its value first: let o = ..., and the box at o"};
    for (size_t d = 0; d < extents_.size(); ++d) {
      const auto has = constant(extents_[d]), wanted = constant(shape_[d]),
                 offset = constant(view_.offsets[d]);
      const bool before = offset && *offset < 0;
      const bool beyond = has && wanted && (*wanted > *has || (offset && *offset > *has - *wanted));
      if (before || beyond)
        return ViewRefusal{
            DiagCode::index_out_of_bounds,
            "the box " + text(shape_) + " leaves " + what() + " in dimension " + std::to_string(d),
            "a view is a part of its " + std::string(kind())};
    }
    return std::nullopt;
  }

  const Program& p_;
  const TileView& view_;
  const std::span<const ExprId> shape_;
  const Buffer& of_;
  const std::span<const ExprId> extents_;
};

}  // namespace

std::optional<ViewRefusal> view_refusal(const Program& p, const TileView& view,
                                        std::span<const ExprId> shape) {
  return Refusal(p, view, shape).run();
}

Shape several(std::span<const int64_t> extents) {
  Shape list;
  std::copy_if(extents.begin(), extents.end(), std::back_inserter(list), [](int64_t e) { return e != 1; });
  return list;
}

bool correspond(const Region& a, const Region& b) {
  const Shape of_a = several(a.extents), of_b = several(b.extents);
  if (a.extents == b.extents || of_a == of_b)
    return a.extents == b.extents || a.extents.size() != b.extents.size();
  if (of_a.size() == of_b.size() || !checked_product(of_a) || checked_product(of_a) != checked_product(of_b))
    return false;
  const std::vector<DimRange> groups = common_ranges(of_a, of_b);
  return std::all_of(groups.begin(), groups.end(),
                     [](const DimRange& g) { return g.v_end - g.v == 1 || g.b_end - g.b == 1; });
}

BufferId add_view(Program& p, Draft& draft, TileView view, std::span<const ExprId> shape, std::string name,
                  SourceLocation location) {
  Buffer b = p.buffer(view.of);
  b.name = std::move(name);
  b.location = std::move(location);
  if (view.form == TileView::Form::transpose)
    for (size_t d = 0; d < b.shape.size(); ++d)
      b.shape[d] = p.buffer(view.of).shape[static_cast<size_t>(view.order[d])];
  else if (view.form == TileView::Form::reinterpret && has_other_width(p, view))
    b.shape.back() = extent_in_width(p.exprs, b.type, view.type, b.shape.back());
  else if (view.form != TileView::Form::reinterpret)
    b.shape.assign(shape.begin(), shape.end());
  b.kernel = static_cast<int>(p.kernels.size()) - 1;
  b.strides.clear();
  if (view.type != DType::none) b.type = view.type;
  const BufferId id(p.buffers.size());
  p.buffers.push_back(std::move(b));
  draft.views.emplace(id, std::move(view));
  return id;
}

}  // namespace tilegen::ir
