#include "emit/c_functions.h"

#include <algorithm>

#include "emit/c_expressions.h"

namespace tilegen::emit {
namespace {

constexpr size_t kLongestLiteral = 90;  // characters with quotation marks

// "llvm ptx" is llvm_ptx, a word that no name of the program takes.
std::string variable_of(ir::NativeForm form) {
  std::string words(ir::native_form_row(form).words);
  std::replace(words.begin(), words.end(), ' ', '_');
  return words;
}

std::string constant_of(ir::NativeForm form) {
  return "TL_NATIVE_" + upper(is_asm(form) ? ir::native_form_row(form).target : variable_of(form));
}

// A literal for each line of the text; a long line is several.
std::vector<std::string> literals_of(std::string_view text) {
  if (text.empty()) return {quoted(text)};
  std::vector<std::string> literals;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;  // a line holds its end
    size_t taken = std::min(end - at, kLongestLiteral);
    std::string literal = quoted(text.substr(at, taken));
    while (literal.size() > kLongestLiteral) literal = quoted(text.substr(at, --taken));
    literals.push_back(std::move(literal));
    at += taken;
  }
  return literals;
}

void write_text(const ir::NativeText& t, CSource& source) {
  source.line("const char *const " + variable_of(t.form) + " =");
  const std::vector<std::string> literals = literals_of(t.text);
  for (size_t i = 0; i < literals.size(); ++i)
    source.continuation(literals[i] + (i + 1 < literals.size() ? "" : ";"));
}

}  // namespace

namespace {

// The operands as variables of C, in their order.
std::vector<std::string> write_operands(const ir::Program& p, const ir::NativeFunction& f, CNames& names,
                                        CSource& source) {
  std::vector<std::string> operands;
  const std::vector<std::string> written = names.written_operands(p, f);
  for (size_t i = 0; i < written.size(); ++i) {
    operands.push_back(names.operand(written[i]));
    source.line("const tl_expr " + operands[i] + " = tl_operand(t, " +
                joined({dtype_constant(f.parameters[i].type), quoted(written[i])}) + ");");
  }
  return operands;
}

std::string list_of(CSource& source, const char* name, const char* type,
                    const std::vector<std::string>& items) {
  return source.macro(name, "(...)", "(const " + std::string(type) + "[]){__VA_ARGS__}") + "(" +
         joined(items) + ")";
}

void write_atom(const ir::Program& p, const ir::NativeFunction& f, CNames& names, CSource& source) {
  const ir::MatrixAtom& atom = *f.atom;
  source.blank();
  source.open("atom " + f.name);
  write_text(f.texts.front(), source);
  std::vector<std::string> types, layouts;
  for (size_t i = 0; i < 3; ++i) {
    types.push_back(dtype_constant(f.parameters[i].type));
    layouts.push_back(std::string(1, "abc"[i]) + "_layout");
    source.line("const char *const " + layouts.back() + " =");
    const std::vector<std::string> literals = literals_of(atom.layouts[i]);
    for (size_t l = 0; l < literals.size(); ++l)
      source.continuation(literals[l] + (l + 1 < literals.size() ? "" : ";"));
  }
  std::string operands = "NULL", meaning = "(tl_expr){0}";
  if (!f.results.empty()) {
    const std::vector<std::string> own = write_operands(p, f, names, source);
    meaning = CExpressions(p, names, source, f, own).value(f.results[0]);
    operands = list_of(source, "EXPRS", "tl_expr", own);
  }
  const std::vector<std::string> shape = {std::to_string(atom.m), std::to_string(atom.n),
                                          std::to_string(atom.k)};
  source.line("tl_matrix_atom(t, " +
              joined({quoted(f.name), list_of(source, "NUMBERS", "int64_t", shape),
                      list_of(source, "DTYPES", "tl_dtype", types),
                      list_of(source, "NAMES", "char *const", layouts), std::to_string(atom.cycles), operands,
                      meaning, constant_of(f.texts.front().form), variable_of(f.texts.front().form)}) +
              ");");
  source.close();
}

}  // namespace

void write_function(const ir::Program& p, const ir::NativeFunction& f, CNames& names, CSource& source) {
  if (f.atom) return write_atom(p, f, names, source);
  source.blank();
  source.open("fn " + f.name);
  std::vector<std::string> forms, texts;
  for (const ir::NativeText& t : f.texts) {
    write_text(t, source);
    forms.push_back(constant_of(t.form));
    texts.push_back(variable_of(t.form));
  }
  const std::vector<std::string> operands = write_operands(p, f, names, source);
  CExpressions meaning(p, names, source, f, operands);
  const std::string results = meaning.list(f.results);
  const auto list = [&](const char* name, const char* type, const std::vector<std::string>& items) {
    return list_of(source, name, type, items);
  };
  source.line("tl_function(t, " +
              joined({quoted(f.name), std::to_string(operands.size()), list("EXPRS", "tl_expr", operands),
                      std::to_string(f.results.size()), results, std::to_string(texts.size()),
                      list("FORMS", "tl_native_form", forms), list("NAMES", "char *const", texts)}) +
              ");");
  source.close();
}

}  // namespace tilegen::emit
