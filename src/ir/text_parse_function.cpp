// Constants and functions of the text form. Both are expressions that take the place of their names.
#include "ir/lane_exchange.h"
#include "ir/library_functions.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"
#include "support/spelling.h"

namespace tilegen::ir::text {
namespace {

class Arguments : public ExprRewriter {
 public:
  Arguments(ExprPool& pool, const std::vector<VarId>& parameters, std::span<const ExprId> args)
      : ExprRewriter(pool, pool), parameters_(parameters), args_(args) {}

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    for (size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i] == n.var()) return args_[i];
    return to_->var(n.var(), n.type);
  }

 private:
  const std::vector<VarId>& parameters_;
  const std::span<const ExprId> args_;
};

}  // namespace

void Parser::declare_constant(const Token& name, ExprId value) {
  declare(name, SymbolKind::constant, static_cast<uint32_t>(constants_.size()));
  constants_.push_back(value);
}

ExprId Parser::use_constant(uint32_t id, const Token& at) {
  const ExprId value = constants_[id];
  if (outer_exprs_ == nullptr || !value.valid()) return value;
  int64_t number = 0;
  if (outer_exprs_->type(value) == DType::i64 && outer_exprs_->is_const_int(value, &number))
    return constant(number, at);
  error(DiagCode::syntax_error, at, "expected an integer constant, found " + describe(at),
        "it depends on what is known at launch only, or is no i64");
  return {};
}

// "= expr" of the type, where one is given.
bool Parser::parse_typed_value(ExprId& value, const Token& name, DType type) {
  const Token at = token_;
  return expect("=", "and the value that it names") && parse_value_of(value, name, type, at);
}

bool Parser::parse_value_of(ExprId& value, const Token& name, DType type, const Token& at) {
  if (!parse_expr(value, kAny, type)) return false;
  if (!value.valid() || type == DType::none || program_.exprs.type(value) == type) return true;
  error(DiagCode::dtype_mismatch, at,
        describe(name) + " is declared " + dtype_name(type) + ", the value is " +
            dtype_name(program_.exprs.type(value)),
        std::string("write cast(") + dtype_name(type) + ", ...) around it");
  value = ExprId();
  return true;
}

// let NAME = expr, before the kernels: of constants, dims and scalars.
bool Parser::parse_top_level_let() {
  Token name;
  DType type = DType::none;
  ExprId value;
  if (!parse_name(name, "the constant's name") || (accept(":") && !parse_dtype(type)) ||
      !parse_typed_value(value, name, type))
    return false;
  declare_constant(name, value);
  draft_.functions = true;
  return true;
}

// fn NAME(x: f32, n: i32) -> f32 { let* return expr }
bool Parser::parse_function() {
  Token name;
  if (!parse_name(name, "the function's name")) return false;
  if (is_builtin_function(name.text) || functions_.contains(name.text)) {
    error(DiagCode::duplicate_name, name, "there is a function " + describe(name) + " already",
          "choose another name");
  }
  const size_t mark = declared_.size();
  Function f;
  std::vector<DType> types;
  std::vector<NativeText> texts;
  const bool ok = parse_parameters(f) && (!accept("->") || parse_result_types(types)) &&
                  parse_native_texts(texts) && parse_function_body(f, types);
  forget_since(mark);
  if (ok && !texts.empty()) add_native(f, name, std::move(texts));
  functions_.try_emplace(name.text, std::move(f));
  draft_.functions = true;
  return ok;
}

bool Parser::parse_parameters(Function& f) {
  if (!expect("(", "and the function's parameters")) return false;
  if (accept(")")) return true;
  do {
    Token name;
    DType type = DType::f32;
    if (!room_for_rank(f.parameters.size(), token_) || !parse_name(name, "a parameter's name") ||
        !expect(":", "and the parameter's type") || !parse_dtype(type))
      return false;
    const VarId var = add_unseen_var(name, VarKind::loop);
    program_.vars[var.value].type = type;
    f.parameters.push_back(var);
    declare_constant(name, room_for_node(1, name) ? program_.exprs.var(var, type) : ExprId());
  } while (accept(","));
  return expect(")", "or ',' and a further parameter");
}

// f32, or (f32, i32) of a function that a reduction or scan combines by.
bool Parser::parse_result_types(std::vector<DType>& types) {
  if (!accept("(")) return parse_dtype(types.emplace_back());
  do {
    if (!room_for_rank(types.size(), token_) || !parse_dtype(types.emplace_back())) return false;
  } while (accept(","));
  return expect(")", "or ',' and a further result's type");
}

bool Parser::parse_function_body(Function& f, const std::vector<DType>& types) {
  if (!expect("{", "to open the function")) return false;
  while (accept("let")) {
    Token name;
    DType type = DType::none;
    ExprId value;
    if (!parse_name(name, "the value's name") || (accept(":") && !parse_dtype(type)) ||
        !parse_typed_value(value, name, type))
      return false;
    declare_constant(name, value);
  }
  const Token at = token_;
  if (!expect("return", "and the function's result, or a let")) return false;
  do {
    const DType type = f.values.size() < types.size() ? types[f.values.size()] : DType::none;
    if (!room_for_rank(f.values.size(), token_) || !parse_result(f.values.emplace_back(), type)) return false;
  } while (accept(","));
  if (!types.empty() && types.size() != f.values.size())
    error(DiagCode::rank_mismatch, at,
          "the function is declared to give " + std::to_string(types.size()) + " values, it returns " +
              std::to_string(f.values.size()),
          "return a value for each type");
  return expect("}", "to close the function, which ends with its result");
}

bool Parser::parse_result(ExprId& value, DType type) {
  const Token at = token_;
  if (!parse_expr(value, kAny, type)) return false;
  if (!value.valid() || type == DType::none || program_.exprs.type(value) == type) return true;
  error(DiagCode::dtype_mismatch, at,
        std::string("the function gives ") + dtype_name(type) + ", its result is " +
            dtype_name(program_.exprs.type(value)),
        std::string("write cast(") + dtype_name(type) + ", ...) around it");
  value = ExprId();
  return true;
}

const Function* Parser::find_function(const Token& name) {
  if (const auto it = functions_.find(name.text); it != functions_.end()) return &it->second;
  const LibraryFunction* own = find_library_function(program_, name.text);
  if (own == nullptr || outer_exprs_ != nullptr ||
      static_cast<int64_t>(program_.natives.size()) >= limits_.buffers || !room_for_node(1, name))
    return nullptr;
  LibraryCall call = add_library_function(program_, *own);
  draft_.functions = true;
  return &functions_.try_emplace(own->name, Function{std::move(call.parameters), {call.value}, call.native})
              .first->second;
}

bool Parser::parse_cast_mode(CastMode& mode) {
  while (accept(",")) {
    if (token_.kind != TokenKind::name || !set_cast_mode(mode, token_.text))
      return expected("how the cast rounds, or ends", "the words are " + std::string(kCastModeWords) +
                                                          ", one of the first four and one of the last two");
    advance();
  }
  return true;
}

void Parser::unknown_function(const Token& name) {
  NearestName nearest(name.text);
  for (const auto& [known, function] : functions_) nearest.offer(known);
  for (size_t i = 0; i < expr_op_count(); ++i) {
    const char* text = expr_text(static_cast<ExprOp>(i));
    if (function_from_text(text)) nearest.offer(text);
  }
  nearest.offer("cast");
  nearest.offer("bitcast");
  nearest.offer("ceildiv");
  nearest.offer("uniform");
  nearest.offer("present");
  for (const LibraryFunction& f : library_functions()) nearest.offer(f.name);
  for (int op = 0; op < kLaneOps; ++op) nearest.offer(lane_op_text(static_cast<LaneOp>(op)));
  for (int op = 0; op < kIdOps; ++op) nearest.offer(id_op_text(static_cast<IdOp>(op)));
  error(DiagCode::unknown_name, name, "expected a function, found the unknown name " + describe(name),
        foreign_hint(name.text).empty()
            ? nearest.hint("functions are the words of the expression table, such as exp, max, select or "
                           "cast, and those "
                           "of the program that stand before; none calls itself")
            : std::string(foreign_hint(name.text)));
}

ExprId Parser::call_function(const Function& f, std::optional<size_t> result, std::span<const ExprId> args,
                             const Token& at) {
  if (outer_exprs_ != nullptr) {
    error(DiagCode::syntax_error, at, "expected an integer constant, found a call of " + describe(at),
          "name its result with let before the kernels");
    return {};
  }
  if (f.values.size() > 1 && !result) {
    error(DiagCode::rank_mismatch, at,
          describe(at) + " gives " + std::to_string(f.values.size()) + " values, where one is expected",
          "name them all: let x, y = " + std::string(at.text) +
              "(...); or combine the values of a reduction or scan: reduce x, y -> m, s by " +
              std::string(at.text));
    return {};
  }
  return arguments_fit(f, args, at) ? result_of(f, result.value_or(0), args, at) : ExprId();
}

bool Parser::arguments_fit(const Function& f, std::span<const ExprId> args, const Token& at) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].valid()) return false;
    const DType want = program_.var(f.parameters[i]).type, got = program_.exprs.type(args[i]);
    if (want == got) continue;
    error(DiagCode::dtype_mismatch, at,
          "argument " + std::to_string(i + 1) + " of " + describe(at) + " is " + dtype_name(got) +
              ", its parameter '" + program_.var(f.parameters[i]).name + "' is " + dtype_name(want),
          std::string("write cast(") + dtype_name(want) + ", ...) around it");
    return false;
  }
  return true;
}

ExprId Parser::result_of(const Function& f, size_t result, std::span<const ExprId> args, const Token& at) {
  if (f.values.size() <= result || !f.values[result].valid() || !room_for_node(1, at)) return {};
  const ExprId value = f.native ? call_native(program_, *f.native, args, result)
                                : Arguments(program_.exprs, f.parameters, args).rewrite(f.values[result]);
  return room_for_node(program_.exprs[value].depth, at) ? value : ExprId();
}

}  // namespace tilegen::ir::text
