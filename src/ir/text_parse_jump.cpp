// Loops with conditions, and statements that leave loops, of the text form.
#include "ir/draft_jumps.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// while condition { ... }
bool Parser::parse_while() {
  const Token at = token_;
  Loop loop;
  loop.begin = constant(0, at);
  loop.extents = {constant(Draft::kEndless, at)};
  if (!parse_loop_condition(loop)) return false;
  const VarId var = add_unseen_var(at, VarKind::loop);
  program_.vars[var.value].name = "trip";
  loop.vars = {var};
  const StmtId id = add_statement(at, std::move(loop));
  take_label(id);
  return id.valid() && open_block(BlockKind::loop, id, declared_.size());
}

// while condition, behind the bounds of a serial loop or in place of them
bool Parser::parse_loop_condition(Loop& loop) {
  const Token word = token_;
  advance();
  const Token at = token_;
  if (!parse_expr(loop.condition)) return false;
  if (loop.condition.valid() && !is_bool(program_.exprs.type(loop.condition)))
    error(DiagCode::dtype_mismatch, at,
          std::string("the condition of a loop has type ") + dtype_name(program_.exprs.type(loop.condition)) +
              ", not bool",
          "compare it with something, for example 'while x != 0'");
  if (loop.kind != LoopKind::serial)
    error(DiagCode::misplaced_statement, word,
          std::string("a loop of kind ") + loop_kind_name(loop.kind) + " has a condition",
          "make it serial, or put an if into it");
  draft_.conditions = true;
  return true;
}

// break, continue, return
bool Parser::parse_jump(Draft::Jump kind) {
  const Token word = token_;
  advance();
  if (const std::string wrong = jump_refusal(program_, open_statements(), kind); !wrong.empty()) {
    error(DiagCode::misplaced_statement, word, describe(word) + " " + wrong, jump_hint(kind));
    return true;
  }
  const StmtId id = add_statement(word, Branch{});
  if (id.valid()) draft_.jumps[id] = kind;
  return id.valid();
}

// What stands behind a jump in its block never runs.
void Parser::check_reached(const Token& at) {
  const Block& before = open_.back().body;
  if (!before.empty() && draft_.jumps.contains(before.back()))
    error(DiagCode::misplaced_statement, at, "nothing behind a break, continue or return runs",
          "remove what follows it in its block, or put it into an if");
}

}  // namespace tilegen::ir::text
