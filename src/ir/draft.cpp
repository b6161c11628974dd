#include "ir/draft.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/draft_jumps.h"
#include "ir/draft_pack.h"
#include "ir/draft_resolver.h"
#include "ir/packed_types.h"
#include "ir/store_parts.h"
#include "ir/tile_view.h"
#include "ir/view_retype.h"
#include "ir/weave_sides.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::ir {

void DraftResolver::error(DiagCode code, std::string message, std::string hint) {
  if (!errors_.empty()) return;
  Diagnostic d;
  d.code = code;
  d.op = p_.kernels[kernel_].name;
  d.message = std::move(message);
  d.hint = std::move(hint);
  d.location = location_;
  d.stage = "resolve";
  errors_.push_back(std::move(d));
}

void DraftResolver::too_many(int64_t limit, const char* what) {
  error(DiagCode::limit_nodes,
        "the program has more than " + std::to_string(limit) + " " + what +
            ", with the loops inside parallel loops written out and a tile for each value that is kept",
        "let these loops run less often, or put a serial loop around the parallel one");
}

ExprId DraftResolver::resolved(ExprId e) {
  if (!e.valid()) return e;
  DraftSubstitution names(p_.exprs, draft_, values_);
  const ExprId result = names.rewrite(e);
  if (names.unknown.valid())
    error(DiagCode::out_of_scope,
          "'" + p_.var(names.unknown).name + "' is used outside the block that names it",
          "name the value again here");
  if (p_.exprs[result].depth > limits_.expr_depth)
    error(DiagCode::limit_nesting,
          "with what its names stand for, an expression nests deeper than " +
              std::to_string(limits_.expr_depth) + " levels",
          "name a part of it with let");
  if (static_cast<int64_t>(p_.exprs.size()) > limits_.expr_nodes)
    too_many(limits_.expr_nodes, "expression nodes");
  return result;
}

StmtId DraftResolver::emit(std::variant<Loop, Branch, Store, TileOp> node, Block& out, StmtId written) {
  if (static_cast<int64_t>(p_.stmts.size()) >= limits_.statements) too_many(limits_.statements, "statements");
  const StmtId id(p_.stmts.size());
  p_.stmts.push_back({std::move(node), location_});
  if (written.valid()) p_.stmts.back().label = written_[written.value].label;
  if (written.valid()) p_.stmts.back().annotations = written_[written.value].annotations;
  out.push_back(id);
  return id;
}

void DraftResolver::run_statement(StmtId s, Block& out) {
  const int64_t at = uses_.position(s);
  if (const auto it = draft_.exchanges.find(s); it != draft_.exchanges.end())
    return refuse_divergent(it->second.word);
  if (draft_.barriers.contains(s)) return refuse_divergent("barrier");
  if (draft_.async_copies.contains(s)) return refuse_divergent("copy_async");
  if (draft_.bulk_copies.contains(s)) return refuse_divergent("copy_bulk");
  if (const auto* op = std::get_if<TileOp>(&written_[s.value].node);
      op && threads_ && orders_threads(op->kind))
    return refuse_divergent(op_row(op->kind).text, !is_barrier_op(op->kind));
  if (const auto it = draft_.assignments.find(s); it != draft_.assignments.end())
    return assign(it->second.var, resolved(it->second.value), at, out);
  const auto& node = written_[s.value].node;
  if (const auto* store = std::get_if<Store>(&node)) return run_store(s, *store, out);
  if (const auto* op = std::get_if<TileOp>(&node)) return run_tile_op(s, *op, out);
  if (std::holds_alternative<Branch>(node)) return run_branch(s, out);
  if (draft_.threads.contains(s)) return run_threads(s, std::get<Loop>(node), out);
  run_loop(s, std::get<Loop>(node), out);
}

void DraftResolver::run_store(StmtId s, Store store, Block& out) {
  const int64_t at = uses_.position(s);
  Buffers written;
  visit_written(store, [&](BufferId b, const auto&) { written.insert(b); });
  keep_before_writes(written, at, out);
  visit_exprs(store, [&](ExprId& e) { e = resolved(e); });
  if (const auto named = draft_.old_values.find(s); named != draft_.old_values.end()) {
    const VarId var = named->second;
    if (live(var, at)) {
      Memory& memory = memory_[var];
      const bool free = memory.buffer.valid() && !read_by_others(memory.buffer, var, at);
      if (!free) memory = make_memory(var, MemScope::shared);
      const auto indices = p_.exprs.indices(memory.element);
      store.old = Store::OldValue{memory.buffer, {indices.begin(), indices.end()}};
      values_[var] = memory.element;
    }
  }
  emit(std::move(store), out, s);
}

void DraftResolver::run_tile_op(StmtId s, TileOp op, Block& out) {
  keep_before_writes(writes_of(s), uses_.position(s), out);
  for (Region& region : op.operands)
    for (ExprId& offset : region.offsets) offset = resolved(offset);
  op.value = resolved(op.value);
  emit(std::move(op), out, s);
}

void DraftResolver::run_branch(StmtId s, Block& out) {
  const auto& branch = std::get<Branch>(written_[s.value].node);
  // An if that names nothing stays, so that a program's own text gives the same program.
  const bool names_alone = uses_.is_pure(s) && uses_.names(s);
  if (parallel_ && (pure_ > 0 || (names_alone && !assigns_memory(s))))
    return run_pure_branch(s, resolved(branch.condition), out);
  // What both sides may assign lies in memory while they run.
  const int64_t at = uses_.position(s);
  Buffers written = writes_of(s);
  std::map<VarId, bool> were_fixed;
  for (VarId var : uses_.assigned_in(s)) {
    if (!values_.contains(var)) continue;
    const auto kept = memory_.find(var);
    if (kept == memory_.end() || !kept->second.fixed) keep(var, at, out);
    were_fixed[var] = std::exchange(memory_[var].fixed, true);
    written.insert(memory_[var].buffer);
  }
  keep_before_writes(written, at, out);
  const StmtId made = emit(Branch{resolved(branch.condition), {}, {}}, out, s);
  const Values before = values_;
  Block then_body, else_body;
  run_block(branch.then_body, then_body);
  values_ = before;
  run_block(branch.else_body, else_body);
  values_ = before;
  for (const auto& [var, fixed] : were_fixed) memory_[var].fixed = fixed;
  auto& node = std::get<Branch>(p_.stmts[made.value].node);
  node.then_body = std::move(then_body);
  node.else_body = std::move(else_body);
}

bool DraftResolver::assigns_memory(StmtId s) const {
  const std::set<VarId>& assigned = uses_.assigned_in(s);
  return std::any_of(assigned.begin(), assigned.end(), [&](VarId var) {
    const auto it = memory_.find(var);
    return it != memory_.end() && it->second.fixed;
  });
}

// Only names on both sides: each value is one of two.
void DraftResolver::run_pure_branch(StmtId s, ExprId condition, Block& out) {
  const auto& branch = std::get<Branch>(written_[s.value].node);
  const SourceLocation here = location_;
  const Values before = values_;
  Block none;
  ++pure_;
  run_block(branch.then_body, none);
  Values then_values = std::exchange(values_, before);
  run_block(branch.else_body, none);
  --pure_;
  location_ = here;
  if (!errors_.empty()) return;
  Values else_values = std::exchange(values_, before);
  const int64_t at = uses_.position(s);
  for (VarId var : uses_.assigned_in(s))
    if (before.contains(var))
      values_[var] = p_.exprs.select(condition, then_values.at(var), else_values.at(var));
  for (VarId var : uses_.assigned_in(s))
    if (before.contains(var)) keep_large(var, at, out);
}

void DraftResolver::run_loop(StmtId s, Loop loop, Block& out) {
  if (loop.kind == LoopKind::parallel && !parallel_) {
    find_walks(loop.body);
    if (!walks_.empty()) return run_threads(s, std::move(loop), out);
  }
  const bool written_out = parallel_ && (loop.kind == LoopKind::serial || loop.kind == LoopKind::unroll);
  if (!written_out) keep_before_writes(writes_of(s), uses_.position(s), out);
  loop.begin = resolved(loop.begin);
  for (ExprId& extent : loop.extents) extent = resolved(extent);
  if (written_out) {
    const Block& body = std::get<Loop>(written_[s.value].node).body;
    return write_out(loop, [&] { run_block(body, out); });
  }
  const Block body = std::exchange(loop.body, {});
  const Loop head = loop;
  const StmtId made = emit(std::move(loop), out, s);
  const Values before = values_;
  const Loop* outer = parallel_;
  if (head.kind == LoopKind::parallel) parallel_ = &head;
  Block made_body;
  run_block(body, made_body);
  parallel_ = outer;
  values_ = before;
  std::get<Loop>(p_.stmts[made.value].node).body = std::move(made_body);
}

void DraftResolver::assign(VarId var, ExprId value, int64_t at, Block& out) {
  const auto kept = memory_.find(var);
  if (pure_ == 0 && kept != memory_.end() && kept->second.fixed) {
    const Memory& memory = kept->second;
    for (const auto& [other, v] : Values(values_))
      if (other != var && live(other, at) && exprs_.reads(v).contains(memory.buffer)) keep(other, at, out);
    const auto indices = p_.exprs.indices(memory.element);
    emit(Store{memory.buffer, {indices.begin(), indices.end()}, value}, out);
    values_[var] = memory.element;
    return;
  }
  values_[var] = value;
  keep_large(var, at, out);
}

void DraftResolver::keep_large(VarId var, int64_t at, Block& out) {
  if (pure_ == 0 && live(var, at) && exprs_.is_large(values_.at(var), uses_.count(var))) keep(var, at, out);
}

// The value goes into memory, and the name stands for its element there.
void DraftResolver::keep(VarId var, int64_t at, Block& out) {
  Memory& memory = memory_[var];
  const bool free = memory.buffer.valid() && !read_by_others(memory.buffer, var, at);
  if (!free) memory = make_memory(var);
  if (values_.at(var) == memory.element) return;
  const auto indices = p_.exprs.indices(memory.element);
  emit(Store{memory.buffer, {indices.begin(), indices.end()}, values_.at(var)}, out);
  values_[var] = memory.element;
}

bool DraftResolver::read_by_others(BufferId buffer, VarId but, int64_t at) {
  for (const auto& [var, value] : values_)
    if (var != but && live(var, at) && exprs_.reads(value).contains(buffer)) return true;
  return false;
}

void DraftResolver::keep_before_writes(const Buffers& buffers, int64_t at, Block& out) {
  if (buffers.empty()) return;
  for (const auto& [var, value] : Values(values_)) {
    const auto kept = memory_.find(var);
    if (kept != memory_.end() && kept->second.fixed) continue;
    if (draft_.temporaries.contains(var) && live(var, at) && exprs_.touches(value, buffers))
      keep(var, at, out);
  }
}

DraftResolver::Memory DraftResolver::make_memory(VarId var, MemScope in_parallel) {
  if (static_cast<int64_t>(p_.buffers.size()) >= limits_.buffers) too_many(limits_.buffers, "buffers");
  Buffer b;
  b.name = free_tile_name(p_, draft_, p_.var(var).name);
  b.scope = parallel_ ? in_parallel : MemScope::local;
  b.type = p_.var(var).type;
  b.kernel = static_cast<int>(kernel_);
  b.location = p_.var(var).location;
  std::vector<ExprId> indices;
  if (parallel_) {
    b.shape = parallel_->extents;
    for (VarId v : parallel_->vars) indices.push_back(p_.exprs.var(v));
  } else {
    b.shape = {p_.exprs.const_int(1)};
    indices = {p_.exprs.const_int(0)};
  }
  const BufferId id(p_.buffers.size());
  p_.buffers.push_back(std::move(b));
  kept_.insert(id);
  return {id, p_.exprs.load(id, p_.var(var).type, indices), false};
}

void DraftResolver::add_writes(StmtId s, Buffers& buffers) const {
  const auto& node = written_[s.value].node;
  if (const auto* store = std::get_if<Store>(&node))
    visit_written(*store, [&](BufferId b, const auto&) { buffers.insert(b); });
  if (const auto* op = std::get_if<TileOp>(&node))
    for (size_t i = 0; i < op->operands.size(); ++i)
      if (op_row(op->kind).operands[i].access != Access::read) buffers.insert(op->operands[i].buffer);
}

DraftResolver::Buffers DraftResolver::writes_of(StmtId s) const {
  Buffers buffers;
  std::vector<StmtId> todo{s};
  while (!todo.empty()) {
    const StmtId next = todo.back();
    todo.pop_back();
    add_writes(next, buffers);
    const auto& node = written_[next.value].node;
    const auto add = [&](const Block& b) { todo.insert(todo.end(), b.begin(), b.end()); };
    if (const auto* loop = std::get_if<Loop>(&node)) add(loop->body);
    if (const auto* branch = std::get_if<Branch>(&node)) add(branch->then_body), add(branch->else_body);
  }
  return buffers;
}

std::vector<Diagnostic> resolve_draft(Program& p, const Draft& draft, const Limits& limits) {
  const bool packed = has_packed_types(p);
  if (draft.empty() && !packed) return {};
  Draft of_tiles = draft;
  retype_tiles(p, of_tiles);
  std::vector<Diagnostic> errors = resolve_views(p, of_tiles);
  if (errors.empty() && !draft.empty()) {
    const Draft without_jumps = resolve_jumps(p, of_tiles);
    DraftResolver resolver(p, without_jumps, limits);
    errors = resolver.run();
    if (errors.empty() && !draft.threads.empty())
      weave_sides(p, [&](BufferId b) { return resolver.keeps(b); });
    if (errors.empty() && resolver.reorders()) order_statements(p);
  }
  if (errors.empty() && packed) errors = resolve_packed_types(p, of_tiles);
  if (errors.empty()) pack_program(p, of_tiles.views);
  return errors;
}

}  // namespace tilegen::ir
