// Matrix instructions of the text form (ir/matrix_atom.h).
#include "ir/matrix_atom.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {

// "..." or (i, k) -> lane * registers + register
bool Parser::parse_atom_layout(std::string& layout) {
  if (!expect("at", "and where lanes have the elements")) return false;
  if (token_.kind != TokenKind::string) return parse_index_function(layout);
  layout = token_.body;
  if (layout.find('[') == layout.npos)
    error(DiagCode::syntax_error, token_, "expected the text of a fragment, found " + describe(token_),
          "write \"threads 32 : (16,8) -> [0: ..; 1: ..]\", or a function without quotation marks");
  advance();
  return true;
}

// (a: f16[16, 8] at (i, k) -> ..., b: ..., c: ...)
bool Parser::parse_atom_operands(AtomOperands& operands) {
  if (!expect("(", "and the operands A, B and C of the atom")) return false;
  for (size_t i = 0; i < 3; ++i) {
    Token name;
    DType type = DType::f32;
    if ((i > 0 && !expect(",", "and a further operand: an atom has A, B and C")) ||
        !parse_name(name, "an operand's name") || !expect(":", "and the operand's type") ||
        !parse_dtype(type) || !expect("[", "and the operand's rows and columns") ||
        !parse_constant(operands.shapes[i][0], "the number of rows") ||
        !expect(",", "and the number of columns") ||
        !parse_constant(operands.shapes[i][1], "the number of columns") ||
        !expect("]", "behind rows and columns"))
      return false;
    const VarId var = add_unseen_var(name, VarKind::loop);
    program_.vars[var.value].type = type;
    operands.of.parameters.push_back(var);
    declare_constant(name, room_for_node(1, name) ? program_.exprs.var(var, type) : ExprId());
    if (!parse_atom_layout(operands.layouts[i])) return false;
  }
  return expect(")", "behind the operands A, B and C");
}

// atom NAME(...) cycles 16 asm ptx "..." { return c + a * b }
bool Parser::parse_atom() {
  Token name;
  if (!parse_name(name, "the atom's name")) return false;
  if (is_builtin_function(name.text) || functions_.contains(name.text) ||
      find_matrix_atom(program_, name.text) != nullptr)
    error(DiagCode::duplicate_name, name, "there is a function or an atom " + describe(name) + " already",
          "choose another name");
  const size_t mark = declared_.size();
  AtomOperands operands;
  AtomRequest request;
  request.name = name.text;
  request.location = location(name);
  std::vector<NativeText> texts;
  bool ok = parse_atom_operands(operands);
  if (ok && accept("cycles")) ok = parse_constant(request.atom.cycles, "the cycles that it issues in");
  const Token at = token_;
  ok = ok && parse_native_texts(texts);
  if (ok && token_.is("{")) {
    ok = parse_function_body(operands.of, {program_.var(operands.of.parameters[2]).type});
    if (ok && operands.of.values.size() == 1) request.meaning = operands.of.values[0];
    if (ok && !request.meaning.valid()) {
      forget_since(mark);
      return true;  // reported
    }
  }
  forget_since(mark);
  draft_.functions = true;
  if (!ok) return false;
  if (texts.size() != 1) {
    error(DiagCode::bad_native_text, at,
          "the atom " + describe(name) + " has " + std::to_string(texts.size()) + " texts, expected 1",
          "lanes of vendors differ, so an atom is of one: asm ptx \"mma.sync...\" or asm gcn \"v_mfma_...\"");
    return true;
  }
  const auto& [a, b, c] = operands.shapes;
  if (a[0] != c[0] || a[1] != b[0] || b[1] != c[1]) {
    const auto shown = [](const std::array<int64_t, 2>& s) {
      return "[" + std::to_string(s[0]) + ", " + std::to_string(s[1]) + "]";
    };
    error(DiagCode::shape_mismatch, name,
          "the atom " + describe(name) + " has A" + shown(a) + ", B" + shown(b) + ", C" + shown(c),
          "A is m x k, B is k x n, C is m x n");
    return true;
  }
  request.atom.m = a[0], request.atom.n = c[1], request.atom.k = a[1];
  request.atom.layouts = std::move(operands.layouts);
  for (size_t i = 0; i < 3; ++i) request.operands[i] = operands.of.parameters[i];
  request.text = std::move(texts[0]);
  if (const auto wrong = add_matrix_atom(program_, std::move(request), limits_))
    error(wrong->code, name, wrong->message, wrong->hint);
  return true;
}

}  // namespace tilegen::ir::text
