#include "ir/draft_threads.h"

#include <utility>

#include "ir/copy_groups.h"
#include "ir/draft_resolver.h"
#include "ir/op_kinds.h"
#include "ir/point_loops.h"
#include "ir/store_parts.h"

namespace tilegen::ir {
namespace {

bool is_group_word(OpKind kind) { return kind == OpKind::commit_group || kind == OpKind::wait_group; }

bool meets_of_block(std::string_view word) {
  return word == "barrier" || word == "commit_group" || word == "wait_group";
}

constexpr int64_t kNothingLater = INT64_MAX;  // behind all uses of names

}  // namespace

Annotations in_thread_order(std::span<const int64_t> extents, const SourceLocation& location,
                            int64_t elements) {
  int64_t threads = 1;
  for (int64_t n : extents) threads *= n;
  std::string shape, digits;
  int64_t stride = threads;
  for (size_t d = 0; d < extents.size(); ++d) {
    stride /= extents[d];
    shape += (d == 0 ? "" : ",") + std::to_string(extents[d]);
    if (extents[d] > 1)
      digits += (digits.empty() ? "d" : " + d") + std::to_string(d) + "/1%" + std::to_string(extents[d]) +
                "*" + std::to_string(stride);
  }
  std::string registers = "0";
  if (elements > 0) shape += "," + std::to_string(elements);
  if (elements > 1)
    registers = "d" + std::to_string(extents.size()) + "/1%" + std::to_string(elements) + "*1";
  const std::string text = "threads " + std::to_string(threads) + " : (" + shape +
                           ") -> [0: " + (digits.empty() ? "0" : digits) + "; 1: " + registers + "]";
  return {{"iteration", {text}, location},
          {"full_tile_version", {"false"}, location},
          {"unmasked_version", {"false"}, location}};
}

std::optional<Diagnostic> threads_refusal(const Program& p, std::span<const int64_t> extents,
                                          std::span<const StmtId> around) {
  for (StmtId s : around) {
    const auto* loop = p.as<Loop>(s);
    if (!loop || (loop->kind != LoopKind::parallel && loop->kind != LoopKind::pipelined)) continue;
    return diagnostic(DiagCode::misplaced_statement,
                      std::string("a block of threads stands in a ") + loop_kind_name(loop->kind) + " loop",
                      loop->kind == LoopKind::parallel
                          ? "end the parallel loop first, or write its body with threads"
                          : "make the loop serial: what stands in it is not overlapped");
  }
  if (p.kernels.empty()) return std::nullopt;  // its first line was refused
  int64_t threads = 1;
  for (int64_t n : extents) threads = checked_mul(threads, n).value_or(INT64_MAX);
  const int64_t have = p.kernels.back().threads;
  if (threads == have) return std::nullopt;
  return diagnostic(
      DiagCode::bad_shape,
      "the block of threads has " + extents_text({extents.begin(), extents.end()}) + " = " +
          std::to_string(threads) + " threads, the kernel " +
          (have == 0 ? std::string("does not say how many it has") : "has " + std::to_string(have)),
      have == 0 ? "write threads " + std::to_string(threads) + " behind the kernel's grid"
                : "let the extents multiply to the kernel's threads, and use an if for some of them");
}

void DraftResolver::run_threads(StmtId s, Loop loop, Block& out) {
  keep_before_writes(writes_of(s), uses_.position(s), out);
  const Block body = std::exchange(loop.body, {});
  Threads threads{std::move(loop), written_[s.value].annotations, {}, {}, {}, p_.stmts.size()};
  threads.points = !draft_.threads.contains(s);
  if (threads.points)
    threads.label = written_[s.value].label;
  else
    find_walks(body);
  cut_ = true;
  const Values before = values_;
  const Loop* outer = std::exchange(parallel_, &threads.head);
  threads_ = &threads;
  run_threads_block(body, out);
  end_part(out, kNothingLater);
  threads_ = nullptr;
  walks_.clear();
  parallel_ = outer;
  values_ = before;
}

void DraftResolver::run_threads_block(const Block& block, Block& out) {
  for (StmtId s : block) {
    if (!errors_.empty()) return;
    location_ = written_[s.value].location;
    const auto* branch = std::get_if<Branch>(&written_[s.value].node);
    const auto* loop = std::get_if<Loop>(&written_[s.value].node);
    const auto is_uniform = [&](ExprId e) { return is_alike(e, Of::block); };
    const auto* op = std::get_if<TileOp>(&written_[s.value].node);
    if (run_walking(s, out)) continue;
    if (draft_.exchanges.contains(s)) {
      run_exchange(s, out);
    } else if (draft_.async_copies.contains(s)) {
      run_async_copy(s, out);
    } else if (draft_.bulk_copies.contains(s)) {
      run_bulk_copy(s, out);
    } else if (op && is_barrier_op(op->kind)) {
      run_barrier_op(s, *op, out);
    } else if (op && is_group_word(op->kind)) {
      if (threads_->guard.valid()) return refuse_divergent(op_row(op->kind).text, true);
      end_part(out, uses_.position(s));
      run_tile_op(s, *op, out);
    } else if (draft_.barriers.contains(s)) {
      end_part(out, uses_.position(s));
    } else if (branch && !meeting(s).empty() && is_uniform(resolved(branch->condition))) {
      hoist_branch(s, Branch(*branch), {}, out);
    } else if (branch && !meeting(s).empty() && split_branch(s, Branch(*branch), out)) {
      continue;
    } else if (branch && !meeting(s).empty() &&
               (is_alike(resolved(branch->condition), Of::group) || is_of_some_lanes(s))) {
      guard_branch(s, Branch(*branch), out);
    } else if (loop && loop->kind == LoopKind::unroll && !meeting(s).empty()) {
      Loop head = *loop;
      head.begin = resolved(head.begin);
      for (ExprId& extent : head.extents) extent = resolved(extent);
      write_out(head, [&] { run_threads_block(loop->body, out); });
    } else if (loop && meeting(s).empty() && walks_neighbours(s)) {
      end_part(out, uses_.position(s));
      run_statement(s, threads_->body);
      end_part(out, end_of(s));
    } else if (loop && loop->kind == LoopKind::serial && is_uniform(resolved(loop->begin)) &&
               is_uniform(resolved(loop->extents[0]))) {
      hoist_loop(s, out);
    } else if (loop && !meeting(s).empty()) {
      refuse_divergent(meeting(s), meets_of_block(meeting(s)));
    } else {
      run_statement(s, threads_->body);
    }
  }
}

// What lets threads meet in it, the first one's word; empty: nothing.
std::string_view DraftResolver::meeting(StmtId s) const {
  std::vector<StmtId> todo{s};
  while (!todo.empty()) {
    const StmtId next = todo.back();
    todo.pop_back();
    if (const auto it = draft_.exchanges.find(next); it != draft_.exchanges.end()) return it->second.word;
    if (draft_.barriers.contains(next)) return "barrier";
    if (draft_.async_copies.contains(next)) return "copy_async";
    if (draft_.bulk_copies.contains(next)) return "copy_bulk";
    const auto& node = written_[next.value].node;
    if (const auto* op = std::get_if<TileOp>(&node); op && orders_threads(op->kind))
      return op_row(op->kind).text;
    const auto add = [&](const Block& b) { todo.insert(todo.end(), b.begin(), b.end()); };
    if (const auto* loop = std::get_if<Loop>(&node)) add(loop->body);
    if (const auto* branch = std::get_if<Branch>(&node)) add(branch->then_body), add(branch->else_body);
  }
  return {};
}

// A loop of its own, over the threads and over the elements of each.
void DraftResolver::run_async_copy(StmtId s, Block& out) {
  const int64_t at = uses_.position(s);
  keep_before_writes(writes_of(s), at, threads_->body);
  end_part(out, at - 1);
  if (!errors_.empty()) return;
  const Loop& written = std::get<Loop>(written_[s.value].node);
  Store store = std::get<Store>(written_[written.body.front().value].node);
  visit_exprs(store, [&](ExprId& e) { e = resolved(e); });
  Loop loop = threads_->head;
  loop.vars.push_back(written.vars.front());
  loop.extents.push_back(written.extents.front());
  const std::vector<VarId> from = loop.vars;
  for (VarId& v : loop.vars) {
    const Var var = p_.var(v);
    v = VarId(p_.vars.size());
    p_.vars.push_back(var);
  }
  OfPart of_part(p_.exprs, from, loop.vars);
  visit_exprs(store, [&](ExprId& e) { e = of_part.rewrite(e); });
  std::vector<int64_t> extents;
  for (ExprId e : loop.extents) p_.exprs.is_const_int(e, &extents.emplace_back(1));
  const int64_t elements = extents.back();
  extents.pop_back();
  if (threads_->guard.valid()) {
    Branch guarded{of_part.rewrite(threads_->guard), {}, {}};
    emit(std::move(store), guarded.then_body);
    emit(std::move(guarded), loop.body);
  } else {
    emit(std::move(store), loop.body);
  }
  Annotations annotations = in_thread_order(extents, location_, elements);
  annotations.insert(annotations.begin(), {"asynchronous", {"true"}, location_});
  const StmtId made = emit(std::move(loop), out, s);
  p_.stmts[made.value].annotations = std::move(annotations);
  threads_->first = p_.stmts.size();
}

void DraftResolver::run_exchange(StmtId s, Block& out) {
  const auto& [var, source] = draft_.assignments.at(s);
  const int64_t at = uses_.position(s);
  const VarId given = p_.exprs[source].var();
  if (threads_->guard.valid()) {  // all lanes hand something over
    memory_[given] = define(given, values_.at(given));
    values_[given] = memory_[given].element;
  } else {
    keep(given, at - 1, threads_->body);
  }
  const ExprId element = values_.at(given);
  const ExprId lane = resolved(draft_.exchanges.at(s).lane);
  end_part(out, at - 1);
  if (!errors_.empty()) return;
  Memory& memory = memory_[var];
  if (!memory.buffer.valid() || read_by_others(memory.buffer, var, at)) memory = make_memory(var);
  const auto own = p_.exprs.indices(memory.element);
  const std::vector<ExprId> to(own.begin(), own.end());
  const auto of_lane = [&](ExprId number) {
    std::vector<ExprId> from = to;
    from.back() = number;
    return p_.exprs.load(p_.exprs[element].object, p_.exprs.type(element), from);
  };
  const std::optional<VoteKind> vote = draft_.exchanges.at(s).vote;
  int64_t lanes = 1;
  p_.exprs.is_const_int(threads_->head.extents.back(), &lanes);
  const auto numbered = [&](int64_t number) { return of_lane(p_.exprs.const_int(number)); };
  const ExprId taken = vote ? make_group_vote(p_.exprs, *vote, lanes, numbered, element) : of_lane(lane);
  emit(Store{memory.buffer, to, taken}, threads_->body);
  values_[var] = memory.element;
  end_part(out, at);
  threads_->alike.erase(values_[var]);  // written before, of other lanes
  if (vote ? *vote != VoteKind::match : is_alike(lane, Of::group)) threads_->alike.insert(values_[var]);
}

// What the if or loop assigns lies in memory while it runs.
std::map<VarId, bool> DraftResolver::fix_assigned(StmtId s, Block& out) {
  const int64_t at = uses_.position(s);
  Buffers written = writes_of(s);
  std::map<VarId, bool> were_fixed;
  for (VarId var : uses_.assigned_in(s)) {
    if (!values_.contains(var)) continue;
    const auto kept = memory_.find(var);
    if (kept == memory_.end() || !kept->second.fixed) keep(var, at, threads_->body);
    were_fixed[var] = std::exchange(memory_[var].fixed, true);
    written.insert(memory_[var].buffer);
  }
  keep_before_writes(written, at, threads_->body);
  end_part(out, at);
  return were_fixed;
}

// if n > 4 and w < 2 { }: what is the same for the block is an if around that on the threads' numbers, as if
// one were written in the other. One side alone; of the other one, by the opposite.
bool DraftResolver::split_branch(StmtId s, const Branch& branch, Block& out) {
  const bool opposite = branch.then_body.empty();
  if (!opposite && !branch.else_body.empty()) return false;
  ExprId condition = resolved(branch.condition);
  if (p_.exprs[condition].depth + 2 >= limits_.expr_depth) return false;
  if (opposite) condition = p_.exprs.unary(ExprOp::logical_not, condition);
  const auto [of_block, of_groups] = split_condition(condition);
  if (!of_block.valid() || (!is_alike(of_groups, Of::group) && !is_of_some_lanes(s))) return false;
  hoist_branch(s, {of_block, opposite ? branch.else_body : branch.then_body, {}}, of_groups, out);
  return true;
}

// `of_groups`: where it holds, too, the first side is run.
void DraftResolver::hoist_branch(StmtId s, const Branch& branch, ExprId of_groups, Block& out) {
  const auto were_fixed = fix_assigned(s, out);
  const StmtId made = emit(Branch{resolved(branch.condition), {}, {}}, out, s);
  const Values before = values_;
  Block then_body, else_body;
  if (of_groups.valid())
    guard_branch(s, {of_groups, branch.then_body, {}}, then_body);
  else
    run_threads_block(branch.then_body, then_body);
  end_part(then_body, kNothingLater);
  values_ = before;
  run_threads_block(branch.else_body, else_body);
  end_part(else_body, kNothingLater);
  values_ = before;
  for (const auto& [var, fixed] : were_fixed) memory_[var].fixed = fixed;
  auto& node = std::get<Branch>(p_.stmts[made.value].node);
  node.then_body = std::move(then_body);
  node.else_body = std::move(else_body);
}

// A tile that has the value where the guard holds, and 0 elsewhere.
DraftResolver::Memory DraftResolver::define(VarId var, ExprId value) {
  const Memory memory = make_memory(var);
  const auto own = p_.exprs.indices(memory.element);
  const std::vector<ExprId> to(own.begin(), own.end());
  flush_guarded();
  if (!threads_->guard.valid()) {
    emit(Store{memory.buffer, to, value}, threads_->whole);
    return memory;
  }
  Branch both{threads_->guard, {}, {}};
  emit(Store{memory.buffer, to, value}, both.then_body);
  emit(Store{memory.buffer, to, p_.exprs.const_number(0, p_.var(var).type)}, both.else_body);
  emit(std::move(both), threads_->whole);
  return memory;
}

// An if that groups of lanes take as a whole: all of them come by its exchanges, and what else stands in it
// is guarded.
void DraftResolver::guard_branch(StmtId s, const Branch& branch, Block& out) {
  const ExprId condition = resolved(branch.condition);
  const auto were_fixed = fix_assigned(s, out);
  const auto taken = [&](const char* name, ExprId when) {
    if (exprs_.reads(when).empty() && p_.exprs[when].depth + 2 < limits_.expr_depth)  // always the same
      return threads_->guard.valid() ? p_.exprs.logical_and(threads_->guard, when) : when;
    Var v;
    v.name = name;
    v.type = DType::boolean;
    v.location = location_;
    p_.vars.push_back(std::move(v));
    return define(VarId(p_.vars.size() - 1), when).element;
  };
  const ExprId chosen = taken("chosen", condition);
  const ExprId other =
      branch.else_body.empty() ? ExprId() : taken("other", p_.exprs.unary(ExprOp::logical_not, condition));
  const ExprId outer = threads_->guard;
  const Values before = values_;
  for (const auto& [guard, body] : {std::pair(chosen, &branch.then_body), {other, &branch.else_body}}) {
    if (!guard.valid()) continue;
    flush_guarded();
    threads_->guard = guard;
    run_threads_block(*body, out);
    end_part(out, kNothingLater);
    values_ = before;
    threads_->guard = outer;
  }
  for (const auto& [var, fixed] : were_fixed) memory_[var].fixed = fixed;
}

void DraftResolver::flush_guarded() {
  Block body = std::exchange(threads_->body, {});
  if (body.empty()) return;
  if (threads_->guard.valid())
    emit(Branch{threads_->guard, std::move(body), {}}, threads_->whole);
  else
    threads_->whole.insert(threads_->whole.end(), body.begin(), body.end());
}

void DraftResolver::hoist_loop(StmtId s, Block& out) {
  Loop loop = std::get<Loop>(written_[s.value].node);
  const Block body = std::exchange(loop.body, {});
  const auto were_fixed = fix_assigned(s, out);
  loop.begin = resolved(loop.begin);
  for (ExprId& extent : loop.extents) extent = resolved(extent);
  const StmtId made = emit(std::move(loop), out, s);
  const Values before = values_;
  Block made_body;
  run_threads_block(body, made_body);
  end_part(made_body, kNothingLater);
  values_ = before;
  for (const auto& [var, fixed] : were_fixed) memory_[var].fixed = fixed;
  std::get<Loop>(p_.stmts[made.value].node).body = std::move(made_body);
}

// A loop of what stands in the open part, with variables of its own. Names that are used behind `at` are kept
// where others may write what their values are made of meanwhile.
void DraftResolver::end_part(Block& out, int64_t at) {
  if (!errors_.empty()) return;
  for (const auto& [var, value] : Values(values_)) {
    const Buffers& reads = exprs_.reads(value);
    const auto foreign = [&](BufferId b) { return !kept_.contains(b); };
    if (draft_.temporaries.contains(var) && live(var, at) && std::any_of(reads.begin(), reads.end(), foreign))
      keep(var, at, threads_->body);
  }
  flush_guarded();
  if (!threads_->whole.empty()) {
    const SourceLocation here = std::exchange(location_, p_.stmt(threads_->whole.front()).location);
    Loop loop = threads_->head;
    for (VarId& v : loop.vars) {
      const Var var = p_.var(v);
      v = VarId(p_.vars.size());
      p_.vars.push_back(var);
    }
    OfPart of_part(p_.exprs, threads_->head.vars, loop.vars);
    for (size_t s = threads_->first; s < p_.stmts.size(); ++s) {
      if (auto* store = std::get_if<Store>(&p_.stmts[s].node))
        visit_exprs(*store, [&](ExprId& e) { e = of_part.rewrite(e); });
      else if (auto* branch = std::get_if<Branch>(&p_.stmts[s].node))
        branch->condition = of_part.rewrite(branch->condition);
    }
    loop.body = std::exchange(threads_->whole, {});
    const StmtId made = emit(std::move(loop), out);
    p_.stmts[made.value].annotations = threads_->annotations;
    p_.stmts[made.value].label = std::exchange(threads_->label, {});
    location_ = here;
  }
  threads_->first = p_.stmts.size();
}

}  // namespace tilegen::ir
