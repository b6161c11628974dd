// Blocks of threads, and what their lanes give each other.
#include <string>

#include "builder/builder.h"
#include "ir/bulk_copy.h"
#include "ir/copy_groups.h"
#include "ir/draft_threads.h"
#include "ir/op_kinds.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

uint64_t Builder::begin_threads(std::span<const int64_t> extents, std::span<ir::VarId> out_vars,
                                std::span<const std::string_view> names) {
  constexpr std::string_view kCall = "tl_begin_threads";
  if (!ready(kCall) || !inside_kernel(kCall) || !unmarked(kCall)) return 0;
  const bool positive = std::all_of(extents.begin(), extents.end(), [](int64_t n) { return n > 0; });
  if (positive)
    if (const auto wrong = ir::threads_refusal(program_, extents, open_statements())) {
      fail(wrong->code, kCall, wrong->message, wrong->hint);
      return 0;
    }
  const uint64_t token = open_points(kCall, "block of threads '", extents, out_vars, names);
  if (token == 0) return 0;
  const ir::StmtId s = frames_.back().stmt;
  program_.stmts[s.value].annotations = ir::in_thread_order(extents, location_);
  draft_.threads.insert(s);
  return token;
}

const ir::Loop* Builder::threads_around(std::string_view call) {
  for (const Frame& f : frames_)
    if (f.stmt && draft_.threads.contains(f.stmt)) return program_.as<ir::Loop>(f.stmt);
  fail(DiagCode::misplaced_statement, call, "it stands outside of a block of threads",
       "call it between tl_begin_threads and its tl_end");
  return nullptr;
}

ir::ExprId Builder::lane_call(std::string_view call, const ir::LaneCall& what) {
  const bool vote = ir::is_vote(what.op);
  if (!ready(call) || !inside_kernel(call) || !unmarked(call) ||
      !check_expr(call, vote ? "the condition" : "the value", what.value) ||
      (!vote && !check_index(call, "the lane", what.number)) || !check_operands(call, {what.value}) ||
      (!vote && !check_operands(call, {what.number})) || !reached(call))
    return {};
  const ir::Loop* around = threads_around(call);
  if (!around) return {};
  if (static_cast<int64_t>(program_.stmts.size()) + ir::kMaxLaneStatements > limits_.statements) {
    fail(DiagCode::limit_nodes, call,
         "the program has more than " + std::to_string(limits_.statements) + " statements",
         "use loops instead of repeating statements");
    return {};
  }
  const ir::Loop threads = *around;
  auto made = ir::add_lane_call(program_, draft_, threads, what, location_, frames_.back().body);
  if (const auto* wrong = std::get_if<Diagnostic>(&made)) {
    fail(wrong->code, call, wrong->message, wrong->hint);
    return {};
  }
  return std::get<ir::ExprId>(made);
}

// Of the thread, the block or the cluster.
ir::ExprId Builder::number_of(ir::IdOp op) {
  constexpr std::string_view kCall = "tl_id";
  if (!ready(kCall) || !inside_kernel(kCall) || !check_operands(kCall, {})) return {};
  const ir::Loop* around = nullptr;
  for (const Frame& f : frames_)
    if (f.stmt && draft_.threads.contains(f.stmt)) around = program_.as<ir::Loop>(f.stmt);
  for (ir::ExprId extent : program_.kernels.back().grid)
    if (op == ir::IdOp::block && program_.exprs[extent].depth + ir::kIdDepth > limits_.expr_depth) {
      fail(DiagCode::limit_nesting, kCall,
           "the block's number would be more than " + std::to_string(limits_.expr_depth) + " operations deep",
           "give the grid simpler extents");
      return {};
    }
  asked_for_cluster_ = asked_for_cluster_ || is_of_cluster(op);
  auto made = ir::make_id(program_, op, around);
  if (const auto* wrong = std::get_if<Diagnostic>(&made)) {
    fail(wrong->code, kCall, wrong->message, wrong->hint);
    return {};
  }
  return std::get<ir::ExprId>(made);
}

void Builder::barrier() {
  constexpr std::string_view kCall = "tl_barrier";
  if (!ready(kCall) || !inside_kernel(kCall) || !unmarked(kCall) || !threads_around(kCall)) return;
  const ir::StmtId s = add_statement(kCall, ir::Branch{});
  if (s) draft_.barriers.insert(s);
}

// An element of each is at the offsets, or so many as the extents say.
void Builder::async_copy(const ir::Region& from, const ir::Region& to, bool bulk) {
  const std::string_view call = bulk ? "tl_copy_bulk" : "tl_copy_async";
  if (!ready(call) || !inside_kernel(call) || !check_region(call, "what is copied", from) ||
      !check_region(call, "where it is copied to", to) || !threads_around(call) || !reached(call))
    return;
  if (static_cast<int64_t>(program_.stmts.size()) + 2 > limits_.statements)
    return fail(DiagCode::limit_nodes, call,
                "the program has more than " + std::to_string(limits_.statements) + " statements",
                "use loops instead of repeating statements");
  for (const ir::Region* r : {&from, &to})
    for (ir::ExprId e : r->offsets)
      if (!check_operands(call, {e})) return;
  if (const auto wrong =
          bulk ? ir::bulk_copy_refusal(program_, from, to) : ir::async_copy_refusal(program_, from, to))
    return fail(wrong->code, call, wrong->message, wrong->hint);
  const auto add = bulk ? ir::add_bulk_copy : ir::add_async_copy;
  marked(call, add(program_, draft_, from, to, location_, frames_.back().body));
}

void Builder::copy_group(ir::OpKind kind, int64_t pending) {
  const std::string call = "tl_" + std::string(ir::op_row(kind).text);
  if (!ready(call) || !inside_kernel(call)) return;
  ir::TileOp op;
  op.kind = kind;
  if (ir::op_row(kind).has_value) op.value = const_int(pending, ir::DType::i64);
  marked(call, add_statement(call, std::move(op)));
}

void Builder::barrier_op(ir::OpKind kind, const ir::Region& barrier, ir::ExprId parity, int64_t first,
                         int64_t threads, bool copies, bool elected) {
  const std::string call = "tl_" + std::string(ir::op_row(kind).text);
  if (!ready(call) || !inside_kernel(call) || !check_region(call, "the barrier", barrier)) return;
  for (ir::ExprId e : barrier.offsets)
    if (!check_operands(call, {e})) return;
  ir::TileOp op;
  op.kind = kind;
  op.operands = {barrier};
  if (ir::op_row(kind).has_value) {
    if (!check_index(call, "the parity", parity) || !check_operands(call, {parity})) return;
    op.value = parity;
  }
  if (copies) op.attrs[ir::mbarrier_arrive_attr::copies] = 1;
  if (elected) op.attrs[ir::mbarrier_arrive_attr::elected] = 1;
  op.attrs[ir::mbarrier_wait_attr::first] = first;  // of all four operations
  op.attrs[ir::mbarrier_wait_attr::threads] = threads;
  marked(call, add_statement(call, std::move(op)));
}

}  // namespace tilegen::builder
