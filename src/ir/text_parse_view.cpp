// Views of tiles and tensors in the text form (ir/tile_view.h):
//
//   view V = reshape(A, [8, 16, 64])
//   view T = transpose(A)                 or transpose(A, [1, 0])
//   view S = A[64 :+ 64, 0 :+ 64]         of a tensor also A[first :+ rows, 0 :+ k]
//   view U = reinterpret(A, u16)
#include <algorithm>

#include "ir/text_parser.h"
#include "ir/tile_view.h"
#include "support/diag_codes.h"
#include "support/spelling.h"

namespace tilegen::ir::text {

// "view" is a name like another where no name stands behind it.
bool Parser::begins_view() const {
  if (!token_.is("view")) return false;
  Lexer ahead = lexer_;
  return ahead.next().kind == TokenKind::name;
}

bool Parser::parse_view() {
  const Token word = token_;
  advance();
  Token name;
  if (!parse_name(name, "the view's name") || !expect("=", "and the tile or tensor that it shows"))
    return false;
  if (in_parallel()) {
    error(DiagCode::misplaced_statement, word,
          "the view " + describe(name) + " stands inside a parallel loop", "move it in front of the loop");
    return false;
  }
  if (static_cast<int64_t>(program_.buffers.size()) >= limits_.buffers)
    return limit(DiagCode::limit_nodes, name,
                 "a program has at most " + std::to_string(limits_.buffers) + " buffers and views",
                 "reuse buffers, or split the program");
  const Token form = token_;
  std::vector<ExprId> shape;
  TileView view;
  if (token_.kind != TokenKind::name)
    return expected("the tile or tensor that the view shows",
                    "write reshape(TILE, [..]), transpose(TILE), reinterpret(TILE, TYPE) or a box of it");
  Lexer ahead = lexer_;
  if (!ahead.next().is("(")) {
    BufferId of;
    return parse_view_box(of, view, shape) && parse_view_of(name, of, std::move(view), shape);
  }
  const bool reshapes = form.is("reshape"), renames = form.is("reinterpret");
  if (!reshapes && !renames && !form.is("transpose")) {
    NearestName nearest(form.text);
    nearest.offer("reshape");
    nearest.offer("transpose");
    nearest.offer("reinterpret");
    error(DiagCode::unknown_name, form, "expected a kind of view, found " + describe(form),
          nearest.hint("the kinds are reshape(TILE, [..]), transpose(TILE), reinterpret(TILE, TYPE) and "
                       "boxes of a tile"));
    return false;
  }
  advance();
  advance();
  Token tile;
  if (!parse_name(tile, "the tile or tensor that the view shows")) return false;
  const BufferId of = find_buffer(tile);
  if (!of.valid()) return false;
  const size_t rank = program_.buffer(of).shape.size();
  if (reshapes) {
    if (!expect(",", "and the view's extents") || !expect("[", "and the view's extents")) return false;
    do {
      if (!room_for_rank(shape.size(), token_) || !parse_view_extent(of, shape)) return false;
    } while (accept(","));
    if (!expect("]", "or ',' and a further extent")) return false;
  } else if (renames) {
    view.form = TileView::Form::reinterpret;
    const bool known =
        expect(",", "and the type of the view's elements") && type_named(token_.text).has_value();
    if (!parse_dtype(view.type) || !known) return false;
  } else if (accept(",")) {
    view.form = TileView::Form::transpose;
    if (!parse_integers(view.order, "a dimension of the tile")) return false;
  } else {
    view.form = TileView::Form::transpose;
    for (size_t d = rank; d-- > 0;) view.order.push_back(static_cast<int64_t>(d));
  }
  return expect(")", "to close the view") && parse_view_of(name, of, std::move(view), shape);
}

// Of a tile a constant, of a tensor any expression.
bool Parser::parse_view_extent(BufferId of, std::vector<ExprId>& out) {
  const Token at = token_;
  if (of.valid() && program_.buffer(of).scope == MemScope::global)
    return parse_index(out.emplace_back(), "an extent of the view");
  int64_t extent = 0;
  if (!parse_extent(extent, "an extent of the view")) return false;
  out.push_back(constant(extent, at));
  return true;
}

// A[first :+ rows, 0 :+ 64]
bool Parser::parse_view_box(BufferId& of, TileView& view, std::vector<ExprId>& shape) {
  Token tile;
  if (!parse_name(tile, "the tile or tensor that the view shows")) return false;
  of = find_buffer(tile);
  view.form = TileView::Form::slice;
  if (!token_.is("[")) {  // the whole
    if (of.valid()) shape = program_.buffer(of).shape;
    view.offsets.assign(shape.size(), constant(0, tile));
    return of.valid();
  }
  advance();
  do {
    if (!room_for_rank(shape.size(), token_) || !parse_index(view.offsets.emplace_back(), "an offset"))
      return false;
    if (!token_.is(":+"))
      return expected("':+' and the extent of the view",
                      "write a range as 'offset :+ extent', for example i * 64 :+ 64; one index is i :+ 1, "
                      "whose dimension a reshape leaves out");
    advance();
    if (!parse_view_extent(of, shape)) return false;
  } while (accept(","));
  if (!expect("]", "or ',' and a further range")) return false;
  if (of.valid()) check_rank(of, shape.size(), tile);
  return true;
}

bool Parser::parse_view_of(const Token& name, BufferId of, TileView view, std::span<const ExprId> shape) {
  const auto all_valid = [](std::span<const ExprId> exprs) {
    return std::all_of(exprs.begin(), exprs.end(), [](ExprId e) { return e.valid(); });
  };
  const bool known =
      of.valid() && all_valid(program_.buffer(of).shape) && all_valid(shape) && all_valid(view.offsets) &&
      (view.form != TileView::Form::slice || view.offsets.size() == program_.buffer(of).shape.size());
  if (!known || stopped()) return false;  // reported
  view.of = of;
  if (const auto wrong = view_refusal(program_, view, shape)) {
    error(wrong->code, name, wrong->message, wrong->hint);
    return false;
  }
  const BufferId made =
      add_view(program_, draft_, std::move(view), shape, std::string(name.text), location(name));
  declare(name, SymbolKind::buffer, made.value);
  return true;
}

// [a, b, c]
bool Parser::parse_integers(std::vector<int64_t>& out, std::string_view what) {
  if (!expect("[", "and a list of integers")) return false;
  do {
    int64_t value = 0;
    if (!room_for_rank(out.size(), token_) || !parse_constant(value, what)) return false;
    out.push_back(value);
  } while (accept(","));
  return expect("]", "or ',' and " + std::string(what));
}

}  // namespace tilegen::ir::text
