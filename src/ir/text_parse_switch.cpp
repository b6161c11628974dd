// switch of the text form: ifs in the else of each other, on a value that is taken once.
#include <charconv>

#include "ir/text_parser.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// switch value { case 0, 1 { ... } case 2 { ... } else { ... } }
bool Parser::parse_switch() {
  const Token word = token_;
  advance();
  const Token at = token_;
  ExprId value;
  if (!parse_expr(value) || !expect("{", "and the first case")) return false;
  if (value.valid() && !is_integer(program_.exprs.type(value))) {
    error(DiagCode::dtype_mismatch, at,
          std::string("the value of a switch has type ") + dtype_name(program_.exprs.type(value)) +
              ", expected an integer",
          "cast it, or write ifs");
    value = ExprId();
  }
  if (!value.valid()) value = constant(0, at);
  if (!value.valid()) return false;
  const VarId chosen = add_unseen_var(word, VarKind::loop);
  program_.vars[chosen.value].name = "chosen";
  program_.vars[chosen.value].type = program_.exprs.type(value);
  draft_.temporaries[chosen] = false;
  return add_assignment(word, chosen, value) && parse_case(chosen);
}

// case 0, 1 {
bool Parser::parse_case(VarId chosen) {
  const Token word = token_;
  if (!expect("case", "and the values of the case")) return false;
  const DType type = program_.var(chosen).type;
  Branch branch;
  do {
    const Token at = token_;
    int64_t number = 0;
    if (!parse_case_value(number, type)) return false;
    if (wrap_to(type, number) != number)
      error(DiagCode::dtype_mismatch, at,
            "the value " + std::to_string(number) + " of a case is none of " + dtype_name(type),
            "cast what the switch chooses by");
    ExprPool& e = program_.exprs;
    const int depth = branch.condition.valid() ? e[branch.condition].depth + 1 : 2;
    if (!room_for_node(depth, at)) return false;
    const ExprId same = e.binary(ExprOp::eq, e.var(chosen, type), e.const_int(number, type));
    branch.condition = branch.condition.valid() ? e.binary(ExprOp::logical_or, branch.condition, same) : same;
  } while (accept(","));
  const StmtId id = add_statement(word, std::move(branch));
  if (!id.valid() || !open_block(BlockKind::then_body, id, declared_.size())) return false;
  open_.back().chosen = chosen;
  return true;
}

// A literal may have its type behind it, and be one that only u64 has; else as other constants.
bool Parser::parse_case_value(int64_t& number, DType type) {
  const Token at = token_;
  const bool literal = at.kind == TokenKind::number && !at.fractional;
  int64_t plain = 0;
  const std::string digits = at.digits();
  const bool beyond =
      literal && is_u64(type) &&
      std::from_chars(digits.data(), digits.data() + digits.size(), plain, at.base).ec != std::errc();
  if (!literal || (at.suffix.empty() && !beyond)) return parse_constant(number, "a value of the case");
  advance();
  if (!token_.is(",") && !token_.is("{"))
    return expected("',' or '{'", "a value with a type, or of u64, is one number; name others by let");
  const ExprId value = make_literal(at, false, type);
  if (!value.valid()) return true;  // told
  if (const DType own = program_.exprs.type(value); own != type) {
    error(DiagCode::dtype_mismatch, at,
          "the value " + std::string(at.text) + " of a case is " + dtype_name(own) + ", expected " +
              dtype_name(type),
          "cast what the switch chooses by, or leave the type out");
    return true;
  }
  program_.exprs.is_const_int(value, &number);
  return true;
}

// A further case, the else, or the end of the switch.
bool Parser::close_case(const OpenBlock& closed) {
  if (closed.kind == BlockKind::then_body && token_.is("case")) {
    if (static_cast<int64_t>(open_.size()) > limits_.nesting)
      return open_block(BlockKind::else_body, closed.stmt, declared_.size());
    open_.push_back({BlockKind::else_body, closed.stmt, declared_.size(), token_, {}, true});
    if (parse_case(closed.chosen)) return true;
    open_.pop_back();
    return false;
  }
  if (closed.kind == BlockKind::then_body && accept("else")) {
    if (!open_block(BlockKind::else_body, closed.stmt, declared_.size())) return false;
    open_.back().chosen = closed.chosen;
    return true;
  }
  return expect("}", "to close the switch, or a further case") && close_chain();
}

}  // namespace tilegen::ir::text
