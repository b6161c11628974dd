// Compile-time parameters of the text form, and the constants that they stand in.
#include <algorithm>
#include <utility>

#include "ir/text_parser.h"
#include "support/diag_codes.h"
#include "support/spelling.h"

namespace tilegen::ir::text {

bool Parser::parse_param() {
  Token name;
  if (!parse_name(name, "the compile-time parameter's name")) return false;
  CompileParam param;
  param.name = name.text;
  param.location = location(name);
  std::optional<int64_t> given;
  bool types = false, given_type = false;
  const bool gives = accept("=");
  if (gives && !parse_param_value(given.emplace(0), given_type, "the parameter's value")) return false;
  if (!expect("in", "and the parameter's domain") || !parse_domain(param, types)) return false;
  if (param.domain.empty()) {
    error(DiagCode::bad_domain, name, "the domain of parameter " + describe(name) + " is empty",
          "give at least one value, for example 'param BM in {64, 128}'");
    return true;
  }
  param.value = given && given_type == types ? *given : param.domain.front();
  if (given && (given_type != types ||
                std::find(param.domain.begin(), param.domain.end(), *given) == param.domain.end())) {
    error(DiagCode::bad_domain, name,
          "parameter " + describe(name) + " is " + value_text(given_type, *given) +
              ", expected a value of its domain " + domain_text(types, param),
          "add the value to the domain, or choose one that is in it");
  }
  const int64_t by_default = param.value;
  bind(param, types, name);
  overridden_.push_back(param.value != by_default);
  const auto id = static_cast<uint32_t>(program_.compile_params.size());
  program_.compile_params.push_back(std::move(param));
  param_used_.push_back(false);
  param_of_types_.push_back(types);
  declare(name, SymbolKind::compile_param, id);
  return true;
}

// A plain integer, or a type, whose value is its number among the types.
bool Parser::parse_param_value(int64_t& value, bool& types, std::string_view what) {
  const std::optional<DType> type =
      token_.kind == TokenKind::name ? dtype_from_name(token_.text) : std::nullopt;
  if (!type) return parse_int(value, what);
  value = static_cast<int64_t>(*type);
  types = true;
  advance();
  return true;
}

bool Parser::parse_domain(CompileParam& param, bool& types) {
  if (!expect("{", "and the values of the domain")) return false;
  if (accept("}")) return true;
  do {
    int64_t value = 0;
    Token at = token_;
    if (static_cast<int64_t>(param.domain.size()) >= limits_.domain_values)
      return limit(DiagCode::limit_nodes, at,
                   "the domain of parameter '" + param.name + "' has more than " +
                       std::to_string(limits_.domain_values) + " values",
                   "give fewer values, or split the parameter");
    bool type = false;
    if (!parse_param_value(value, type, "a value of the domain")) return false;
    if (!param.domain.empty() && type != types) {
      error(DiagCode::bad_domain, at,
            "the domain of parameter '" + param.name + "' has types and integers, found " + describe(at) +
                " behind " + value_text(types, param.domain.back()),
            "a parameter is of either: declare two");
      continue;
    }
    types = type;
    if (std::find(param.domain.begin(), param.domain.end(), value) != param.domain.end()) {
      error(DiagCode::bad_domain, at,
            "the domain of parameter '" + param.name + "' has " + value_text(types, value) +
                " twice, expected distinct values",
            "remove one of them");
      continue;
    }
    param.domain.push_back(value);
  } while (accept(","));
  return expect("}", "or ',' and a further value");
}

// Takes the value that the caller has bound to the parameter's name, if any.
void Parser::bind(CompileParam& param, bool types, const Token& at) {
  for (size_t i = 0; i < bindings_.size(); ++i) {
    if (bindings_[i].name != param.name) continue;
    if (bound_[i]) continue;
    bound_[i] = true;
    if (std::find(param.domain.begin(), param.domain.end(), bindings_[i].value) == param.domain.end()) {
      error(DiagCode::bad_binding, at,
            "parameter " + describe(at) + " is bound to " + value_text(types, bindings_[i].value) +
                ", expected a value of its domain " + domain_text(types, param),
            "bind one of these values, or add this one to the domain");
      if (types) return;  // a number that may be no type
    }
    param.value = bindings_[i].value;
    return;
  }
}

// What is wrong with the bindings shows once every declaration has been read.
void Parser::check_bindings() {
  Token at;
  for (size_t i = 0; i < bindings_.size(); ++i) {
    if (bound_[i]) continue;
    const auto twice = std::find_if(bindings_.begin(), bindings_.begin() + static_cast<long>(i),
                                    [&](const ParamBinding& b) { return b.name == bindings_[i].name; });
    const std::string shown = "'" + bindings_[i].name.substr(0, kShownName) + "'";
    if (twice != bindings_.begin() + static_cast<long>(i)) {
      error(DiagCode::bad_binding, at, "parameter " + shown + " is bound twice", "bind it once");
      continue;
    }
    NearestName nearest(bindings_[i].name);
    std::string known;
    for (const CompileParam& p : program_.compile_params) {
      nearest.offer(p.name);
      known += (known.empty() ? "" : ", ") + p.name;
    }
    std::string otherwise = known.empty()
                                ? "declare it before the first kernel, for example 'param BM in {64, 128}'"
                                : "bind one of " + known;
    error(DiagCode::bad_binding, at,
          shown + " is bound, but program '" + program_.name +
              (known.empty() ? "' has no compile-time parameters"
                             : "' has no such compile-time parameter; it has " + known),
          nearest.hint(otherwise));
  }
  // A text that was printed holds its values folded in: another value would change the name only.
  for (size_t i = 0; i < program_.compile_params.size(); ++i) {
    const CompileParam& p = program_.compile_params[i];
    if (!overridden_[i] || param_used_[i]) continue;
    error(DiagCode::bad_binding, p.location,
          "parameter '" + p.name + "' is bound to " + value_text(param_of_types_[i], p.value) +
              ", which changes nothing: the text names it nowhere, as a printed text does whose values are "
              "folded in",
          "bind the parameters of the source text");
  }
}

std::string Parser::value_text(bool types, int64_t value) {
  if (types && value > 0 && value <= static_cast<int64_t>(DType::e8m0))
    return dtype_name(static_cast<DType>(value));
  return std::to_string(value);
}

std::string Parser::domain_text(bool types, const CompileParam& param) {
  std::string out = "{";
  for (size_t i = 0; i < param.domain.size(); ++i) {
    if (i == kShownValues) return out + ", ...}";
    out += (i > 0 ? ", " : "") + value_text(types, param.domain[i]);
  }
  return out + "}";
}

// A type by its own name or that of a parameter.
std::optional<DType> Parser::type_named(std::string_view name) const {
  if (const auto type = dtype_from_name(name)) return type;
  const Symbol* symbol = find(name);
  if (symbol == nullptr || symbol->kind != SymbolKind::compile_param || !param_of_types_[symbol->id])
    return std::nullopt;
  return static_cast<DType>(program_.compile_params[symbol->id].value);
}

ExprId Parser::use_param(uint32_t id, const Token& at) {
  if (param_of_types_[id]) {
    error(DiagCode::syntax_error, at, "expected a value, found " + describe(at) + ", which is a type",
          "a type stands where f32 may: cast(" + std::string(at.text) + ", x), shared " +
              std::string(at.text) + "[64]");
    return {};
  }
  param_used_[id] = true;
  in_constant_.push_back(id);
  return constant(program_.compile_params[id].value, at);
}

// Whether the token ahead may begin a constant; what else stands there is named as what was wanted.
bool Parser::begins_constant(std::string_view what) {
  const std::string hint =
      "write a plain integer such as 128, or arithmetic of integers and compile-time parameters";
  if (token_.kind == TokenKind::number) {
    if (token_.fractional || !token_.suffix.empty())
      return expected(what, "write a plain integer without point or type suffix");
    return true;
  }
  if (token_.kind != TokenKind::name) return token_.is("-") || token_.is("(") || expected(what, hint);
  if (find(token_.text) != nullptr || token_.is("ceildiv") || token_.is("cast") || token_.is("bitcast") ||
      function_from_text(token_.text))
    return true;
  NearestName nearest(token_.text);
  for (const CompileParam& p : program_.compile_params) nearest.offer(p.name);
  return expected(what, nearest.hint(hint));
}

// An integer, or arithmetic of integers and compile-time parameters. It is folded in a pool of its own, so
// that only its value enters the program.
bool Parser::parse_constant(int64_t& out, std::string_view what, std::string_view dynamic) {
  const Token at = token_;
  in_constant_.clear();
  if (!begins_constant(what)) return false;
  ExprPool program_exprs = std::exchange(program_.exprs, ExprPool());
  ExprId id;
  outer_exprs_ = &program_exprs;
  const bool parsed = parse_expr(id, kSum);
  outer_exprs_ = nullptr;
  int64_t value = 0;
  const bool whole = parsed && id.valid() && program_.exprs.type(id) == DType::i64 &&
                     program_.exprs.is_const_int(id, &value);
  program_.exprs = std::move(program_exprs);
  if (!parsed) return false;
  if (!id.valid()) return true;  // already reported
  if (!whole) {
    error(DiagCode::syntax_error, at,
          "expected " + std::string(what) + ", found an expression that is no integer constant",
          "write a plain integer such as 128, or arithmetic of integers and compile-time parameters" +
              (dynamic.empty() ? std::string() : "; " + std::string(dynamic)));
    return true;
  }
  out = value;
  return true;
}

// The same, for what must be at least 1 under every binding.
bool Parser::parse_extent(int64_t& out, std::string_view what, std::string_view dynamic) {
  const Token at = token_;
  if (!parse_constant(out, what, dynamic)) return false;
  if (out >= 1 || in_constant_.empty()) return true;
  std::string values;
  for (size_t i = 0; i < in_constant_.size() && i < kShownValues; ++i) {
    const CompileParam& p = program_.compile_params[in_constant_[i]];
    const std::string one = p.name + " = " + std::to_string(p.value);
    if (values.find(one) == std::string::npos) values += (values.empty() ? "" : ", ") + one;
  }
  error(DiagCode::bad_shape, at,
        std::string(what) + " comes to " + std::to_string(out) + " under " + values + ", expected at least 1",
        "bind other values, or take this one out of the domain");
  out = 1;
  return true;
}

}  // namespace tilegen::ir::text
