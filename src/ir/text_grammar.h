// What the printer and the parser of the text form must agree on: operator levels, function names, reserved
// words.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/expr.h"
#include "ir/tile_op.h"

namespace tilegen::ir::text {

// Binding strength of infix operators; 0 is "any expression".
enum Level : int { kAny = 0, kOr, kAnd, kCompare, kBits, kShift, kSum, kProduct, kPrimary };

// Level of an operator printed infix, or kPrimary for one printed as a call.
Level infix_level(ExprOp op);

struct Infix {
  ExprOp op;
  bool swapped = false;  // `a > b` is `b < a`
};
std::optional<Infix> infix_from_text(std::string_view text);

// Operator written as a call; cast is not among them, its first argument being a type.
std::optional<ExprOp> function_from_text(std::string_view text);

bool is_plain_name(std::string_view name);  // [A-Za-z_][A-Za-z0-9_]*, not longer than kMaxNameLength
// No name for a function of the program.
bool is_builtin_function(std::string_view name);
bool is_reserved(std::string_view name);  // cannot name a variable or buffer

// What a word or a mark of other languages is written as here; empty: it is none that is known.
std::string_view foreign_hint(std::string_view word);

// An op lists these operand slots first, then its value, then after "->" the others.
struct OperandOrder {
  int front[kMaxOperands], back[kMaxOperands];
  int front_count = 0, back_count = 0;
};
OperandOrder operand_order(const OpRow& row);

}  // namespace tilegen::ir::text
