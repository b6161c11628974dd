// Functions of the program, with native text or without, and calls of them.
#include <string>

#include "builder/builder.h"
#include "ir/library_functions.h"
#include "ir/matrix_atom.h"
#include "ir/text_grammar.h"
#include "support/diag_codes.h"

namespace tilegen::builder {
namespace {

class Arguments : public ir::ExprRewriter {
 public:
  Arguments(ir::ExprPool& pool, const std::vector<ir::VarId>& operands, std::span<const ir::ExprId> args)
      : ExprRewriter(pool, pool), operands_(operands), args_(args) {}

 protected:
  ir::ExprId rewrite_var(const ir::ExprNode& n) override {
    for (size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i] == n.var()) return args_[i];
    return to_->var(n.var(), n.type);
  }

 private:
  const std::vector<ir::VarId>& operands_;
  const std::span<const ir::ExprId> args_;
};

}  // namespace

void Builder::function(std::string_view name, std::span<const ir::ExprId> operands,
                       std::span<const ir::ExprId> results, std::vector<ir::NativeText> texts) {
  constexpr std::string_view kCall = "tl_function";
  if (!ready(kCall) || !check_name(kCall, name) || !check_operands(kCall, {})) return;
  const std::string shown(name);
  if (ir::text::is_builtin_function(name) || ir::text::is_reserved(name))
    return fail(DiagCode::bad_name, kCall, "'" + shown + "' is a word of the language",
                "choose another name, e.g. '" + shown + "_'");
  if (functions_.contains(name) || ir::find_matrix_atom(program_, name))
    return fail(DiagCode::duplicate_name, kCall, "there is a function '" + shown + "' already",
                "choose another name");
  if (!texts.empty() && !before_kernels(kCall)) return;
  Function f;
  if (!check_operand_list(kCall, operands, f.operands)) return;
  for (ir::ExprId id : results)
    if (!check_expr(kCall, "a result", id)) return;
  f.results.assign(results.begin(), results.end());
  if (f.results.empty())
    return fail(DiagCode::rank_mismatch, kCall, "'" + shown + "' has no result", "give at least one");
  if (!texts.empty()) {
    if (static_cast<int64_t>(program_.natives.size()) >= limits_.buffers)
      return fail(DiagCode::limit_nodes, kCall,
                  "a program has at most " + std::to_string(limits_.buffers) + " functions with native text",
                  "make fewer");
    if (const auto wrong =
            ir::add_native_function(program_, shown, f.operands, f.results, std::move(texts), location_))
      return fail(wrong->code, kCall, wrong->message, wrong->hint);
    f.native = program_.natives.size() - 1;
  }
  functions_.emplace(shown, std::move(f));
}

void Builder::matrix_atom(Atom atom) {
  constexpr std::string_view kCall = "tl_matrix_atom";
  if (!ready(kCall) || !check_name(kCall, atom.name) || !before_kernels(kCall)) return;
  const std::string shown(atom.name);
  if (ir::text::is_builtin_function(atom.name) || ir::text::is_reserved(atom.name))
    return fail(DiagCode::bad_name, kCall, "'" + shown + "' is a word of the language",
                "choose another name, e.g. '" + shown + "_'");
  if (functions_.contains(atom.name) || ir::find_matrix_atom(program_, atom.name))
    return fail(DiagCode::duplicate_name, kCall, "there is a function or an atom '" + shown + "' already",
                "choose another name");
  ir::AtomRequest request;
  request.name = shown;
  request.atom = std::move(atom.atom);
  request.text = std::move(atom.text);
  request.location = location_;
  if (atom.operands.empty()) {
    for (size_t i = 0; i < 3; ++i) {
      request.operands[i] = operand(std::string(1, "abc"[i]), atom.types[i]);
      if (failed()) return;
    }
  } else {
    std::vector<ir::VarId> operands;
    if (!check_operand_list(kCall, atom.operands, operands) ||
        !check_expr(kCall, "the meaning", atom.meaning))
      return;
    for (size_t i = 0; i < 3; ++i) {
      request.operands[i] = operands[i];
      if (program_.var(operands[i]).type == atom.types[i]) continue;
      return fail(DiagCode::dtype_mismatch, kCall,
                  "operand " + std::to_string(i + 1) + " of '" + shown + "' is " +
                      ir::dtype_name(program_.var(operands[i]).type) + ", its type is given as " +
                      ir::dtype_name(atom.types[i]),
                  "make the operand of that type with tl_operand");
    }
    request.meaning = atom.meaning;
  }
  if (const auto wrong = ir::add_matrix_atom(program_, std::move(request), limits_))
    fail(wrong->code, kCall, wrong->message, wrong->hint);
}

ir::ExprId Builder::call(std::string_view function, std::span<const ir::ExprId> args, size_t result) {
  constexpr std::string_view kCall = "tl_call";
  if (!ready(kCall)) return {};
  const std::string shown(function.substr(0, 32));
  auto it = functions_.find(function);
  const ir::LibraryFunction* own =
      it == functions_.end() ? ir::find_library_function(program_, function) : nullptr;
  if (own != nullptr && static_cast<int64_t>(program_.natives.size()) < limits_.buffers) {
    ir::LibraryCall made = ir::add_library_function(program_, *own);
    it = functions_.emplace(shown, Function{std::move(made.parameters), {made.value}, made.native}).first;
  }
  if (it == functions_.end()) {
    fail(DiagCode::unknown_name, kCall, "there is no function '" + shown + "'",
         "make it with tl_function, or take one of the library's, such as fast_exp");
    return {};
  }
  const Function& f = it->second;
  if (args.size() != f.operands.size() || result >= f.results.size()) {
    fail(DiagCode::rank_mismatch, kCall,
         "'" + shown + "' takes " + std::to_string(f.operands.size()) + " arguments and gives " +
             std::to_string(f.results.size()) + " values, found " + std::to_string(args.size()) +
             " and result " + std::to_string(result),
         "results count from 0");
    return {};
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (!check_operands(kCall, {args[i]})) return {};
    const ir::Var& operand = program_.var(f.operands[i]);
    if (program_.exprs.type(args[i]) == operand.type) continue;
    fail(DiagCode::dtype_mismatch, kCall,
         "argument " + std::to_string(i + 1) + " of '" + shown + "' is " +
             ir::dtype_name(program_.exprs.type(args[i])) + ", its operand '" + operand.name + "' is " +
             ir::dtype_name(operand.type),
         "cast it; nothing is converted silently");
    return {};
  }
  const ir::ExprId value = f.native ? ir::call_native(program_, *f.native, args, result)
                                    : Arguments(program_.exprs, f.operands, args).rewrite(f.results[result]);
  return check_operands(kCall, {value}) ? value : ir::ExprId();
}

}  // namespace tilegen::builder
