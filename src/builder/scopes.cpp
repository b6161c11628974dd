// Kernels, loops and ifs: begin and end, and what may stand in which.
#include <string>

#include "builder/builder.h"
#include "ir/loop_limits.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::builder {
namespace {

constexpr int64_t kMaxThreads = 1024;
constexpr size_t kMaxGrid = 3;

}  // namespace

bool Builder::inside_kernel(std::string_view call) {
  if (!frames_.empty()) return true;
  fail(DiagCode::misplaced_statement, call, "there is no open kernel",
       "call it between tl_begin_kernel and its tl_end");
  return false;
}

bool Builder::in_parallel() const {
  for (const Frame& f : frames_)
    if (f.kind == Frame::Kind::parallel) return true;
  return false;
}

bool Builder::outside_parallel(std::string_view call) {
  if (!in_parallel()) return true;
  fail(DiagCode::misplaced_statement, call,
       "inside a parallel loop only stores, ifs, named values, and serial and unrolled loops may stand",
       "end the parallel loop first, or turn the loops around");
  return false;
}

bool Builder::room_for_scope(std::string_view call) {
  // the kernel itself does not count, a switch is as deep as it has cases
  int64_t depth = static_cast<int64_t>(frames_.size());
  for (const Frame& f : frames_) depth += f.kind == Frame::Kind::choice ? f.cases - 1 : 0;
  if (depth <= limits_.nesting) return true;
  fail(DiagCode::limit_nesting, call,
       "loops and ifs are nested more than " + std::to_string(limits_.nesting) + " deep",
       "flatten the program");
  return false;
}

bool Builder::check_names(std::string_view call, std::span<const std::string_view> names, size_t count) {
  if (names.empty() || names.size() == count) return true;
  fail(DiagCode::rank_mismatch, call,
       std::to_string(names.size()) + " names were given for " + std::to_string(count) + " variables",
       "give one per variable, or none");
  return false;
}

bool Builder::check_statements(std::string_view call) {
  if (static_cast<int64_t>(program_.stmts.size()) < limits_.statements) return true;
  fail(DiagCode::limit_nodes, call,
       "the program has more than " + std::to_string(limits_.statements) + " statements",
       "use loops instead of repeating statements");
  return false;
}

bool Builder::reached(std::string_view call) {
  if (frames_.back().kind == Frame::Kind::choice) {
    fail(DiagCode::misplaced_statement, call, "it stands in a switch, outside of its cases",
         "call it between tl_begin_case and its tl_end");
    return false;
  }
  const ir::Block& before = frames_.back().body;
  if (before.empty() || !draft_.jumps.contains(before.back())) return true;
  fail(DiagCode::misplaced_statement, call, "nothing behind a break, continue or return runs",
       "end the scope behind it, or put it into an if");
  return false;
}

ir::StmtId Builder::add_statement(std::string_view call,
                                  std::variant<ir::Loop, ir::Branch, ir::Store, ir::TileOp> node) {
  if (!check_statements(call) || !reached(call)) return {};
  program_.stmts.push_back({std::move(node), location_});
  const ir::StmtId id(program_.stmts.size() - 1);
  frames_.back().body.push_back(id);
  return id;
}

uint64_t Builder::open(Frame frame) {
  frame.token = next_token_++;
  frame.opened = location_;
  if (!frames_.empty()) frame.unroll *= frames_.back().unroll;
  frames_.push_back(std::move(frame));
  return frames_.back().token;
}

uint64_t Builder::begin_kernel(std::string_view name, std::span<const ir::ExprId> grid, int64_t threads,
                               std::span<ir::VarId> out_block_vars, std::span<const std::string_view> names) {
  constexpr std::string_view kCall = "tl_begin_kernel";
  static constexpr std::string_view kBlockNames[] = {"bx", "by", "bz"};
  if (!ready(kCall)) return 0;
  if (!frames_.empty()) {
    fail(DiagCode::misplaced_statement, kCall, "the " + frames_.front().what + " is still open",
         "kernels do not nest; call tl_end first");
    return 0;
  }
  if (!check_name(kCall, name)) return 0;
  const auto other = visible_.find(name);
  if (other != visible_.end() || kernels_.contains(name)) {
    fail(DiagCode::duplicate_name, kCall,
         "the program already has a " + (other == visible_.end() ? "kernel" : other->second) + " '" +
             std::string(name) + "'",
         "give each kernel a name of its own");
    return 0;
  }
  if (grid.empty() || grid.size() > kMaxGrid || out_block_vars.size() < grid.size()) {
    fail(DiagCode::rank_mismatch, kCall, "the grid has " + std::to_string(grid.size()) + " extents",
         "give 1 to 3 extents; fold further ones together");
    return 0;
  }
  if (!check_names(kCall, names, grid.size())) return 0;
  for (size_t i = 0; i < grid.size(); ++i) {
    const std::string what = "grid extent " + std::to_string(i);
    if (!check_index(kCall, what, grid[i]) || !check_leaves(kCall, what, grid[i])) return 0;
    int64_t extent = 0;
    if (program_.exprs.is_const_int(grid[i], &extent) && extent < 0) {
      fail(DiagCode::bad_shape, kCall, what + " is " + std::to_string(extent),
           "give an extent of at least 0");
      return 0;
    }
  }
  if (threads < 0 || threads > kMaxThreads) {
    fail(DiagCode::bad_attribute, kCall, "a block cannot have " + std::to_string(threads) + " threads",
         "give 1 to " + std::to_string(kMaxThreads) + ", or 0 to let the planner decide");
    return 0;
  }
  labels_.clear();
  kernels_.emplace(name);
  Frame frame;
  frame.first_name = names_.size();
  frame.what = "kernel '" + std::string(name) + "'";
  ir::Kernel kernel;
  kernel.name = name;
  kernel.grid.assign(grid.begin(), grid.end());
  kernel.threads = threads;
  kernel.location = location_;
  for (size_t i = 0; i < grid.size(); ++i) {
    std::string_view var_name = names.empty() ? std::string_view() : names[i];
    if (var_name.empty() && !visible_.contains(kBlockNames[i])) var_name = kBlockNames[i];
    out_block_vars[i] = add_inner_var(kCall, var_name, ir::VarKind::block_index);
    if (!out_block_vars[i]) return 0;
    kernel.block_vars.push_back(out_block_vars[i]);
  }
  program_.kernels.push_back(std::move(kernel));
  asked_for_cluster_ = false;
  return open(std::move(frame));
}

uint64_t Builder::begin_loop(ir::LoopKind kind, ir::ExprId begin, ir::ExprId end, int64_t num_stages,
                             std::string_view var_name, ir::VarId* out_var) {
  constexpr std::string_view kCall = "tl_begin_loop";
  if (!ready(kCall) || !check_index(kCall, "begin", begin) || !check_index(kCall, "end", end) ||
      !check_operands(kCall, {begin, end}))
    return 0;
  ir::Loop loop;
  loop.kind = kind;
  loop.begin = begin;
  loop.extents = {program_.exprs.sub(end, begin)};
  loop.num_stages = num_stages;
  return open_loop(kCall, std::move(loop), var_name, out_var);
}

uint64_t Builder::begin_counted_loop(ir::LoopKind kind, ir::ExprId begin, ir::ExprId count,
                                     ir::ExprId condition, int64_t num_stages, std::string_view var_name,
                                     ir::VarId* out_var) {
  constexpr std::string_view kCall = "tl_begin_counted_loop";
  if (!ready(kCall) || !check_index(kCall, "begin", begin) || !check_index(kCall, "count", count) ||
      !check_operands(kCall, {begin, count}))
    return 0;
  if (condition) {
    if (!check_condition(kCall, condition) || !check_operands(kCall, {condition})) return 0;
    if (kind != ir::LoopKind::serial) {
      fail(DiagCode::misplaced_statement, kCall,
           std::string("a loop of kind ") + ir::loop_kind_name(kind) + " has a condition",
           "make it serial, or put an if into it");
      return 0;
    }
  }
  ir::Loop loop;
  loop.kind = kind;
  loop.begin = begin;
  loop.extents = {count};
  loop.num_stages = num_stages;
  loop.condition = condition;
  return open_loop(kCall, std::move(loop), var_name, out_var);
}

uint64_t Builder::open_loop(std::string_view call, ir::Loop loop, std::string_view var_name,
                            ir::VarId* out_var) {
  const ir::LoopKind kind = loop.kind;
  const int64_t num_stages = loop.num_stages;
  const bool written_out = kind == ir::LoopKind::serial || kind == ir::LoopKind::unroll;
  if (!inside_kernel(call) || (!written_out && !outside_parallel(call)) || !room_for_scope(call)) return 0;
  if (kind > ir::LoopKind::pipelined || kind == ir::LoopKind::parallel) {
    fail(DiagCode::bad_enum, call, "there is no such kind of loop",
         "use a tl_loop_kind, or tl_begin_parallel");
    return 0;
  }
  if (num_stages < 0 || num_stages > ir::kMaxStages || (num_stages > 0 && kind != ir::LoopKind::pipelined)) {
    fail(DiagCode::bad_attribute, call,
         "a " + std::string(ir::loop_kind_name(kind)) + " loop cannot have " + std::to_string(num_stages) +
             " stages",
         "give 0, or 1 to " + std::to_string(ir::kMaxStages) + " for a pipelined loop");
    return 0;
  }
  int64_t extent = 0;
  const bool constant = program_.exprs.is_const_int(loop.extents[0], &extent);
  const bool replicated = kind == ir::LoopKind::unroll || kind == ir::LoopKind::vectorized;
  draft_.loops_in_parallel |= in_parallel();
  if ((replicated && !constant && !in_parallel()) || (constant && extent < 0)) {
    fail(DiagCode::bad_shape, call,
         constant ? "the loop would run " + std::to_string(extent) + " times"
                  : "the trip count of a loop of kind " + std::string(ir::loop_kind_name(kind)) +
                        " is not constant",
         constant ? "let end be at least begin" : "use a serial loop, or constant bounds");
    return 0;
  }
  Frame frame;
  frame.kind = Frame::Kind::loop;
  frame.first_name = names_.size();
  if (replicated) frame.unroll = std::max<int64_t>(extent, 1);
  const auto copies = checked_mul(frame.unroll, frames_.back().unroll);
  if (!copies || *copies > limits_.unroll) {
    fail(DiagCode::limit_unroll, call,
         "unrolled loops would make more than " + std::to_string(limits_.unroll) + " copies of the body",
         "use a serial loop for one of them");
    return 0;
  }
  const ir::VarId v = add_inner_var(call, var_name, ir::VarKind::loop);
  if (!v) return 0;
  frame.what = "loop '" + program_.var(v).name + "'";
  loop.vars = {v};
  draft_.conditions |= loop.condition.valid();
  frame.stmt = marked(call, add_statement(call, std::move(loop)));
  if (!frame.stmt) return 0;
  if (out_var) *out_var = v;
  return open(std::move(frame));
}

uint64_t Builder::begin_parallel(std::span<const int64_t> extents, std::span<ir::VarId> out_vars,
                                 std::span<const std::string_view> names) {
  return open_points("tl_begin_parallel", "parallel loop '", extents, out_vars, names);
}

uint64_t Builder::open_points(std::string_view call, const std::string& what,
                              std::span<const int64_t> extents, std::span<ir::VarId> out_vars,
                              std::span<const std::string_view> names) {
  if (!ready(call) || !inside_kernel(call) || !outside_parallel(call) || !room_for_scope(call) ||
      !check_rank(call, "the " + what.substr(0, what.size() - 2), extents.size()) ||
      !check_names(call, names, extents.size()) || !check_operands(call, {}))
    return 0;
  if (out_vars.size() < extents.size()) {
    fail(DiagCode::null_argument, call, "there is no room for the loop variables", "pass one per extent");
    return 0;
  }
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] < 1) {
      fail(DiagCode::bad_shape, call, "extent " + std::to_string(i) + " is " + std::to_string(extents[i]),
           "give constant extents of at least 1");
      return 0;
    }
  const auto points = checked_product(extents);
  if (!points || *points > limits_.tile_elements) {
    fail(DiagCode::limit_memory, call,
         "the " + what.substr(0, what.size() - 2) + " has more than " +
             std::to_string(limits_.tile_elements) + " iterations",
         "spread the work over the grid");
    return 0;
  }
  Frame frame;
  frame.kind = Frame::Kind::parallel;
  frame.first_name = names_.size();
  ir::Loop loop;
  loop.kind = ir::LoopKind::parallel;
  loop.begin = program_.exprs.const_int(0);
  for (size_t i = 0; i < extents.size(); ++i) {
    out_vars[i] = add_inner_var(call, names.empty() ? std::string_view() : names[i], ir::VarKind::loop);
    if (!out_vars[i]) return 0;
    loop.vars.push_back(out_vars[i]);
    loop.extents.push_back(program_.exprs.const_int(extents[i]));
    frame.what += (i == 0 ? what : ", ") + program_.var(out_vars[i]).name;
  }
  frame.what += "'";
  frame.stmt = marked(call, add_statement(call, std::move(loop)));
  return frame.stmt ? open(std::move(frame)) : 0;
}

bool Builder::check_condition(std::string_view call, ir::ExprId condition) {
  if (!check_expr(call, "the condition", condition)) return false;
  if (ir::is_bool(program_.exprs.type(condition))) return true;
  fail(DiagCode::dtype_mismatch, call,
       std::string("the condition is ") + ir::dtype_name(program_.exprs.type(condition)) + ", not bool",
       "compare it with something");
  return false;
}

uint64_t Builder::begin_if(ir::ExprId condition) {
  constexpr std::string_view kCall = "tl_begin_if";
  if (!ready(kCall) || !inside_kernel(kCall) || !room_for_scope(kCall) || !check_condition(kCall, condition))
    return 0;
  ir::Branch branch;
  branch.condition = condition;
  Frame frame;
  frame.kind = Frame::Kind::branch;
  frame.first_name = names_.size();
  frame.what = "if";
  frame.stmt = marked(kCall, add_statement(kCall, std::move(branch)));
  return frame.stmt ? open(std::move(frame)) : 0;
}

void Builder::begin_else(uint64_t if_token) {
  constexpr std::string_view kCall = "tl_begin_else";
  if (!ready(kCall) || !inside_kernel(kCall)) return;
  Frame& frame = frames_.back();
  if (frame.token != if_token || frame.kind != Frame::Kind::branch || frame.in_else || frame.of_case)
    return fail(DiagCode::scope_mismatch, kCall,
                frame.in_else && !frame.of_case && frame.token == if_token
                    ? "the if already has an else"
                    : "the innermost open scope is the " + frame.what,
                frame.of_case ? "end the case; one without values is taken where no other is"
                              : "call it once, directly inside the if that it names");
  frame.in_else = true;
  frame.then_body = std::move(frame.body);
  frame.body.clear();
}

void Builder::end(uint64_t token) {
  constexpr std::string_view kCall = "tl_end";
  if (!ready(kCall) || !inside_kernel(kCall)) return;
  if (frames_.back().token != token) {
    for (const Frame& f : frames_)
      if (f.token == token)
        return fail(DiagCode::scope_mismatch, kCall,
                    "the " + f.what + " cannot end while the " + frames_.back().what + " inside it is open",
                    "end the scopes innermost first");
    return fail(DiagCode::scope_mismatch, kCall,
                "that scope is not open; the innermost open scope is the " + frames_.back().what,
                "end each scope once, innermost first");
  }
  if (!unmarked(kCall)) return;
  if (frames_.back().kind == Frame::Kind::choice && frames_.back().cases == 0)
    return fail(DiagCode::misplaced_statement, kCall, "the switch has no case",
                "open one with tl_begin_case");
  close_frame();
}

void Builder::close_frame() {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  for (size_t i = frame.first_name; i < names_.size(); ++i) visible_.erase(names_[i]);
  names_.resize(frame.first_name);
  if (frame.kind == Frame::Kind::kernel) {
    program_.kernels.back().body = std::move(frame.body);
    return;
  }
  if (frame.kind == Frame::Kind::choice) return frames_.back().body.push_back(frame.body.front());
  auto& node = program_.stmts[frame.stmt.value].node;
  if (auto* loop = std::get_if<ir::Loop>(&node)) {
    loop->body = std::move(frame.body);
  } else if (auto* branch = std::get_if<ir::Branch>(&node)) {
    branch->then_body = frame.in_else ? std::move(frame.then_body) : std::move(frame.body);
    if (frame.in_else) branch->else_body = std::move(frame.body);
  }
}

}  // namespace tilegen::builder
