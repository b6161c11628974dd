// Tile operations of the text form. Everything about an op comes from its row of ops.def.
#include <algorithm>

#include "ir/op_kinds.h"
#include "ir/place_extents.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"
#include "support/spelling.h"

namespace tilegen::ir::text {

namespace {

// Indices alone: where a box begins.
bool is_place(const std::vector<bool>& ranges) {
  return !ranges.empty() && std::find(ranges.begin(), ranges.end(), true) == ranges.end();
}

}  // namespace

bool Parser::parse_tile_op(OpKind kind) {
  Token at = token_;
  advance();
  const OpRow& row = op_row(kind);
  const OperandOrder order = operand_order(row);
  TileOp op;
  op.kind = kind;
  op.operands.resize(row.operands.size());
  if (kind == OpKind::reduce || kind == OpKind::scan) {
    std::vector<Region> src, dst;
    if (!parse_region_list(src, "what " + std::string(row.text) + " reads") ||
        !expect("->", "and what " + std::string(row.text) + " writes") ||
        !parse_region_list(dst, "what " + std::string(row.text) + " writes"))
      return false;
    if (begins_combination()) return parse_combination(at, row, std::move(src), std::move(dst));
    if (src.size() != 1 || dst.size() != 1)
      return expected("'by' and a function", "several values are combined by a function of the program: " +
                                                 std::string(row.text) + " x, y -> m, s by f");
    op.operands = {std::move(src[0]), std::move(dst[0])};
    if (kind == OpKind::scan && begins_carry()) return parse_carried_scan(at, row, std::move(op));
    return finish_tile_op(at, row, std::move(op));
  }
  if (!parse_operands(row, op, std::span(order.front, order.front_count))) return false;
  const std::vector<bool> ranges = ranges_;  // of what it reads
  if (row.has_value) {
    const BufferId first = op.operands.empty() ? BufferId() : op.operands[0].buffer;
    const bool of_barrier = kind == OpKind::mbarrier_wait;
    const DType type = of_barrier ? DType::i64 : first.valid() ? program_.buffer(first).type : DType::none;
    if (!op.operands.empty() && !expect(",", "and the value of " + std::string(row.text))) return false;
    if (!parse_expr(op.value, kAny, type)) return false;
  }
  if (order.back_count > 0) {
    if (!expect("->", "and what " + std::string(row.text) + " writes")) return false;
    if (!parse_operands(row, op, std::span(order.back, order.back_count))) return false;
  }
  if (kind == OpKind::copy || kind == OpKind::atomic) {
    const bool src_is_place = is_place(ranges), dst_is_place = is_place(ranges_);
    if (src_is_place && !dst_is_place) take_extents(at, op.operands[0], op.operands[1], ranges_);
    if (dst_is_place && !src_is_place) take_extents(at, op.operands[1], op.operands[0], ranges);
  }
  if (kind == OpKind::atomic && accept(",")) return parse_atomic_fetch(at, row, std::move(op));
  return finish_tile_op(at, row, std::move(op));
}

// copy A[i, j] -> tile: the extents of the other side's ranges.
void Parser::take_extents(const Token& at, Region& place, const Region& from,
                          const std::vector<bool>& ranges) {
  std::vector<int64_t> taken;
  for (size_t d = 0; d < ranges.size() && d < from.extents.size(); ++d)
    if (ranges[d]) taken.push_back(from.extents[d]);
  if (const auto wrong = ir::take_extents(program_, place, std::move(taken)))
    error(wrong->code, at, wrong->message, wrong->hint);
}

bool Parser::finish_tile_op(const Token& at, const OpRow& row, TileOp op) {
  Annotations annotations;
  in_attributes_ = accept("{");
  if (in_attributes_ && !parse_attributes(row, op, annotations)) return false;
  in_attributes_ = false;
  const StmtId id = add_statement(at, std::move(op));
  if (!id.valid()) return false;
  program_.stmts[id.value].annotations = std::move(annotations);
  take_label(id);
  return true;
}

bool Parser::parse_operands(const OpRow& row, TileOp& op, std::span<const int> slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    std::string what =
        std::string(row.text) + "'s operand '" + std::string(row.operands[slots[i]].name) + "'";
    if (i > 0 && !expect(",", "and " + what)) return false;
    if (!parse_region(op.operands[slots[i]], what)) return false;
  }
  return true;
}

bool Parser::parse_region(Region& region, std::string_view what) {
  if (token_.kind == TokenKind::name && is_reserved(token_.text))
    return expected(what, "name a tensor or buffer; words of the language cannot be names");
  Token name;
  if (!parse_name(name, what)) return false;
  region.buffer = find_buffer(name);
  if (accept("[")) {
    if (!parse_ranges(region)) return false;
    if (region.buffer.valid()) check_rank(region.buffer, region.offsets.size(), name);
    return true;
  }
  if (region.buffer.valid()) whole_buffer(region, name);
  ranges_.assign(region.extents.size(), true);
  return true;
}

bool Parser::parse_ranges(Region& region) {
  ranges_.clear();
  do {
    ExprId offset;
    int64_t extent = 1;
    if (token_.is(":")) return expected("an offset", "of a whole dimension write 0 and its extent, 0 :+ 64");
    if (!room_for_rank(region.offsets.size(), token_) || !parse_index(offset, "an offset")) return false;
    // An index alone is a range of one.
    if (!token_.is(",") && !token_.is("]") && !token_.is(":+"))
      return expected("':+' and the extent of the region",
                      "write a range as 'offset :+ extent', for example i * 64 :+ 64");
    ranges_.push_back(accept(":+"));
    if (ranges_.back() &&
        !parse_extent(extent, "a constant extent of the region",
                      "what only the launch knows is moved by a loop over regions of a constant extent, "
                      "i * 64 :+ 64, which may hang over the edge of a tensor"))
      return false;
    region.offsets.push_back(offset);
    region.extents.push_back(extent);
  } while (accept(","));
  return expect("]", "or ',' and a further range");
}

void Parser::whole_buffer(Region& region, const Token& at) {
  const size_t rank = program_.buffer(region.buffer).shape.size();
  for (size_t d = 0; d < rank; ++d) {
    int64_t extent = 1;
    ExprId shape = program_.buffer(region.buffer).shape[d];
    if (shape.valid() && !program_.exprs.is_const_int(shape, &extent)) {
      error(DiagCode::bad_shape, at,
            "the whole of " + describe(at) + " is named, but its extent " + std::to_string(d) +
                " is not constant",
            "name a box of it: " + std::string(at.text) + "[offset :+ extent, ...]");
      return;
    }
    region.offsets.push_back(constant(0, at));
    region.extents.push_back(extent);
  }
}

bool Parser::parse_attributes(const OpRow& row, TileOp& op, Annotations& annotations) {
  std::array<bool, kMaxAttrs> given{};
  do {
    Token name;
    if (!parse_name(name, "the name of an attribute of " + std::string(row.text), NameUse::other))
      return false;
    auto found = std::find_if(row.attrs.begin(), row.attrs.end(),
                              [&](const AttrRow& a) { return a.name == name.text; });
    const AnnotationRow* annotation = annotation_row(AnnotationPlace::op, name.text);
    if (found == row.attrs.end() && annotation != nullptr) {
      if (!parse_annotation(*annotation, name, annotations)) return false;
      continue;
    }
    if (found == row.attrs.end()) {
      unknown_attribute(row, name);
      if (accept("=")) {
        accept("-");
        advance();
      }
      continue;
    }
    size_t slot = static_cast<size_t>(found - row.attrs.begin());
    if (given[slot])
      error(DiagCode::duplicate_name, name, "the attribute " + describe(name) + " is given twice",
            "remove one of them");
    given[slot] = true;
    if (!parse_attribute_value(*found, name, op.attrs[slot])) return false;
  } while (accept(","));
  return expect("}", "or ',' and a further attribute");
}

bool Parser::parse_attribute_value(const AttrRow& row, const Token& name, int64_t& value) {
  if (!accept("=")) {
    value = 1;
    if (row.type == AttrType::boolean) return true;
    return expected("'=' and the value of " + std::string(row.name),
                    "only boolean attributes stand alone; write " + std::string(row.name) + "=...");
  }
  if (row.type == AttrType::integer) return parse_int(value, "the value of " + std::string(row.name));
  Token at = token_;
  std::string_view values = row.type == AttrType::boolean ? "false|true" : row.values;
  AttrRow choices{row.name, AttrType::enumeration, values};
  if (at.kind != TokenKind::name)
    return expected("the value of " + describe(name), "the values are " + std::string(values));
  advance();
  value = attr_value_from_name(choices, at.text);
  if (value < 0) {
    NearestName nearest(at.text);
    for (int64_t v = 0; !attr_value_name(choices, v).empty(); ++v) nearest.offer(attr_value_name(choices, v));
    error(DiagCode::bad_attribute, at, "the attribute " + describe(name) + " has no value " + describe(at),
          nearest.hint("the values are " + std::string(values)));
    value = 0;
  }
  return true;
}

void Parser::unknown_attribute(const OpRow& row, const Token& name) {
  NearestName nearest(name.text);
  std::string all;
  for (const AttrRow& a : row.attrs) {
    nearest.offer(a.name);
    all += (all.empty() ? "" : ", ") + std::string(a.name);
  }
  std::string otherwise =
      all.empty() ? std::string(row.text) + " has no attributes" : "the attributes are " + all;
  for (const AnnotationRow& a : annotation_rows()) {
    if (a.place != AnnotationPlace::op) continue;
    nearest.offer(a.key);
    // A word of an annotation that stands alone.
    if (("|" + std::string(a.values) + "|").find("|" + std::string(name.text) + "|") != std::string::npos)
      otherwise = "write " + std::string(a.key) + " = " + std::string(name.text);
  }
  error(DiagCode::unknown_name, name, std::string(row.text) + " has no attribute " + describe(name),
        nearest.hint(otherwise));
}

}  // namespace tilegen::ir::text
