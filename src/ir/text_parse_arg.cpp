// Operations that are made of other statements: argmax and argmin, sort and topk, and reductions and scans by
// a function of the program.
#include "ir/arg_reduction.h"
#include "ir/combination.h"
#include "ir/op_kinds.h"
#include "ir/sort.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// The operation may stand here; `usable`: its regions are.
bool Parser::begins_made(const Token& word, std::initializer_list<const Region*> regions, int64_t statements,
                         bool& usable) {
  usable = false;
  for (const Region* r : regions)
    if (!r->buffer.valid() || r->offsets.size() != program_.buffer(r->buffer).shape.size()) return true;
  if (in_parallel()) {
    error(DiagCode::misplaced_statement, word, std::string(word.text) + " stands inside a parallel loop",
          "move it out of the loop; a parallel loop holds no tile operations");
    return true;
  }
  check_reached(word);
  if (static_cast<int64_t>(program_.stmts.size()) + statements > limits_.statements ||
      static_cast<int64_t>(program_.buffers.size()) >= limits_.buffers)
    return limit(DiagCode::limit_nodes, word,
                 "a program has at most " + std::to_string(limits_.statements) + " statements and " +
                     std::to_string(limits_.buffers) + " buffers",
                 "split the program");
  if (!room_for_node(1, word)) return false;
  usable = true;
  return true;
}

// argmax src -> value, index {axis = 1}
bool Parser::parse_arg_reduction(const Token& word) {
  const std::string of = "of " + std::string(word.text);
  ArgReduction what;
  what.largest = word.is("argmax");
  if (!parse_region(what.src, "the source " + of) ||
      !expect("->", "and what " + std::string(word.text) + " writes") ||
      !parse_region(what.value, "the value " + of) || !expect(",", "and the place " + of) ||
      !parse_region(what.index, "the place " + of) || !parse_word_attributes(word, what.axis, {}, nullptr))
    return false;
  bool usable = false;
  constexpr int64_t kStatements = 4;
  if (!begins_made(word, {&what.src, &what.value, &what.index}, kStatements, usable)) return false;
  if (!usable) return true;
  if (auto wrong = add_arg_reduction(program_, what, location(word), open_.back().body))
    error(wrong->code, word, wrong->message, wrong->hint);
  return true;
}

// sort src -> dst [, index] {axis = 1, descending}; topk, whose flag is smallest
bool Parser::parse_sort(const Token& word) {
  const std::string of = "of " + std::string(word.text);
  Sort what;
  what.first_ones = word.is("topk");
  bool flag = false;
  if (!parse_region(what.src, "the source " + of) ||
      !expect("->", "and what " + std::string(word.text) + " writes") ||
      !parse_region(what.dst, "the elements " + of))
    return false;
  if (accept(",") && !parse_region(what.index.emplace(), "the places " + of)) return false;
  if (!parse_word_attributes(word, what.axis, what.first_ones ? "smallest" : "descending", &flag))
    return false;
  what.descending = flag != what.first_ones;
  bool usable = false;
  if (!begins_made(word, {&what.src, &what.dst, what.index ? &*what.index : &what.dst}, 1, usable))
    return false;
  if (!usable) return true;
  if (auto wrong = add_sort(program_, what, location(word), open_.back().body, limits_))
    error(wrong->code, word, wrong->message, wrong->hint);
  return true;
}

// {axis = 1, flag}, either or both
bool Parser::parse_word_attributes(const Token& word, int64_t& axis, std::string_view flag_name, bool* flag) {
  in_attributes_ = accept("{");
  if (!in_attributes_) return true;
  const std::string flag_text(flag_name);
  do {
    if (flag != nullptr && token_.is(flag_name)) {
      advance();
      *flag = true;
    } else if (token_.is("axis")) {
      advance();
      if (!expect("=", "and the axis") || !parse_int(axis, "the axis")) return false;
    } else {
      return expected(
          "an attribute of " + std::string(word.text),
          flag ? "the attributes are axis and " + flag_text : "axis is the one attribute there is");
    }
  } while (accept(","));
  if (!expect("}", "to close the attributes")) return false;
  in_attributes_ = false;
  return true;
}

bool Parser::parse_region_list(std::vector<Region>& out, std::string_view what) {
  do {
    if (!room_for_rank(out.size(), token_) || !parse_region(out.emplace_back(), what)) return false;
  } while (accept(","));
  return true;
}

// "by" and a name: what is assigned or stored has no name behind it.
bool Parser::begins_combination() { return token_.is("by") && Lexer(lexer_).next().kind == TokenKind::name; }

// reduce x, y -> m, s by f {axis = 1, accumulate}; scan, with reverse
bool Parser::parse_combination(const Token& word, const OpRow& row, std::vector<Region> src,
                               std::vector<Region> dst) {
  Combination what;
  what.src = std::move(src);
  what.dst = std::move(dst);
  what.scan = row.kind == OpKind::scan;
  advance();
  const Token name = token_;
  advance();
  bool flag = false;
  if (!parse_word_attributes(word, what.axis, what.scan ? "reverse" : "accumulate", &flag)) return false;
  what.accumulate = flag && !what.scan;
  what.reverse = flag && what.scan;
  const auto f = functions_.find(name.text);
  if (f == functions_.end()) {
    error(DiagCode::unknown_name, name, "there is no function " + describe(name),
          "declare it before the kernels: fn " + std::string(name.text) +
              "(a: f32, b: f32, c: f32, d: f32) -> (f32, f32) { ... return x, y }");
    return true;
  }
  const size_t half = f->second.parameters.size() / 2;
  const auto middle = f->second.parameters.begin() + static_cast<ptrdiff_t>(half);
  what.by.left.assign(f->second.parameters.begin(), middle);
  what.by.right.assign(middle, f->second.parameters.end());
  what.by.results = f->second.values;
  for (ExprId value : what.by.results)
    if (!value.valid()) return true;
  bool usable = false;
  for (const auto* regions : {&what.src, &what.dst})
    for (const Region& r : *regions)
      if (const bool goes_on = begins_made(word, {&r}, 1, usable); !usable) return goes_on;
  if (auto wrong = add_combination(program_, what, location(word), open_.back().body, limits_))
    error(wrong->code, word, wrong->message, wrong->hint);
  return true;
}

}  // namespace tilegen::ir::text
