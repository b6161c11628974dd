// Named values and stores of the text form: let, var and assignments to names and elements.
#include "ir/text_parser.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// let NAME = expr, let NAME: f32 = expr, and so var, which may be assigned again.
bool Parser::parse_let(bool assignable) {
  Token name;
  if (!parse_name(name, "the value's name")) return false;
  if (token_.is(",")) return parse_let_of_results(name, assignable);
  if (assignable && !in_parallel()) {
    error(DiagCode::misplaced_statement, name,
          "var " + std::string(name.text) + " stands outside a parallel loop",
          "name a value that stays with let, or keep one that changes in a tile: alloc " +
              std::string(name.text) + ": local f32[1]");
  }
  DType type = DType::none;
  if (accept(":") && !parse_dtype(type)) return false;
  const Token at = token_;
  if (!expect("=", "and the value that it names")) return false;
  if (atomic_from_text(token_.text)) return parse_let_of_old(name, type, assignable);
  ExprId value;
  if (!parse_value_of(value, name, type, at)) return false;
  const VarId var = add_loop_var(name, VarKind::loop);  // after the value, which cannot use it
  program_.vars[var.value].type = value.valid() ? program_.exprs.type(value) : type;
  if (program_.vars[var.value].type == DType::none) program_.vars[var.value].type = DType::i64;
  draft_.temporaries[var] = assignable;
  return add_assignment(name, var, value);
}

// A statement of its own until the program is whole (ir/draft.h).
bool Parser::add_assignment(const Token& at, VarId var, ExprId value) {
  const StmtId id = add_statement(at, Branch{});
  if (id.valid()) draft_.assignments[id] = {var, value};
  return id.valid();
}

// NAME = expr, NAME += expr
bool Parser::parse_assignment(const Token& name) {
  const VarId var(find(name.text)->id);
  const auto it = draft_.temporaries.find(var);
  if (it == draft_.temporaries.end() || !it->second) {
    const bool is_let = it != draft_.temporaries.end();
    error(DiagCode::misplaced_statement, name,
          describe(name) + (is_let ? " is named by let and cannot be assigned" : " cannot be assigned"),
          is_let ? "declare it with var, or give the new value another name"
                 : "only what var declares changes; a tile is stored to with indices: " +
                       std::string(name.text) + "[...] = ...");
    return false;
  }
  const DType type = program_.var(var).type;
  ExprId old, value;
  if (!token_.is("=")) old = room_for_node(1, name) ? program_.exprs.var(var, type) : ExprId();
  const Token at = token_;
  if (!parse_assigned(value, old, type, "and the new value")) return false;
  if (value.valid() && program_.exprs.type(value) != type) {
    error(DiagCode::dtype_mismatch, at,
          describe(name) + " is " + dtype_name(type) + ", the new value is " +
              dtype_name(program_.exprs.type(value)),
          std::string("write cast(") + dtype_name(type) + ", ...) around it");
    return true;
  }
  return add_assignment(name, var, value);
}

bool Parser::parse_store(const Token& name) {
  Store store;
  store.buffer = find_buffer(name);
  if (!expect("[", "and the indices of the element to store to")) return false;
  if (!parse_exprs("]", store.indices, "an index")) return false;
  if (store.buffer.valid() && token_.is("=")) check_rank(store.buffer, store.indices.size(), name);
  const DType type = store.buffer.valid() ? program_.buffer(store.buffer).type : DType::none;
  ExprId old;
  const bool compound = token_.kind == TokenKind::symbol && !token_.is("=");
  if (accept("=")) {
    if (atomic_from_text(token_.text)) return parse_old_value(name, std::move(store));
    return parse_expr(store.value, kAny, type) && add_stored(name, std::move(store));
  }
  if (compound && store.buffer.valid()) old = make_load(store.buffer, store.indices, name);
  return parse_assigned(store.value, old, type, "and the value to store") &&
         add_stored(name, std::move(store));
}

bool Parser::add_stored(const Token& name, Store store) {
  const StmtId id = add_statement(name, std::move(store));
  take_label(id);
  return id.valid();
}

// What stands behind the place that is assigned: "= expr", or "+= expr" on its old value.
bool Parser::parse_assigned(ExprId& value, ExprId old, DType type, std::string_view what) {
  static constexpr struct {
    std::string_view text;
    ExprOp op;
  } kCompound[] = {{"+=", ExprOp::add},     {"-=", ExprOp::sub},       {"*=", ExprOp::mul},
                   {"/=", ExprOp::div},     {"//=", ExprOp::floordiv}, {"%=", ExprOp::floormod},
                   {"&=", ExprOp::bit_and}, {"|=", ExprOp::bit_or},    {"^=", ExprOp::bit_xor},
                   {"<<=", ExprOp::shl},    {">>=", ExprOp::shr}};
  const Token at = token_;
  for (const auto& [text, op] : kCompound) {
    if (!accept(text)) continue;
    if (!parse_expr(value, kAny, type)) return false;
    if (old.valid() && value.valid() && program_.exprs.type(value) != type) {
      // Casting what is assigned to is no way out.
      const std::string other = dtype_name(program_.exprs.type(value)), own = dtype_name(type);
      error(DiagCode::dtype_mismatch, at,
            "the operands of " + describe(at) + " have types " + own + " and " + other +
                "; both must have the same",
            "write cast(" + own + ", ...) around the value, or declare what it is added to as " + other +
                ": var s: " + other + " = 0");
      value = {};
      return true;
    }
    value = make_binary(op, old, value, at);
    return true;
  }
  if (token_.is("+") || token_.is("-"))
    return expected("'=' " + std::string(what), "write " + std::string(token_.text) + "= 1 here");
  return expect("=", what) && parse_expr(value, kAny, type);
}

}  // namespace tilegen::ir::text
