// Labels and annotations of the text form (ir/annotations.h):
//
//   kernel k grid (bx: n) with {raster = grouped, group = 8} {
//     alloc As: shared f16[128, 64] {swizzle = 128}
//     pipelined ko in 0 .. n with {ping_pong = false} {
//       label load: copy A[...] -> As {vector = 8}
#include <algorithm>
#include <charconv>
#include <utility>

#include "ir/text.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"
#include "support/spelling.h"

namespace tilegen::ir::text {

// label NAME: statement
bool Parser::parse_label() {
  Token name;
  if (!parse_name(name, "the label")) return false;
  if (!expect(":", "and the statement that it names")) return false;
  if (!label_.text.empty())
    error(DiagCode::misplaced_statement, name,
          "a statement has two labels, " + describe(label_) + " and " + describe(name), "keep one of them");
  else if (!labels_.emplace(std::string(name.text)).second)
    error(DiagCode::duplicate_name, name, "the kernel has a label " + describe(name) + " already",
          "labels are of one statement of a kernel each");
  const bool again = !label_.text.empty();
  label_ = name;
  if (again || token_.kind != TokenKind::name)
    return expected("a statement", "a label names an operation, a loop, an if or a store");
  const bool ok = parse_statement();
  if (ok && !label_.text.empty())
    error(DiagCode::misplaced_statement, name,
          "the label " + describe(name) + " stands in front of a statement that has no path",
          "label operations, loops, ifs and stores; what names and jumps are is not kept");
  label_ = Token();
  return ok;
}

// The statement that a label before it names.
void Parser::take_label(StmtId id) {
  if (!id.valid() || label_.text.empty()) return;
  if (in_parallel())
    error(DiagCode::misplaced_statement, label_,
          "the label " + describe(label_) + " stands inside a parallel loop",
          "label the parallel loop: its stores are named after it, 'label/store#0'");
  program_.stmts[id.value].label = label_.text;
  label_ = Token();
}

// with {...}, behind the head of a kernel or a loop
bool Parser::parse_with(AnnotationPlace place, std::string_view what, Annotations& out) {
  if (!accept("with")) return true;
  const Token at = token_;
  if (!expect("{", "and the annotations")) return false;
  in_attributes_ = true;
  if (!parse_annotation_list(place, what, out) || !expect("}", "or ',' and a further annotation"))
    return false;
  in_attributes_ = false;
  if (in_parallel() && !out.empty())
    error(DiagCode::misplaced_statement, at, "annotations stand inside a parallel loop",
          "annotate the parallel loop");
  return true;
}

bool Parser::parse_annotation_list(AnnotationPlace place, std::string_view what, Annotations& out) {
  do {
    Token name;
    if (!parse_name(name, "the name of an annotation of " + std::string(what), NameUse::other)) return false;
    const AnnotationRow* row = annotation_row(place, name.text);
    if (row == nullptr) {
      unknown_annotation(place, what, name);
      if (!skip_annotation()) return false;
    } else if (!parse_annotation(*row, name, out)) {
      return false;
    }
  } while (accept(","));
  return true;
}

Expected<Annotations> Parser::run_annotations(AnnotationPlace place, std::string_view what) {
  Annotations list;
  if (static_cast<int64_t>(bytes_) > limits_.text_bytes)
    limit(DiagCode::limit_bytes, token_,
          "the annotations have " + std::to_string(bytes_) + " bytes; at most " +
              std::to_string(limits_.text_bytes) + " are read",
          "write fewer");
  advance();
  if (parse_annotation_list(place, what, list) && token_.kind != TokenKind::end)
    expected("',' and a further annotation", "separate annotations by commas");
  if (diagnostics_.empty()) return list;
  Error e;
  e.diagnostics = std::move(diagnostics_);
  return e;
}

void Parser::unknown_annotation(AnnotationPlace place, std::string_view what, const Token& name) {
  NearestName nearest(name.text);
  std::string all;
  for (const AnnotationRow& row : annotation_rows()) {
    if (row.place != place) continue;
    nearest.offer(row.key);
    all += (all.empty() ? "" : ", ") + std::string(row.key);
  }
  error(DiagCode::unknown_name, name, std::string(what) + " has no annotation " + describe(name),
        nearest.hint("the annotations are " + all));
}

// The value of one that there is not: up to the next comma or brace.
bool Parser::skip_annotation() {
  if (!accept("=")) return true;
  for (int depth = 0; token_.kind != TokenKind::end && !token_.first_on_line; advance()) {
    if (depth == 0 && (token_.is(",") || token_.is("}"))) return true;
    depth += token_.is("[") || token_.is("(") ? 1 : token_.is("]") || token_.is(")") ? -1 : 0;
  }
  return expected("'}' or ',' and a further annotation", "close the annotations with '}'");
}

bool Parser::parse_annotation(const AnnotationRow& row, const Token& name, Annotations& out) {
  if (std::any_of(out.begin(), out.end(), [&](const Annotation& a) { return a.key == row.key; }))
    error(DiagCode::duplicate_name, name, "the annotation " + describe(name) + " is given twice",
          "remove one of them");
  Annotation a{std::string(row.key), {}, location(name)};
  if (row.kind == AnnotationKind::flag && !token_.is("=")) {
    a.values = {"true"};
    out.push_back(std::move(a));
    return true;
  }
  if (!expect("=", "and the value of " + std::string(row.key))) return false;
  const bool list = is_list(row.kind);
  if (list && !expect("[", "and a list")) return false;
  do {
    if (a.values.size() >= kMostValues)
      return limit(DiagCode::limit_nodes, token_,
                   "an annotation has more than " + std::to_string(kMostValues) + " values", "give fewer");
    if (!parse_annotation_value(row, a.values.emplace_back())) return false;
  } while (list && accept(","));
  if (list && !expect("]", "or ',' and a further value")) return false;
  out.push_back(std::move(a));
  return true;
}

bool Parser::parse_annotation_value(const AnnotationRow& row, std::string& out) {
  const std::string what = "the value of " + std::string(row.key);
  const Token at = token_;
  switch (row.kind) {
    case AnnotationKind::number:
    case AnnotationKind::numbers: {
      int64_t value = row.least;
      if (!parse_constant(value, what)) return false;
      if (value < row.least || value > kMostNumber)
        error(DiagCode::bad_attribute, at,
              std::string(row.key) + " is " + std::to_string(value) + ", expected " +
                  std::to_string(row.least) + " to " + std::to_string(kMostNumber),
              "give another number, or leave " + std::string(row.key) + " out to have it planned");
      out = std::to_string(value);
      return true;
    }
    case AnnotationKind::flag:
    case AnnotationKind::word:
      return parse_annotation_word(row, out);
    case AnnotationKind::name:
    case AnnotationKind::names: {
      Token name;
      if (!parse_name(name, what, NameUse::other)) return false;
      out = name.text;
      return true;
    }
    case AnnotationKind::text:
    case AnnotationKind::layout:
      break;
  }
  if (row.kind == AnnotationKind::layout && token_.is("(")) return parse_index_function(out);
  if (row.kind == AnnotationKind::text && token_.kind == TokenKind::name) {
    out = token_.text;
    advance();
    return true;
  }
  if (token_.kind != TokenKind::string)
    return expected(what, row.kind == AnnotationKind::layout
                              ? "write a function of the indices, (i, j) -> i * 64 + j, or a layout's text "
                                "between quotation marks"
                              : "write a text between quotation marks");
  if (row.kind == AnnotationKind::layout && token_.body.find('[') == token_.body.npos)
    error(DiagCode::bad_attribute, at, "expected the text of a layout, found " + describe(at),
          "a layout's text is as a schedule shows it: (128,64) -> [0: d0/1%128*64 + d1/1%64*1]");
  out = token_.body;
  advance();
  return true;
}

bool Parser::parse_annotation_word(const AnnotationRow& row, std::string& out) {
  const std::string_view values = row.kind == AnnotationKind::flag ? "true|false" : row.values;
  const Token at = token_;
  if (at.kind != TokenKind::name)
    return expected("the value of " + std::string(row.key), "the values are " + std::string(values));
  advance();
  const AttrRow choices{row.key, AttrType::enumeration, values};
  out = at.text;
  if (attr_value_from_name(choices, at.text) >= 0) return true;
  NearestName nearest(at.text);
  for (int64_t v = 0; !attr_value_name(choices, v).empty(); ++v) nearest.offer(attr_value_name(choices, v));
  error(DiagCode::bad_attribute, at, std::string(row.key) + " has no value " + describe(at),
        nearest.hint("the values are " + std::string(values)));
  return true;
}

}  // namespace tilegen::ir::text

namespace tilegen::ir {

Expected<Annotations> parse_annotations(std::string_view text, AnnotationPlace place, std::string_view what,
                                        const Limits& limits) {
  return text::Parser(text, "", limits, nullptr).run_annotations(place, what);
}

}  // namespace tilegen::ir
