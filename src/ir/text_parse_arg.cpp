// argmax and argmin of the text form.
#include "ir/arg_reduction.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// argmax src -> value, index {axis = 1}
bool Parser::parse_arg_reduction(const Token& word) {
  const std::string of = "of " + std::string(word.text);
  ArgReduction what;
  what.largest = word.is("argmax");
  if (!parse_region(what.src, "the source " + of) ||
      !expect("->", "and what " + std::string(word.text) + " writes") ||
      !parse_region(what.value, "the value " + of) || !expect(",", "and the place " + of) ||
      !parse_region(what.index, "the place " + of))
    return false;
  in_attributes_ = accept("{");
  if (in_attributes_ && !parse_axis(what.axis)) return false;
  in_attributes_ = false;
  for (const Region* r : {&what.src, &what.value, &what.index})
    if (!r->buffer.valid() || r->offsets.size() != program_.buffer(r->buffer).shape.size()) return true;
  if (in_parallel()) {
    error(DiagCode::misplaced_statement, word, std::string(word.text) + " stands inside a parallel loop",
          "move it out of the loop; a parallel loop holds no tile operations");
    return true;
  }
  check_reached(word);
  constexpr int64_t kStatements = 4;
  if (static_cast<int64_t>(program_.stmts.size()) + kStatements > limits_.statements ||
      static_cast<int64_t>(program_.buffers.size()) >= limits_.buffers)
    return limit(DiagCode::limit_nodes, word,
                 "a program has at most " + std::to_string(limits_.statements) + " statements and " +
                     std::to_string(limits_.buffers) + " buffers",
                 "split the program");
  if (!room_for_node(1, word)) return false;
  if (auto wrong = add_arg_reduction(program_, what, location(word), open_.back().body))
    error(wrong->code, word, wrong->message, wrong->hint);
  return true;
}

bool Parser::parse_axis(int64_t& axis) {
  return expect("axis", "the one attribute there is") && expect("=", "and the axis") &&
         parse_int(axis, "the axis") && expect("}", "to close the attributes");
}

}  // namespace tilegen::ir::text
