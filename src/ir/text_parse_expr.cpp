// Expressions of the text form, by operator precedence over two explicit stacks.
#include <algorithm>
#include <array>

#include "ir/cast_modes.h"
#include "ir/lane_exchange.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// An operator or an open bracket that waits for its right-hand side.
struct Parser::Pending {
  enum class Kind : uint8_t {
    infix,
    minus,
    negation,
    paren,
    call,
    cast,
    ceildiv,
    uniform,
    function,
    lanes,
    ids,
    unknown_call,
    load
  };
  Kind kind;
  Token at;
  Infix infix{};             // infix
  ExprOp op{};               // call
  DType type = DType::none;  // cast
  CastMode mode{};           // cast
  BufferId buffer{};         // load; invalid = unknown name, already reported
  const Function* function = nullptr;
  std::optional<size_t> result{};  // function: which of several
  size_t base = 0;                 // bracket: operands below it

  bool bracket() const { return kind != Kind::infix && kind != Kind::minus && kind != Kind::negation; }
  // How tightly it binds.
  int level() const {
    if (kind == Kind::minus) return kPrimary;
    return kind == Kind::negation ? kAnd : infix_level(infix.op);
  }
};

struct Parser::ExprStacks {
  std::vector<Operand> operands;
  std::vector<Pending> pending;
  int64_t brackets = 0;
};

using Kind = Parser::Pending::Kind;

bool Parser::parse_expr(ExprId& out, Level loosest, DType context) {
  ExprStacks s;
  for (;;) {
    bool complete = false;
    while (!complete)
      if (!parse_operand(s, complete)) return false;
    // After an operand: close what closes here, then go on with an operator, a further argument, or end.
    while (s.brackets > 0 && (token_.is(")") || token_.is("]") || ends_cast_value(s)))
      if (!close_bracket(s)) return false;
    if (std::optional<Infix> infix = infix_from_text(token_.text);
        infix && token_.kind != TokenKind::number && (s.brackets > 0 || infix_level(infix->op) >= loosest)) {
      if (!parse_infix(s, *infix)) return false;
      continue;
    }
    if (s.brackets == 0) break;
    reduce_to_bracket(s);
    const Pending& open = s.pending.back();
    if (!token_.is(",") || open.kind == Kind::paren)
      return expected(std::string(open.kind == Kind::load ? "']'" : "')'") +
                          (open.kind == Kind::paren ? "" : " or ','") + " or an operator",
                      "the bracket opened at line " + std::to_string(open.at.line) + ", column " +
                          std::to_string(open.at.column) + " is still open");
    advance();
  }
  while (!s.pending.empty()) reduce(s);
  if (stopped_) return false;
  out = typed(s.operands.back(), context);
  return !stopped_;
}

bool Parser::push_prefix(ExprStacks& s, Pending p) {
  if (static_cast<int64_t>(s.pending.size()) > limits_.expr_depth * kPrimary)
    return limit(DiagCode::limit_nesting, p.at, "too many operators wait for an operand",
                 "split the expression");
  s.pending.push_back(std::move(p));
  return true;
}

// Reads up to one operand; `complete` stays false after an opening bracket, a unary minus or a `not`.
bool Parser::parse_operand(ExprStacks& s, bool& complete) {
  Token at = token_;
  if (token_.is("-")) {
    advance();
    if (token_.kind == TokenKind::number || token_.is("inf") || token_.is("nan")) {
      ExprId id;
      Token literal = token_;
      advance();
      if (literal.kind == TokenKind::name && token_.is(":")) {
        if (!parse_special_float(id, literal, true)) return false;
      } else if (literal.hex && token_.is(":")) {
        error(DiagCode::syntax_error, literal, "exact bits carry their sign and take no '-'",
              "set the highest bit");
        if (!parse_bits(id, literal)) return false;
      } else {
        s.operands.push_back(literal.suffix.empty() ? open_literal(literal, true)
                                                    : Operand{make_literal(literal, true)});
        complete = true;
        return true;
      }
      s.operands.push_back({id});
      complete = true;
      return true;
    }
    return push_prefix(s, {Kind::minus, at});
  }
  if (token_.is("(")) {
    advance();
    return push_bracket(s, {Kind::paren, at});
  }
  if (token_.kind == TokenKind::number) {
    advance();
    Operand operand;
    if (at.hex && token_.is(":")) {
      if (!parse_bits(operand.id, at)) return false;
    } else if (at.suffix.empty()) {
      operand = open_literal(at, false);
    } else {
      operand.id = make_literal(at, false);
    }
    s.operands.push_back(operand);
    complete = true;
    return true;
  }
  if (token_.kind == TokenKind::name && !token_.is("and") && !token_.is("or"))
    return parse_named_operand(s, complete);
  return expected("an expression", "write a literal, a name, a function call, or '('");
}

bool Parser::parse_named_operand(ExprStacks& s, bool& complete) {
  Token name = token_;
  advance();
  complete = true;
  if (name.text == "true" || name.text == "false") {
    s.operands.push_back(
        {room_for_node(1, name) ? program_.exprs.const_int(name.text == "true", DType::boolean) : ExprId()});
    return true;
  }
  if (name.text == "inf" || name.text == "nan") {
    if (token_.is(":")) return parse_special_float(s.operands.emplace_back().id, name, false);
    s.operands.push_back(open_literal(name, false));
    return true;
  }
  // The opposite of a comparison, unlike a call, which takes what its parentheses hold.
  if (name.text == "not" && !token_.is("(")) {
    complete = false;
    return push_prefix(s, {Kind::negation, name});
  }
  if (name.text == "present" && token_.is("(")) return parse_present(s.operands.emplace_back().id);
  if (token_.is("(")) return open_call(s, name, {}, complete);
  if (const auto f = functions_.find(name.text); token_.is(":") && f != functions_.end()) {
    size_t result = 0;
    return parse_chosen_result(f->second, result) && open_call(s, name, result, complete);
  }
  if (token_.is("[")) {
    Pending load{Kind::load, name};
    load.buffer = find_buffer(name);
    advance();
    if (!push_bracket(s, std::move(load))) return false;
    complete = token_.is("]");
    return !complete || close_bracket(s);
  }
  s.operands.push_back({make_variable(name)});
  return true;
}

bool Parser::open_call(ExprStacks& s, const Token& name, std::optional<size_t> result, bool& complete) {
  complete = false;
  advance();
  Pending call{Kind::call, name};
  call.result = result;
  if (name.text == "cast" || name.text == "bitcast") {
    call.kind = Kind::cast;
    call.op = name.text == "cast" ? ExprOp::cast : ExprOp::bitcast;
    bool known = type_named(token_.text).has_value();  // without a type the rest would only raise more errors
    if (!parse_dtype(call.type) || !known || !expect(",", "and the value to " + std::string(name.text)))
      return false;
  } else if (name.text == "ceildiv") {
    call.kind = Kind::ceildiv;
  } else if (name.text == "uniform") {
    call.kind = Kind::uniform;
  } else if (std::optional<ExprOp> op = function_from_text(name.text)) {
    call.op = *op;
  } else if (const Function* function = find_function(name)) {
    call.kind = Kind::function;
    call.function = function;
  } else if (lane_op_from_text(name.text)) {
    call.kind = Kind::lanes;
  } else if (id_op_from_text(name.text)) {
    call.kind = Kind::ids;
  } else {
    call.kind = Kind::unknown_call;
    unknown_function(name);
  }
  const bool takes_none =
      call.kind == Kind::ids || (call.kind == Kind::function && call.function->parameters.empty());
  const bool empty = takes_none && token_.is(")");
  if (!push_bracket(s, std::move(call))) return false;
  complete = empty;
  return !empty || close_bracket(s);
}

// Behind a comma in a cast stand words that say how it is done.
bool Parser::ends_cast_value(const ExprStacks& s) const {
  if (!token_.is(",")) return false;
  const auto open =
      std::find_if(s.pending.rbegin(), s.pending.rend(), [](const Pending& p) { return p.bracket(); });
  return open->kind == Kind::cast && open->op == ExprOp::cast;
}

bool Parser::push_bracket(ExprStacks& s, Pending p) {
  if (++s.brackets > limits_.expr_depth)
    return limit(DiagCode::limit_nesting, p.at,
                 "an expression nests deeper than " + std::to_string(limits_.expr_depth) + " levels",
                 "store a part of it in a local buffer first");
  p.base = s.operands.size();
  s.pending.push_back(std::move(p));
  return true;
}

bool Parser::parse_infix(ExprStacks& s, const Infix& infix) {
  const int level = infix_level(infix.op);
  while (!s.pending.empty() && !s.pending.back().bracket()) {
    const Pending& top = s.pending.back();
    const int top_level = top.level();
    if (top_level < level) break;
    if (top_level == kCompare && level == kCompare) {
      error(DiagCode::syntax_error, token_,
            "comparisons do not chain: " + describe(token_) + " follows " + describe(top.at),
            "join two comparisons with 'and', or use parentheses");
      return false;
    }
    reduce(s);
  }
  Pending p{Kind::infix, token_};
  p.infix = infix;
  s.pending.push_back(std::move(p));
  advance();
  return true;
}

// Applies the operator on top of the stack.
void Parser::reduce(ExprStacks& s) {
  Pending top = std::move(s.pending.back());
  s.pending.pop_back();
  Operand right = s.operands.back();
  if (top.kind == Kind::minus || top.kind == Kind::negation) {
    const ExprOp op = top.kind == Kind::minus ? ExprOp::neg : ExprOp::logical_not;
    if (is_of_literals(op, {&right, 1}))
      s.operands.back() = computed(op, {&right, 1}, top.at);
    else
      s.operands.back() = {make_unary(op, typed(right, DType::none), top.at)};
    return;
  }
  s.operands.pop_back();
  const std::array both{std::move(s.operands.back()), std::move(right)};
  if (is_of_literals(top.infix.op, both)) {
    s.operands.back() = computed(top.infix.op, both, top.at);
    return;
  }
  const auto& [left, last] = both;
  const DType context = context_of(both);
  ExprId a = typed(left, context), b = typed(last, context);
  if (top.infix.swapped) std::swap(a, b);
  s.operands.back() = {make_binary(top.infix.op, a, b, top.at)};
}

void Parser::reduce_to_bracket(ExprStacks& s) {
  while (!s.pending.back().bracket()) reduce(s);
}

// What stands in a bracket. Literals without a type take that of the values beside them, in a cast to a float
// with a fraction the cast's; a select's condition has a type of its own.
std::vector<ExprId> Parser::arguments(const ExprStacks& s, const Pending& open) {
  const std::span<const Operand> operands = std::span<const Operand>(s.operands).subspan(open.base);
  const size_t first = open.kind == Kind::call && open.op == ExprOp::select ? 1 : 0;
  DType context = DType::none;
  if (open.kind == Kind::call && operands.size() > first) context = context_of(operands.subspan(first));
  std::vector<ExprId> args;
  for (const Operand& o : operands) {
    // What an unknown function takes is not known: a literal without a type is no further mistake.
    if (open.kind == Kind::unknown_call && o.untyped) {
      args.emplace_back();
      continue;
    }
    const bool of_cast = open.op == ExprOp::cast && is_float(open.type) && is_real(o);
    const bool of_function = open.kind == Kind::function && args.size() < open.function->parameters.size();
    DType own = of_cast ? open.type : args.size() < first ? DType::none : context;
    if (of_function) own = program_.var(open.function->parameters[args.size()]).type;
    args.push_back(typed(o, own));
  }
  return args;
}

bool Parser::close_bracket(ExprStacks& s) {
  reduce_to_bracket(s);
  Pending top = std::move(s.pending.back());
  s.pending.pop_back();
  --s.brackets;
  if (top.kind == Kind::cast && top.op == ExprOp::cast && !parse_cast_mode(top.mode)) return false;
  std::string_view close = top.kind == Kind::load ? "]" : ")";
  if (!expect(close, "to close the bracket opened at line " + std::to_string(top.at.line) + ", column " +
                         std::to_string(top.at.column)))
    return false;
  if (top.kind == Kind::paren) return true;
  const std::span<const Operand> operands = std::span<const Operand>(s.operands).subspan(top.base);
  if (top.kind == Kind::call && is_of_literals(top.op, operands)) {
    Operand value = computed(top.op, operands, top.at);
    s.operands.resize(top.base);
    s.operands.push_back(std::move(value));
    return true;
  }
  const std::vector<ExprId> args = arguments(s, top);
  int arity = -1;
  if (top.kind == Kind::call) arity = expr_arity(top.op);
  if (top.kind == Kind::cast || top.kind == Kind::uniform) arity = 1;
  if (top.kind == Kind::ceildiv) arity = 2;
  if (top.kind == Kind::lanes) arity = is_vote(*lane_op_from_text(top.at.text)) ? 1 : 2;
  if (top.kind == Kind::ids) arity = 0;
  if (top.kind == Kind::function) arity = static_cast<int>(top.function->parameters.size());
  ExprId result;
  if (arity >= 0 && static_cast<int>(args.size()) != arity) {
    const int shown = top.kind == Kind::cast ? 1 : 0;  // the type counts for the reader
    const bool nests = top.kind == Kind::call && (top.op == ExprOp::min || top.op == ExprOp::max);
    error(DiagCode::syntax_error, top.at,
          describe(top.at) + " takes " + std::to_string(arity + shown) + " arguments, found " +
              std::to_string(args.size() + shown),
          nests && args.size() > 2 ? "nest the calls, as in max(a, max(b, c))"
                                   : "give exactly " + std::to_string(arity + shown));
  } else if (top.kind == Kind::load) {
    if (top.buffer.valid()) result = make_load(top.buffer, args, top.at);
  } else if (top.kind == Kind::function) {
    result = call_function(*top.function, top.result, args, top.at);
  } else if (top.kind == Kind::cast) {
    result = top.op == ExprOp::bitcast ? make_bitcast(top.type, args[0], top.at)
                                       : make_cast(top.type, args[0], top.mode, top.at);
  } else if (top.kind == Kind::lanes) {
    result = make_lane_call(top.at.text, args, top.at);
  } else if (top.kind == Kind::ids) {
    result = make_id_call(*id_op_from_text(top.at.text), top.at);
  } else if (top.kind == Kind::uniform) {
    result = make_uniform(args[0], top.at);
  } else if (top.kind == Kind::ceildiv) {
    result = make_ceildiv(args[0], args[1], top.at);
  } else if (arity == 1) {
    result = make_unary(top.op, args[0], top.at);
  } else if (arity == 2) {
    result = make_binary(top.op, args[0], args[1], top.at);
  } else if (arity == 3) {
    result = make_ternary(top.op, args[0], args[1], args[2], top.at);
  }
  s.operands.resize(top.base);
  s.operands.push_back({result});
  return true;
}

}  // namespace tilegen::ir::text
