// Loops inside parallel loops that run as often as the launch tells: for all points, or for each its own
// times. They are not written out but stand around parallel loops.
//
//   parallel i in 64 {                      parallel i in 64 { x[i] = X[i]   more[i] = x[i] > 1 }
//     var x = X[i]                          reduce more -> any {kind=or, axis=0}
//     while x > 1 {                    ->   again[0] = any[0]
//       x = x // 2                          serial trip in 0 .. 2147483647 while again[0] {
//     }                                       parallel i in 64 { if more[i] { x[i] = x[i] // 2 ... } }
//     Y[i] = x                                reduce more -> any {kind=or, axis=0}   again[0] = any[0]
//   }                                       }
//                                           parallel i in 64 { Y[i] = x[i] }
//
// The parallel loop is cut as a block of threads is (ir/draft_threads.h): statements in front of such a loop,
// in it and behind it take effect one behind the other for all points. A loop goes on while it does for a
// point, and what stands in it is under the point's own condition.
#include <algorithm>

#include "ir/draft_resolver.h"
#include "ir/expr_nodes.h"
#include "ir/op_kinds.h"

namespace tilegen::ir {

namespace {

constexpr int64_t kNothingLater = INT64_MAX;  // behind all uses of names

}  // namespace

// What is constant where loops of constant bounds are written out: of their variables, and of names whose
// values are.
bool DraftResolver::is_written_out(ExprId root) {
  if (assigned_.empty())
    for (const auto& [s, assignment] : draft_.assignments)
      assigned_[assignment.var].push_back(draft_.exchanges.contains(s) ? ExprId() : assignment.value);
  ExprNodes nodes(p_.exprs, {root});
  while (const ExprId e = nodes.next()) {
    const ExprNode& n = p_.exprs[e];
    if (n.op == ExprOp::load) return false;
    if (n.op != ExprOp::var || counted_.contains(n.var())) continue;
    const auto values = assigned_.find(n.var());
    if (values == assigned_.end()) return false;
    for (ExprId value : values->second) {
      if (!value.valid()) return false;
      nodes.add(value);
    }
  }
  return true;
}

void DraftResolver::find_walks(const Block& block) {
  for (StmtId s : block) {
    if (const auto* branch = std::get_if<Branch>(&written_[s.value].node)) {
      find_walks(branch->then_body);
      find_walks(branch->else_body);
    }
    const auto* loop = std::get_if<Loop>(&written_[s.value].node);
    if (!loop || draft_.async_copies.contains(s) || draft_.bulk_copies.contains(s)) continue;
    const bool counted =
        !draft_.walks.contains(s) && is_written_out(loop->begin) && is_written_out(loop->extents[0]);
    if (counted)
      counted_.insert(loop->vars.begin(), loop->vars.end());
    else if (loop->kind == LoopKind::serial)
      walks_.insert(s);
    find_walks(loop->body);
  }
}

bool DraftResolver::holds_walk(StmtId s) const {
  std::vector<StmtId> todo{s};
  while (!todo.empty()) {
    const StmtId next = todo.back();
    todo.pop_back();
    if (walks_.contains(next)) return true;
    const auto& node = written_[next.value].node;
    const auto add = [&](const Block& b) { todo.insert(todo.end(), b.begin(), b.end()); };
    if (const auto* loop = std::get_if<Loop>(&node)) add(loop->body);
    if (const auto* branch = std::get_if<Branch>(&node)) add(branch->then_body), add(branch->else_body);
  }
  return false;
}

// One value outside of the parallel loop, which no fragment is read for there.
bool DraftResolver::is_of_block(ExprId e) {
  const Buffers& reads = exprs_.reads(e);
  return is_alike(e, Of::block) && std::none_of(reads.begin(), reads.end(), [&](BufferId b) {
           return p_.buffer(b).scope == MemScope::fragment;
         });
}

// What stands there has such a loop in it. Whether that was one of these statements.
bool DraftResolver::run_walking(StmtId s, Block& out) {
  if (walks_.empty()) return false;
  if (!meeting(s).empty()) {
    if (!draft_.walks.contains(s)) return false;
    refuse_divergent(meeting(s), true);
    return true;
  }
  const auto* loop = std::get_if<Loop>(&written_[s.value].node);
  const auto* branch = std::get_if<Branch>(&written_[s.value].node);
  const bool walks = walks_.contains(s);
  if (!walks && !holds_walk(s)) {
    if (!loop || !threads_->points) return false;
    run_statement(s, threads_->body);  // written out
    return true;
  }
  if (branch) {
    if (is_of_block(resolved(branch->condition)))
      hoist_branch(s, Branch(*branch), {}, out);
    else
      guard_branch(s, Branch(*branch), out);
  } else if (loop->kind == LoopKind::unroll) {
    const Loop head = *loop;
    write_out(head, [&] { run_threads_block(head.body, out); });
  } else if (!draft_.walks.contains(s) && is_of_block(resolved(loop->begin)) &&
             is_of_block(resolved(loop->extents[0]))) {
    hoist_loop(s, out);
  } else {
    run_walk(s, out);
  }
  return true;
}

// A loop that each point leaves by itself.
void DraftResolver::run_walk(StmtId s, Block& out) {
  Loop loop = std::get<Loop>(written_[s.value].node);
  const Block body = std::exchange(loop.body, {});
  const auto were_fixed = fix_assigned(s, out);
  if (!errors_.empty()) return;
  ExprPool& e = p_.exprs;
  const auto new_var = [&](const char* name, DType type) {
    Var v;
    v.name = name;
    v.type = type;
    v.location = location_;
    p_.vars.push_back(std::move(v));
    return VarId(p_.vars.size() - 1);
  };
  loop.begin = resolved(loop.begin);
  loop.extents[0] = resolved(loop.extents[0]);
  const bool alike = is_of_block(loop.begin) && is_of_block(loop.extents[0]);
  const VarId written = loop.vars[0];
  ExprId first, trips, trip;
  if (!alike) {  // taken once, as all bounds
    first = define(new_var("first", DType::i64), loop.begin).element;
    trips = define(new_var("trips", DType::i64), loop.extents[0]).element;
    loop.vars = {new_var("trip", DType::i64)};
    p_.vars.back().kind = VarKind::loop;
    loop.begin = e.const_int(0);
    loop.extents = {e.const_int(Draft::kEndless)};
    trip = e.var(loop.vars[0]);
  }
  const Walk walk = begin_walk(new_var("more", DType::boolean));
  const auto goes_on = draft_.walks.find(s);
  const auto ask = [&](ExprId inside, Block& to) {
    ExprId more = inside;
    if (goes_on != draft_.walks.end()) {
      const ExprId own = values_.at(goes_on->second);
      more = more.valid() ? e.logical_and(more, own) : own;
    }
    ask_points(walk, more, to);
  };
  ask(alike ? ExprId() : e.lt(e.const_int(0), trips), out);
  loop.condition = walk.again;
  const StmtId made = emit(std::move(loop), out, s);
  const Values before = values_;
  Block made_body;
  if (alike) {
    run_threads_block(body, made_body);
  } else {
    values_[written] = e.add(first, trip);
    guard_branch(s, Branch{e.lt(trip, trips), body, {}}, made_body);
  }
  if (errors_.empty()) ask(alike ? ExprId() : e.lt(e.add(trip, e.const_int(1)), trips), made_body);
  values_ = before;
  for (const auto& [var, fixed] : were_fixed) memory_[var].fixed = fixed;
  std::get<Loop>(p_.stmts[made.value].node).body = std::move(made_body);
}

DraftResolver::Walk DraftResolver::begin_walk(VarId more) {
  Walk walk;
  walk.more = make_memory(more);
  const auto tile = [&](const char* name, MemScope scope, std::vector<ExprId> shape) {
    if (static_cast<int64_t>(p_.buffers.size()) >= limits_.buffers) too_many(limits_.buffers, "buffers");
    Buffer b;
    b.name = free_tile_name(p_, draft_, name);
    b.scope = scope;
    b.type = DType::boolean;
    b.kernel = static_cast<int>(kernel_);
    b.location = location_;
    b.shape = std::move(shape);
    p_.buffers.push_back(std::move(b));
    kept_.insert(BufferId(p_.buffers.size() - 1));
    return BufferId(p_.buffers.size() - 1);
  };
  const ExprId one = p_.exprs.const_int(1), zero = p_.exprs.const_int(0);
  std::vector<ExprId> shape = p_.buffer(walk.more.buffer).shape;
  for (; shape.size() > 1; walk.results.push_back(tile("some", MemScope::fragment, shape))) shape.pop_back();
  walk.results.push_back(tile("any", MemScope::shared, {one}));
  walk.again = p_.exprs.load(tile("again", MemScope::local, {one}), DType::boolean, std::span(&zero, 1));
  return walk;
}

// Whether the loop goes on for a point, where they all see it.
void DraftResolver::ask_points(const Walk& walk, ExprId more, Block& out) {
  ExprPool& e = p_.exprs;
  const auto own = e.indices(walk.more.element);
  const std::vector<ExprId> to(own.begin(), own.end());
  flush_guarded();
  if (threads_->guard.valid()) {
    Branch both{threads_->guard, {}, {}};
    emit(Store{walk.more.buffer, to, more}, both.then_body);
    emit(Store{walk.more.buffer, to, e.const_int(0, DType::boolean)}, both.else_body);
    emit(std::move(both), threads_->whole);
  } else {
    emit(Store{walk.more.buffer, to, more}, threads_->whole);
  }
  end_part(out, kNothingLater);
  const auto whole = [&](BufferId b) {
    Region r{b, {}, {}};
    for (ExprId extent : p_.buffer(b).shape) {
      r.offsets.push_back(e.const_int(0));
      e.is_const_int(extent, &r.extents.emplace_back(1));
    }
    return r;
  };
  BufferId from = walk.more.buffer;
  for (BufferId result : walk.results) {
    TileOp op;
    op.kind = OpKind::reduce;
    op.operands = {whole(from), whole(result)};
    op.attrs[reduce_attr::kind] = static_cast<int64_t>(ReduceKind::bit_or);
    op.attrs[reduce_attr::axis] = static_cast<int64_t>(op.operands[0].extents.size()) - 1;
    emit(std::move(op), out);
    from = result;
  }
  const ExprId zero = e.const_int(0);
  emit(Store{e[walk.again].object, {zero}, e.load(from, DType::boolean, std::span(&zero, 1))}, out);
}

}  // namespace tilegen::ir
