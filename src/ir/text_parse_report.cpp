// What a launch tells, of the text form: assert and print.
#include "ir/assertion.h"
#include "ir/print.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// A text between quotation marks.
bool Parser::parse_message(std::string& out, std::string_view what) {
  if (token_.kind != TokenKind::string)
    return expected(what, "write it between quotation marks, on one line, of printable ASCII characters");
  out = token_.body;
  if (out.size() > kMaxMessage) {
    error(DiagCode::limit_nodes, token_,
          std::string(what) + " has " + std::to_string(out.size()) + " characters; at most " +
              std::to_string(kMaxMessage) + " are allowed",
          "shorten it");
    out.clear();
  }
  advance();
  return true;
}

bool Parser::room_for_report(int64_t statements, const Token& at) {
  constexpr int64_t kBuffers = 2;
  check_reached(at);
  if (static_cast<int64_t>(program_.stmts.size()) + statements <= limits_.statements &&
      static_cast<int64_t>(program_.buffers.size()) + kBuffers <= limits_.buffers)
    return true;
  return limit(DiagCode::limit_nodes, at,
               "a program has at most " + std::to_string(limits_.statements) + " statements and " +
                   std::to_string(limits_.buffers) + " buffers",
               "split the program");
}

std::vector<StmtId> Parser::open_statements() const {
  std::vector<StmtId> open;
  for (const OpenBlock& b : open_)
    if (b.stmt.valid()) open.push_back(b.stmt);
  return open;
}

// assert condition, "message"
bool Parser::parse_assert() {
  const Token word = token_;
  advance();
  Assertion what;
  const Token at = token_;
  if (!parse_expr(what.condition) || !expect(",", "and the message of the assertion") ||
      !parse_message(what.message, "the message of the assertion"))
    return false;
  if (!what.condition.valid()) return true;
  if (!is_bool(program_.exprs.type(what.condition))) {
    error(DiagCode::dtype_mismatch, at,
          std::string("what is asserted has type ") + dtype_name(program_.exprs.type(what.condition)) +
              ", not bool",
          "compare it with something, for example 'assert x >= 0, \"x is negative\"'");
    return true;
  }
  if (!room_for_report(kAssertionStatements, word)) return false;
  if (!room_for_node(program_.exprs[what.condition].depth + 1, word)) return false;
  what.around = open_statements();
  add_assertion(program_, what, location(word), open_.back().body);
  return true;
}

// print "text", expr, ...  or  print "text" of region
bool Parser::parse_print() {
  const Token word = token_;
  advance();
  Print what;
  if (!parse_message(what.text, "the text to print")) return false;
  if (accept("of")) return parse_print_tile(std::move(what.text), word);
  bool poisoned = false;
  while (accept(",")) {
    if (!parse_expr(what.values.emplace_back())) return false;
    poisoned = poisoned || !what.values.back().valid();
  }
  return poisoned || add_print_statement(std::move(what), word);
}

bool Parser::add_print_statement(Print what, const Token& word) {
  if (!has_room_for_print(program_, what.values.size()))
    return limit(DiagCode::limit_nodes, word,
                 "a program prints at most " + std::to_string(kMaxPrinted) + " values", "print fewer");
  if (!room_for_report(print_statements(what.values.size()), word)) return false;
  for (ExprId value : what.values)
    if (!room_for_node(program_.exprs[value].depth + 1, word)) return false;
  what.around = open_statements();
  add_print(program_, what, location(word), open_.back().body);
  return true;
}

// A parallel loop over the region's elements, each of which is printed.
bool Parser::parse_print_tile(std::string text, const Token& word) {
  Region region;
  if (!parse_region(region, "the region to print")) return false;
  if (!region.buffer.valid() || region.extents.size() != program_.buffer(region.buffer).shape.size())
    return true;
  if (in_parallel()) {
    error(DiagCode::misplaced_statement, word, "a region is printed inside a parallel loop",
          "move it out of the loop, or print an element");
    return true;
  }
  Loop loop;
  loop.kind = LoopKind::parallel;
  loop.begin = constant(0, word);
  std::vector<ExprId> point;
  for (size_t d = 0; d < region.extents.size(); ++d) {
    const VarId var = add_unseen_var(word, VarKind::loop);
    program_.vars[var.value].name = "i" + std::to_string(d);
    loop.vars.push_back(var);
    loop.extents.push_back(constant(region.extents[d], word));
    point.push_back(make_binary(ExprOp::add, region.offsets[d], program_.exprs.var(var), word));
    if (!point.back().valid()) return true;
  }
  Print what{std::move(text), {make_load(region.buffer, point, word)}, {}};
  const StmtId made = add_statement(word, std::move(loop));
  if (!made.valid() || !what.values[0].valid()) return made.valid();
  open_.push_back({BlockKind::loop, made, declared_.size(), word, {}});
  const bool added = add_print_statement(std::move(what), word);
  std::get<Loop>(program_.stmts[made.value].node).body = std::move(open_.back().body);
  open_.pop_back();
  return added;
}

}  // namespace tilegen::ir::text
