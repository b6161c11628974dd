// Layouts as functions of the indices in the text form: (i, j) -> i * 72 + j.
#include <utility>

#include "ir/annotations.h"
#include "ir/text.h"
#include "ir/text_parser.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// Its names hide others. The expression has a pool of its own.
bool Parser::parse_index_names(std::vector<VarId>& vars, std::vector<HiddenName>& hidden) {
  if (!expect("(", "and the indices of the layout")) return false;
  do {
    Token name;
    if (!room_for_rank(vars.size(), token_) || !parse_name(name, "the name of an index")) return false;
    for (const HiddenName& other : hidden)
      if (other.name == name.text)
        error(DiagCode::duplicate_name, name, "two indices of the layout are called " + describe(name),
              "give each a name of its own");
    vars.push_back(add_unseen_var(name, VarKind::loop));
    const auto old = symbols_.find(name.text);
    hidden.push_back({name.text, old == symbols_.end() ? std::nullopt : std::optional(old->second)});
    symbols_.insert_or_assign(name.text,
                              Symbol{SymbolKind::variable, vars.back().value, name.line, name.column});
  } while (accept(","));
  return expect(")", "or ',' and a further index") && expect("->", "and the offset of an element");
}

bool Parser::parse_index_function(std::string& out) {
  const Token at = token_;
  const size_t known = program_.vars.size();
  std::vector<VarId> vars;
  std::vector<HiddenName> hidden;
  bool ok = parse_index_names(vars, hidden);
  index_function_ = {};
  if (ok) {
    ExprPool outer = std::exchange(program_.exprs, ExprPool());
    outer_exprs_ = &outer;
    ok = parse_expr(index_function_.offset, kAny, DType::i64);
    outer_exprs_ = nullptr;
    index_function_.exprs = std::exchange(program_.exprs, std::move(outer));
    if (ok && index_function_.offset.valid()) {
      index_function_.indices = vars;
      if (is_index_function(known, at)) out = print_index_function(vars);
    }
  }
  program_.vars.resize(known);
  for (size_t i = hidden.size(); i-- > 0;) {
    symbols_.erase(hidden[i].name);
    if (hidden[i].symbol) symbols_.emplace(hidden[i].name, *hidden[i].symbol);
  }
  if (out.empty()) out = "(i) -> i";  // reported
  return ok;
}

bool Parser::is_index_function(size_t first_index, const Token& at) {
  const ExprPool& e = index_function_.exprs;
  if (e.size() > kMostIndexNodes)
    return limit(DiagCode::limit_nodes, at,
                 "a layout's function has more than " + std::to_string(kMostIndexNodes) + " expression nodes",
                 "write it shorter, or give the layout's text");
  for (size_t i = 0; i < e.size(); ++i) {
    const ExprNode& n = e[ExprId(i)];
    const bool other = n.op == ExprOp::var && n.var().value < first_index;
    if (!other && n.op != ExprOp::load) continue;
    error(DiagCode::out_of_scope, at,
          "a layout's function names " +
              (other ? "'" + program_.var(n.var()).name + "'" : std::string("memory")) +
              ", which is not one of its indices",
          "an offset is made of the indices, integers and compile-time parameters");
    return false;
  }
  const DType type = e.type(index_function_.offset);
  if (type == DType::i64) return true;
  error(DiagCode::dtype_mismatch, at,
        std::string("a layout's function gives ") + dtype_name(type) + ", not i64",
        "write cast(i64, ...) around it");
  return false;
}

std::string Parser::print_index_function(std::span<const VarId> vars) const {
  Program shown;
  shown.vars = program_.vars;
  shown.exprs = index_function_.exprs;
  std::string text;
  for (VarId v : vars) text += (text.empty() ? "(" : ", ") + program_.var(v).name;
  return text + ") -> " + print_expr(shown, index_function_.offset);
}

namespace {

// Of all nodes in their order, operands before what uses them.
int64_t offset_at(const ExprPool& e, ExprId root, std::span<const VarId> indices, std::span<const int64_t> at,
                  std::vector<ScalarValue>& values) {
  values.resize(e.size());
  for (size_t i = 0; i <= root.value; ++i) {
    const ExprNode& n = e[ExprId(i)];
    int64_t number = 0;
    const auto of = [&](ExprId id) { return id.valid() ? values[id.value] : ScalarValue(); };
    if (n.op == ExprOp::var) {
      for (size_t d = 0; d < indices.size(); ++d)
        if (indices[d] == n.var()) number = at[d];
      values[i] = {DType::i64, number, 0};
    } else if (e.is_const(ExprId(i))) {
      values[i] = is_float(n.type) ? ScalarValue{n.type, 0, n.float_value()} : ScalarValue{n.type, n.imm, 0};
    } else {
      values[i] = eval_operation(n.op, n.type, of(n.a), of(n.b), of(n.c));
    }
  }
  return values[root.value].i;
}

}  // namespace

Expected<std::vector<int64_t>> Parser::run_index_function(std::span<const int64_t> shape) {
  advance();
  std::string text;
  const bool read = parse_index_function(text);
  if (read && index_function_.indices.size() != shape.size())
    error(DiagCode::rank_mismatch, token_,
          "the layout is a function of " + std::to_string(index_function_.indices.size()) +
              " indices, and the tile has " + std::to_string(shape.size()) + " dimensions",
          "give one index for each dimension");
  if (!diagnostics_.empty()) {
    Error e;
    e.diagnostics = std::move(diagnostics_);
    return e;
  }
  const int64_t count = checked_product(shape).value_or(0);
  std::vector<int64_t> offsets, index(shape.size(), 0);
  std::vector<ScalarValue> values;
  for (int64_t i = 0; i < count; ++i) {
    offsets.push_back(
        offset_at(index_function_.exprs, index_function_.offset, index_function_.indices, index, values));
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
  }
  return offsets;
}

}  // namespace tilegen::ir::text

namespace tilegen::ir {

Expected<std::vector<int64_t>> index_function_values(std::string_view text, std::span<const int64_t> shape,
                                                     const Limits& limits) {
  return text::Parser(text, "", limits, nullptr).run_index_function(shape);
}

}  // namespace tilegen::ir
