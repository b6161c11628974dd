// Atomic operations on one element, and the old values that they give.
#include "ir/text_parser.h"
#include "support/diag_codes.h"
#include "support/spelling.h"

namespace tilegen::ir::text {

// atomic_add(Y[i, j], value), atomic_compare_exchange(Y[i, j], expected, value)
bool Parser::parse_atomic(Store& store) {
  const Token word = token_;
  store.atomic = atomic_from_text(word.text);
  const bool compares = *store.atomic == AtomicKind::compare_exchange;
  advance();
  if (!expect("(", "and the element to combine with")) return false;
  const Token name = token_;
  if (name.kind != TokenKind::name)
    return expected(
        "the name of a tensor or of a shared tile",
        "write " + std::string(word.text) + "(Y[i], " + (compares ? "expected, " : "") + "value)");
  advance();
  store.buffer = find_buffer(name);
  if (!expect("[", "and the indices of the element")) return false;
  if (!parse_exprs("]", store.indices, "an index")) return false;
  const DType type = store.buffer.valid() ? program_.buffer(store.buffer).type : DType::none;
  if (compares && (!expect(",", "and the value that is expected") || !parse_expr(store.expected, kAny, type)))
    return false;
  if (!expect(",", compares ? "and the value to store" : "and the value to combine with") ||
      !parse_expr(store.value, kAny, type))
    return false;
  if (!expect(")", "to close the operation") || !parse_atomic_order(store.order)) return false;
  if (store.buffer.valid()) check_rank(store.buffer, store.indices.size(), name);
  return true;
}

// {order = release}
bool Parser::parse_atomic_order(AtomicOrder& order) {
  if (!accept("{")) return true;
  if (!expect("order", "the one attribute of an operation on an element") ||
      !expect("=", "and relaxed, acquire, release or acq_rel"))
    return false;
  const auto known = order_from_text(token_.text);
  if (!known) {
    NearestName nearest(token_.text);
    for (int i = 0; i < kAtomicOrders; ++i) nearest.offer(order_text(static_cast<AtomicOrder>(i)));
    error(DiagCode::bad_attribute, token_, "there is no memory order " + describe(token_),
          nearest.hint("the orders are relaxed, acquire, release and acq_rel"));
  }
  order = known.value_or(AtomicOrder::relaxed);
  advance();
  return expect("}", "to close the order");
}

bool Parser::parse_atomic_store() {
  const Token word = token_;
  Store store;
  return parse_atomic(store) && add_statement(word, std::move(store)).valid();
}

// The variable that has the old value of the operation ahead.
bool Parser::parse_named_old(const Token& at, VarId& named) {
  const Token word = token_;
  if (!in_parallel())
    error(DiagCode::misplaced_statement, word,
          "the old value of " + std::string(word.text) + " is taken outside a parallel loop",
          "put it into a parallel loop, if only of one point");
  Store store;
  if (!parse_atomic(store)) return false;
  named = add_unseen_var(at, VarKind::loop);
  if (store.buffer.valid()) program_.vars[named.value].type = program_.buffer(store.buffer).type;
  draft_.temporaries[named] = false;
  const StmtId id = add_statement(word, std::move(store));
  if (id.valid()) draft_.old_values[id] = named;
  return id.valid();
}

// let NAME = atomic_add(Y[i, j], value), behind the "=".
bool Parser::parse_let_of_old(const Token& name, DType type, bool assignable) {
  if (assignable)
    error(
        DiagCode::misplaced_statement, name,
        "var " + std::string(name.text) + " is an old value, which let names",
        "write let old = " + std::string(token_.text) + "(...) and var " + std::string(name.text) + " = old");
  VarId var;
  if (!parse_named_old(name, var)) return false;
  declare(name, SymbolKind::variable, var.value);
  const DType own = program_.var(var).type;
  if (type != DType::none && type != own)
    error(DiagCode::dtype_mismatch, name,
          describe(name) + " is declared " + dtype_name(type) + ", the value is " + dtype_name(own),
          "name the old value without a type, and cast it where it is used");
  return true;
}

// S[i, j] = atomic_add(Y[k], value): shared tiles get the old value as it comes, others by a name for it.
bool Parser::parse_old_value(const Token& name, Store to) {
  if (to.buffer.valid() && program_.buffer(to.buffer).scope == MemScope::shared) {
    Store store;
    if (!parse_atomic(store)) return false;
    store.old = Store::OldValue{to.buffer, std::move(to.indices)};
    return add_statement(name, std::move(store)).valid();
  }
  VarId old;
  Token made = name;
  made.text = "old";
  if (!parse_named_old(made, old)) return false;
  to.value = program_.exprs.var(old, program_.var(old).type);
  return add_statement(name, std::move(to)).valid();
}

}  // namespace tilegen::ir::text
