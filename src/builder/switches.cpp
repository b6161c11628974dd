// switch: ifs in the else of each other, on a value that is taken once.
#include <string>

#include "builder/builder.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

uint64_t Builder::begin_switch(ir::ExprId value) {
  constexpr std::string_view kCall = "tl_begin_switch";
  if (!ready(kCall) || !inside_kernel(kCall) || !unmarked(kCall) || !room_for_scope(kCall) ||
      !check_expr(kCall, "the value", value) || !check_operands(kCall, {value}))
    return 0;
  const ir::DType type = program_.exprs.type(value);
  if (!ir::is_integer(type)) {
    fail(DiagCode::dtype_mismatch, kCall,
         std::string("the value of a switch has type ") + ir::dtype_name(type) + ", expected an integer",
         "cast it, or make ifs");
    return 0;
  }
  Frame frame;
  frame.kind = Frame::Kind::choice;
  frame.first_name = names_.size();
  frame.what = "switch";
  const ir::VarId chosen = add_inner_var(kCall, {}, ir::VarKind::loop, type);
  if (!chosen) return 0;
  program_.vars[chosen.value].name = "chosen";
  frame.chosen = chosen;
  draft_.temporaries[chosen] = false;
  const ir::StmtId taken = add_statement(kCall, ir::Branch{});
  if (!taken) return 0;
  draft_.assignments[taken] = {chosen, value};
  return open(std::move(frame));
}

uint64_t Builder::begin_case(uint64_t switch_token, std::span<const int64_t> values) {
  constexpr std::string_view kCall = "tl_begin_case";
  if (!ready(kCall) || !inside_kernel(kCall)) return 0;
  if (frames_.back().token != switch_token || frames_.back().kind != Frame::Kind::choice) {
    fail(DiagCode::scope_mismatch, kCall, "the innermost open scope is the " + frames_.back().what,
         "call it directly inside the switch that it names");
    return 0;
  }
  const bool otherwise = values.empty();
  if (frames_.back().in_else || (otherwise && frames_.back().cases == 0)) {
    fail(DiagCode::misplaced_statement, kCall,
         otherwise && !frames_.back().in_else ? "a case without values is the first of its switch"
                                              : "the case without values stands before it",
         "put the case without values last, once");
    return 0;
  }
  Frame frame;
  frame.kind = Frame::Kind::branch;
  frame.first_name = names_.size();
  frame.what = "case";
  frame.of_case = true;
  frame.in_else = otherwise;
  if (otherwise) {
    frames_.back().in_else = true;
    frame.stmt = frames_.back().stmt;
    frame.then_body = program_.as<ir::Branch>(frame.stmt)->then_body;
    return room_for_scope(kCall) ? open(std::move(frame)) : 0;
  }
  const ir::DType type = program_.var(frames_.back().chosen).type;
  ir::ExprPool& e = program_.exprs;
  ir::Branch branch;
  for (int64_t number : values) {
    if (ir::wrap_to(type, number) != number) {
      fail(DiagCode::dtype_mismatch, kCall,
           "the value " + std::to_string(number) + " of a case is none of " + ir::dtype_name(type),
           "cast what the switch chooses by");
      return 0;
    }
    const ir::ExprId same =
        e.binary(ir::ExprOp::eq, e.var(frames_.back().chosen, type), e.const_int(number, type));
    branch.condition = branch.condition ? e.binary(ir::ExprOp::logical_or, branch.condition, same) : same;
    if (!check_operands(kCall, {branch.condition})) return 0;
  }
  ++frames_.back().cases;
  if (!room_for_scope(kCall) || !check_statements(kCall)) return 0;
  program_.stmts.push_back({std::move(branch), location_});
  const ir::StmtId id(program_.stmts.size() - 1);
  Frame& choice = frames_.back();
  if (choice.stmt)
    std::get<ir::Branch>(program_.stmts[choice.stmt.value].node).else_body = {id};
  else
    choice.body = {id};
  choice.stmt = frame.stmt = id;
  return open(std::move(frame));
}

}  // namespace tilegen::builder
