// Native text of functions, and calls that name several results.
#include <algorithm>

#include "ir/native.h"
#include "ir/native_asm.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// Any number of: asm ptx "...", asm gcn "...", llvm "...", llvm ptx "..."; several texts are its lines.
bool Parser::parse_native_texts(std::vector<NativeText>& texts) {
  while (token_.is("asm") || token_.is("llvm")) {
    NativeText text;
    if (!parse_native_form(text.form)) return false;
    if (token_.kind != TokenKind::string)
      return expected("the native text",
                      "write it between quotation marks, on one line, of printable ASCII characters");
    for (bool first = true; token_.kind == TokenKind::string; first = false) {
      if (!first) text.text += '\n';
      text.text += token_.body;
      advance();
    }
    texts.push_back(std::move(text));
  }
  return true;
}

bool Parser::parse_native_form(NativeForm& form) {
  const Token word = token_;
  advance();
  const bool for_all = word.is("llvm") && token_.kind == TokenKind::string;
  std::string targets;
  for (size_t i = 0; i < kNativeForms; ++i) {
    form = static_cast<NativeForm>(i);
    const NativeFormRow& row = native_form_row(form);
    if (row.language != word.text) continue;
    if (row.target.empty() ? for_all : token_.is(row.target)) {
      if (!for_all) advance();
      return true;
    }
    if (!row.target.empty()) targets += (targets.empty() ? "" : ", ") + std::string(row.target);
  }
  return expected("what has code in that language",
                  "after " + std::string(word.text) + " stands one of " + targets);
}

void Parser::add_native(Function& f, const Token& name, std::vector<NativeText> texts) {
  for (const ExprId value : f.values)
    if (!value.valid()) return;
  if (static_cast<int64_t>(program_.natives.size()) >= limits_.buffers) {
    limit(DiagCode::limit_nodes, name,
          "a program has at most " + std::to_string(limits_.buffers) + " functions with native text",
          "declare fewer");
    return;
  }
  const auto wrong = add_native_function(program_, std::string(name.text), f.parameters, f.values,
                                         std::move(texts), location(name));
  if (wrong)
    error(wrong->code, name, wrong->message, wrong->hint);
  else
    f.native = program_.natives.size() - 1;
}

// f:1(a, b), which counts from 0
bool Parser::parse_chosen_result(const Function& f, size_t& result) {
  advance();
  const Token at = token_;
  int64_t number = 0;
  if (!parse_int(number, "which result of the function")) return false;
  if (number < 0 || static_cast<size_t>(number) >= std::max<size_t>(f.values.size(), 1)) {
    error(DiagCode::rank_mismatch, at, "there is no result " + std::to_string(number),
          "the function gives " + counted(f.values.size(), "value") + ", which count from 0");
    number = 0;
  }
  result = static_cast<size_t>(number);
  if (token_.is("(")) return true;
  return expected("'('", "and the arguments of the function");
}

// let x, y = f(a, b)
bool Parser::parse_let_of_results(Token first, bool assignable) {
  if (assignable) {
    error(DiagCode::misplaced_statement, first, "var declares one name", "name the results with let");
    assignable = false;
  }
  std::vector<Token> names{first};
  while (accept(",")) {
    if (!room_for_rank(names.size(), token_) || !parse_name(names.emplace_back(), "a value's name"))
      return false;
  }
  if (!expect("=", "and a call of a function of several results")) return false;
  const Token at = token_;
  const auto it = at.kind == TokenKind::name ? functions_.find(at.text) : functions_.end();
  if (it == functions_.end())
    return expected("a call of a function of several results", "declare it: fn f(x: f32) -> (f32, f32) ...");
  advance();
  const Function f = it->second;
  std::vector<ExprId> args;
  if (!expect("(", "and the arguments")) return false;
  if (!f.parameters.empty()) {
    do {
      const DType type =
          args.size() < f.parameters.size() ? program_.var(f.parameters[args.size()]).type : DType::none;
      if (!room_for_rank(args.size(), token_) || !parse_expr(args.emplace_back(), kAny, type)) return false;
    } while (accept(","));
  }
  if (!expect(")", "or ',' and a further argument")) return false;
  if (args.size() != f.parameters.size() || names.size() != f.values.size()) {
    error(args.size() != f.parameters.size() ? DiagCode::syntax_error : DiagCode::rank_mismatch, at,
          describe(at) + " takes " + counted(f.parameters.size(), "argument") + " and gives " +
              counted(f.values.size(), "value") + ", found " + std::to_string(args.size()) + " and " +
              counted(names.size(), "name"),
          "give a name for each value");
    args.clear();
  }
  const bool fits = args.size() == f.parameters.size() && arguments_fit(f, args, at);
  std::vector<ExprId> values;
  for (size_t i = 0; i < names.size(); ++i) values.push_back(fits ? result_of(f, i, args, at) : ExprId());
  bool ok = true;
  for (size_t i = 0; i < names.size(); ++i) {
    const VarId var = add_loop_var(names[i], VarKind::loop);
    program_.vars[var.value].type = values[i].valid() ? program_.exprs.type(values[i]) : DType::i64;
    draft_.temporaries[var] = false;
    ok = add_assignment(names[i], var, values[i]) && ok;
  }
  return ok;
}

}  // namespace tilegen::ir::text
