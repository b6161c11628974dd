// Named values: let and assign.
#include <string>

#include "builder/builder.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

ir::VarId Builder::let(std::string_view name, ir::ExprId value, bool assignable) {
  const std::string_view call = assignable ? "tl_var" : "tl_let";
  if (!ready(call) || !inside_kernel(call) || !unmarked(call) || !check_expr(call, "the value", value) ||
      !check_operands(call, {value}))
    return {};
  if (assignable && !in_parallel()) {
    fail(DiagCode::misplaced_statement, call, "a value that changes stands outside a parallel loop",
         "name a value that stays with tl_let, or keep one that changes in a tile of TL_SCOPE_LOCAL");
    return {};
  }
  const ir::VarId var = add_inner_var(call, name, ir::VarKind::loop, program_.exprs.type(value));
  if (!var) return {};
  draft_.temporaries[var] = assignable;
  const ir::StmtId s = add_statement(call, ir::Branch{});
  if (!s) return {};
  draft_.assignments[s] = {var, value};
  return var;
}

void Builder::assign(ir::ExprId to, ir::ExprId value) {
  constexpr std::string_view kCall = "tl_assign";
  if (!ready(kCall) || !inside_kernel(kCall) || !unmarked(kCall) || !check_expr(kCall, "the variable", to) ||
      !check_expr(kCall, "the value", value) || !check_operands(kCall, {value}))
    return;
  const ir::VarId var = as_var(to);
  const auto it = var ? draft_.temporaries.find(var) : draft_.temporaries.end();
  if (it == draft_.temporaries.end() || !it->second)
    return fail(
        DiagCode::misplaced_statement, kCall,
        var ? "'" + program_.var(var).name + "' cannot be assigned" : "this expression cannot be assigned",
        "assign what tl_var returned; store to elements of tiles");
  if (!visible_.contains(program_.var(var).name))
    return fail(DiagCode::out_of_scope, kCall,
                "'" + program_.var(var).name + "' is assigned outside the scope that declares it",
                "declare it in the parallel loop, around what assigns it");
  if (program_.exprs.type(value) != program_.var(var).type)
    return fail(DiagCode::dtype_mismatch, kCall,
                "'" + program_.var(var).name + "' is " + ir::dtype_name(program_.var(var).type) +
                    ", the value is " + ir::dtype_name(program_.exprs.type(value)),
                "cast the value");
  if (const ir::StmtId s = add_statement(kCall, ir::Branch{})) draft_.assignments[s] = {var, value};
}

void Builder::resolve_names(std::string_view call) {
  for (Diagnostic& d : ir::resolve_draft(program_, draft_, limits_)) {
    d.op = call;
    d.stage = "builder";
    diagnostics_.push_back(std::move(d));
  }
}

}  // namespace tilegen::builder
