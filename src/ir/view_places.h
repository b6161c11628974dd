// Where the elements and the boxes of views lie in their tiles.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/draft_exprs.h"
#include "ir/text.h"
#include "ir/tile_view.h"
#include "ir/view_extents.h"
#include "ir/view_shape.h"
#include "ir/view_widths.h"
#include "support/diag_codes.h"

namespace tilegen::ir {

// requires: views that are not resolved. refuses: elements outside of a tile's view, and views whose tile has
// elements of another width where an element of the tile is asked for.
class ViewPlaces : public ExprRewriter {
 public:
  ViewPlaces(Program& p, Draft& draft)
      : ExprRewriter(p.exprs, p.exprs), p_(p), draft_(draft), bounds_(p, draft), facts_(p) {}

 protected:
  ExprId rewrite_load(const ExprNode& n, std::span<const ExprId> indices) override {
    return read(n.object, {indices.begin(), indices.end()});
  }

  // An element of a view, as its type has it; and what the tile keeps of such a one.
  ExprId read(BufferId view, std::vector<ExprId> at);
  // The same of a view without other widths, or of a tile.
  ExprId narrow(BufferId view, std::vector<ExprId> at);
  ExprId kept(BufferId tile, ExprId value) { return p_.exprs.bitcast(p_.buffer(tile).type, value); }
  void move(ExprId& e) {
    if (e.valid()) e = rewrite(e);
  }

  bool is_view(BufferId b) const { return draft_.views.contains(b); }
  bool other_width(BufferId view) const { return has_other_width(p_, draft_.views.at(view)); }
  BufferId tile_of(BufferId b) const {
    while (is_view(b)) b = draft_.views.at(b).of;
    return b;
  }

  void error(DiagCode code, std::string message, std::string hint);
  ExprId two_widths(BufferId view, DType type);

  bool is_tensor(BufferId b) const { return p_.buffer(b).scope == MemScope::global; }
  std::optional<int64_t> constant(ExprId e) const;
  // Beyond a view of a tensor there is nothing: reads give 0, writes are dropped. Beyond one of a tile none
  // may be.
  void check_constant(BufferId view, ExprId offset, int64_t extent, size_t d);

  // Of the tile in the place of the view, which old values may go to.
  void element(BufferId& buffer, std::vector<ExprId>& indices);
  // Of the view's `of`.
  void step(BufferId& buffer, std::vector<ExprId>& indices);

  struct Box {
    Region region;       // of the tile
    bool is_box = true;  // else elements have to be named one by one
    int transposed = 0;  // times that dimensions of several elements change places
  };
  Box box_of(Region r);

  Program& p_;
  Draft& draft_;
  IndexBounds bounds_;
  ExtentFacts facts_;
  std::string kernel_;
  int number_ = 0;  // of the kernel
  SourceLocation location_;
  std::vector<Diagnostic> errors_;

 private:
  void outside(BufferId view, int64_t index, size_t d);
  Reshape reshape(BufferId view, BufferId of);
  // What leaves the slice of a tensor there leaves the tensor, too.
  bool begins_with(const TileView& view, size_t d) const { return constant(view.offsets[d]) == 0; }
  bool ends_with(const TileView& view, ExprId extent, size_t d);
  ExprId sliced(const TileView& view, ExprId seen, ExprId extent, size_t d);
  // Where the box leaves the slice it leaves the tensor.
  bool stays(const TileView& view, const Region& box, ExprId extent, size_t d);
  void step_box(const TileView& view, Box& box, std::span<const ExprId> shape);
};

}  // namespace tilegen::ir
