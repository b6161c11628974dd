// Loops with conditions, and statements that leave loops.
#include <string>

#include "builder/builder.h"
#include "ir/draft_jumps.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

uint64_t Builder::begin_while(ir::ExprId condition) {
  constexpr std::string_view kCall = "tl_begin_while";
  if (!ready(kCall) || !inside_kernel(kCall) || !room_for_scope(kCall) ||
      !check_condition(kCall, condition) || !check_operands(kCall, {condition}))
    return 0;
  Frame frame;
  frame.kind = Frame::Kind::loop;
  frame.first_name = names_.size();
  frame.what = "while loop";
  ir::Loop loop;
  loop.begin = program_.exprs.const_int(0);
  loop.extents = {program_.exprs.const_int(ir::Draft::kEndless)};
  loop.condition = condition;
  const ir::VarId var = add_inner_var(kCall, {}, ir::VarKind::loop);
  if (!var) return 0;
  loop.vars = {var};
  draft_.conditions = true;
  frame.stmt = marked(kCall, add_statement(kCall, std::move(loop)));
  return frame.stmt ? open(std::move(frame)) : 0;
}

void Builder::jump(ir::Draft::Jump kind) {
  static constexpr std::string_view kCalls[] = {"tl_break", "tl_continue", "tl_return"};
  const std::string_view call = kCalls[static_cast<size_t>(kind)];
  if (!ready(call) || !inside_kernel(call) || !unmarked(call)) return;
  const auto around = open_statements();
  if (const std::string wrong = ir::jump_refusal(program_, around, kind); !wrong.empty())
    return fail(DiagCode::misplaced_statement, call, "it " + wrong, ir::jump_hint(kind));
  const ir::StmtId s = add_statement(call, ir::Branch{});
  if (s) draft_.jumps[s] = kind;
}

}  // namespace tilegen::builder
