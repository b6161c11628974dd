// Operations that are made of other statements: places of largest elements, sorts, compressions,
// reductions and scans by a combination of the program's own.
#include <algorithm>
#include <string>

#include "builder/builder.h"
#include "ir/arg_reduction.h"
#include "ir/op_kinds.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

// The call may add statements and tiles here.
bool Builder::begins_made(std::string_view call, int64_t statements) {
  if (!ready(call) || !inside_kernel(call) || !unmarked(call) || !outside_parallel(call)) return false;
  if (!room_for_buffer(call) || !check_operands(call, {}) || !reached(call)) return false;
  if (static_cast<int64_t>(program_.stmts.size()) + statements <= limits_.statements) return true;
  fail(DiagCode::limit_nodes, call,
       "the program has more than " + std::to_string(limits_.statements) + " statements",
       "use loops instead of repeating statements");
  return false;
}

void Builder::made(std::string_view call, const std::optional<Diagnostic>& wrong) {
  if (wrong) fail(wrong->code, call, wrong->message, wrong->hint);
}

void Builder::arg_reduce(const ir::Region& src, const ir::Region& value, const ir::Region& index,
                         bool largest, int64_t axis) {
  constexpr std::string_view kCall = "tl_arg_reduce";
  constexpr int64_t kStatements = 4;
  if (!begins_made(kCall, kStatements) || !check_region(kCall, "the source", src) ||
      !check_region(kCall, "the value", value) || !check_region(kCall, "the place", index))
    return;
  made(kCall,
       ir::add_arg_reduction(program_, {src, value, index, largest, axis}, location_, frames_.back().body));
}

void Builder::sort(const ir::Sort& what) {
  const std::string_view call = what.first_ones ? "tl_top_k" : "tl_sort";
  if (!begins_made(call, 1) || !check_region(call, "the source", what.src) ||
      !check_region(call, "what is written", what.dst) ||
      (what.index && !check_region(call, "the places", *what.index)))
    return;
  made(call, ir::add_sort(program_, what, location_, frames_.back().body, limits_));
}

void Builder::compress(const ir::Compression& what) {
  constexpr std::string_view kCall = "tl_compress";
  if (!begins_made(kCall, 1) || !check_region(kCall, "the source", what.src) ||
      !check_region(kCall, "the values", what.values) || !check_region(kCall, "the places", what.meta))
    return;
  made(kCall, ir::add_compression(program_, what, location_, frames_.back().body, limits_));
}

void Builder::atomic_fetch(const ir::AtomicFetch& what) {
  constexpr std::string_view kCall = "tl_atomic_fetch";
  constexpr int64_t kStatements = 4;
  if (!begins_made(kCall, kStatements) || !check_region(kCall, "the source", what.src) ||
      !check_region(kCall, "what is updated", what.dst) || !check_region(kCall, "the old values", what.old))
    return;
  made(kCall, ir::add_atomic_fetch(program_, what, location_, frames_.back().body, limits_));
}

ir::VarId Builder::operand(std::string_view name, ir::DType type) {
  constexpr std::string_view kCall = "tl_operand";
  if (!ready(kCall) || !check_dtype(kCall, type) || !check_operands(kCall, {}) ||
      (!name.empty() && !check_name(kCall, name)))
    return {};
  ir::Var var;
  var.name = name.empty() ? "operand" : std::string(name);
  var.type = type;
  var.location = location_;
  program_.vars.push_back(std::move(var));
  const ir::VarId id(program_.vars.size() - 1);
  operands_.insert(id);
  draft_.functions = true;  // nothing declares it
  return id;
}

bool Builder::check_operand_list(std::string_view call, std::span<const ir::ExprId> given,
                                 std::vector<ir::VarId>& out) {
  for (ir::ExprId id : given) {
    const ir::VarId var = check_expr(call, "an operand", id) ? as_var(id) : ir::VarId();
    if (failed()) return false;
    if (!var || !operands_.contains(var)) {
      fail(DiagCode::out_of_scope, call, "an operand of the combination is another expression",
           "pass what tl_operand returned");
      return false;
    }
    out.push_back(var);
  }
  return true;
}

void Builder::combine(ir::Combination what, std::span<const ir::ExprId> left,
                      std::span<const ir::ExprId> right, std::vector<ir::Region> carry) {
  const std::string_view call = !carry.empty()        ? "tl_scan_by_carry"
                                : !what.first.empty() ? "tl_scan_by_from"
                                : what.scan           ? "tl_scan_by"
                                                      : "tl_reduce_by";
  if (!begins_made(call, 1)) return;
  for (const ir::Region& r : what.src)
    if (!check_region(call, "a source", r)) return;
  for (const ir::Region& r : what.dst)
    if (!check_region(call, "what is written", r)) return;
  for (const ir::Region& r : carry)
    if (!check_region(call, "what is carried", r)) return;
  for (ir::ExprId id : what.by.results)
    if (!check_expr(call, "a result of the combination", id)) return;
  for (ir::ExprId id : what.first)
    if (!check_expr(call, "a value of the first group", id)) return;
  if (!check_operand_list(call, left, what.by.left) || !check_operand_list(call, right, what.by.right))
    return;
  ir::Block& block = frames_.back().body;
  made(call, carry.empty() ? ir::add_combination(program_, what, location_, block, limits_)
                           : ir::add_carried_scan(program_, {std::move(what), std::move(carry)}, location_,
                                                  block, limits_));
}

void Builder::scan_carry(const ir::Region& src, const ir::Region& dst, const ir::Region& carry,
                         std::span<const int64_t> attrs) {
  constexpr std::string_view kCall = "tl_scan_carry";
  if (!begins_made(kCall, 1) || !check_region(kCall, "the source", src) ||
      !check_region(kCall, "what is written", dst) || !check_region(kCall, "what is carried", carry))
    return;
  ir::TileOp op;
  op.kind = ir::OpKind::scan;
  std::copy(attrs.begin(), attrs.end(), op.attrs.begin());
  made(kCall, ir::add_carried_scan(program_, ir::carried_scan(src, dst, carry, std::move(op)), location_,
                                   frames_.back().body, limits_));
}

}  // namespace tilegen::builder
