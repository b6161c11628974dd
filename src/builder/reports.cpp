// What a launch tells: assertions and prints.
#include <string>

#include "builder/builder.h"
#include "ir/assertion.h"
#include "ir/print.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

bool Builder::check_report(std::string_view call, std::string_view text, int64_t statements) {
  if (!reached(call)) return false;
  if (!ir::is_message(text)) {
    fail(DiagCode::bad_name, call,
         "the text is longer than " + std::to_string(ir::kMaxMessage) +
             " characters or has others than the printable ones of ASCII without '\"'",
         "give a short text of ASCII characters");
    return false;
  }
  if (static_cast<int64_t>(program_.stmts.size()) + statements <= limits_.statements) return true;
  fail(DiagCode::limit_nodes, call,
       "the program has more than " + std::to_string(limits_.statements) + " statements",
       "use loops instead of repeating statements");
  return false;
}

std::vector<ir::StmtId> Builder::open_statements() const {
  std::vector<ir::StmtId> open;
  for (const Frame& f : frames_)
    if (f.stmt) open.push_back(f.stmt);
  return open;
}

void Builder::assertion(ir::ExprId condition, std::string_view message) {
  constexpr std::string_view kCall = "tl_assert";
  if (!ready(kCall) || !inside_kernel(kCall) || !unmarked(kCall) ||
      !check_expr(kCall, "the condition", condition) || !room_for_buffer(kCall) ||
      !check_operands(kCall, {condition}))
    return;
  if (!ir::is_bool(program_.exprs.type(condition)))
    return fail(
        DiagCode::dtype_mismatch, kCall,
        std::string("what is asserted is ") + ir::dtype_name(program_.exprs.type(condition)) + ", not bool",
        "compare it with something");
  if (!check_report(kCall, message, ir::kAssertionStatements)) return;
  ir::add_assertion(program_, {condition, std::string(message), open_statements()}, location_,
                    frames_.back().body);
}

void Builder::print(std::string_view text, std::span<const ir::ExprId> values) {
  constexpr std::string_view kCall = "tl_print";
  if (!ready(kCall) || !inside_kernel(kCall) || !unmarked(kCall) || !room_for_buffer(kCall) ||
      !check_operands(kCall, {}))
    return;
  for (size_t i = 0; i < values.size(); ++i)
    if (!check_expr(kCall, "value " + std::to_string(i), values[i])) return;
  if (!ir::has_room_for_print(program_, values.size()))
    return fail(DiagCode::limit_nodes, kCall,
                "a program prints at most " + std::to_string(ir::kMaxPrinted) + " values", "print fewer");
  if (!check_report(kCall, text, ir::print_statements(values.size()))) return;
  ir::add_print(program_, {std::string(text), {values.begin(), values.end()}, open_statements()}, location_,
                frames_.back().body);
}

void Builder::print_tile(std::string_view text, const ir::Region& region) {
  constexpr std::string_view kCall = "tl_print_tile";
  if (!ready(kCall) || !inside_kernel(kCall) || !unmarked(kCall) || !outside_parallel(kCall) ||
      !check_region(kCall, "the region", region))
    return;
  std::vector<ir::VarId> vars(region.extents.size());
  const uint64_t scope = begin_parallel(region.extents, vars, {});
  if (scope == 0) return;
  std::vector<ir::ExprId> point;
  for (size_t d = 0; d < vars.size(); ++d)
    point.push_back(program_.exprs.add(region.offsets[d], program_.exprs.var(vars[d])));
  const ir::ExprId value = load(region.buffer, point);
  print(text, std::span(&value, 1));
  end(scope);
}

}  // namespace tilegen::builder
