#include "lower/accesses.h"

namespace tilegen::lower {

using ir::ExprId;
using thread::StmtId;
using thread::ThreadProgram;

void collect_loads(const ir::ExprPool& e, ExprId id, std::set<ExprId>& seen, std::vector<Access>& out) {
  if (!id || !seen.insert(id).second) return;
  const ir::ExprNode& n = e[id];
  for (ExprId operand : {n.a, n.b, n.c}) collect_loads(e, operand, seen, out);
  if (n.op != ir::ExprOp::load) return;
  for (ExprId index : e.indices(id)) collect_loads(e, index, seen, out);
  out.push_back({n.object, e.indices(id)[0], false});
}

namespace {

class AccessCollector {
 public:
  explicit AccessCollector(const ThreadProgram& p) : p_(p) {}

  void statement(StmtId id) {
    const auto& node = p_.stmts[id.value].node;
    if (const auto* s = std::get_if<thread::Store>(&node)) {
      for (ExprId x : {s->index, s->value, s->predicate, s->expected, s->old_index})
        collect_loads(p_.exprs, x, seen_, accesses);
      accesses.push_back({s->memory, s->index, true});
      if (s->old.valid()) accesses.push_back({s->old, s->old_index, true});
      if (s->atomic) accesses.push_back({s->memory, ExprId(), false});
    } else if (const auto* l = std::get_if<thread::Loop>(&node)) {
      for (ExprId x : {l->extent, l->condition}) collect_loads(p_.exprs, x, seen_, accesses);
      for (StmtId s : l->body) statement(s);
    } else if (const auto* b = std::get_if<thread::Branch>(&node)) {
      collect_loads(p_.exprs, b->condition, seen_, accesses);
      for (StmtId s : b->then_body) statement(s);
      for (StmtId s : b->else_body) statement(s);
    } else if (const auto* r = std::get_if<thread::LaneReduce>(&node)) {
      for (ExprId x : {r->dst_index, r->src_index}) collect_loads(p_.exprs, x, seen_, accesses);
      accesses.push_back({r->src, ExprId(), false});
      accesses.push_back({r->dst, ExprId(), true});
      if (r->accumulate) accesses.push_back({r->dst, ExprId(), false});
    } else if (const auto* m = std::get_if<thread::HostMma>(&node)) {
      for (ExprId x : {m->a_index, m->b_index, m->c_index}) collect_loads(p_.exprs, x, seen_, accesses);
      accesses.push_back({m->a, ExprId(), false});
      accesses.push_back({m->b, ExprId(), false});
      accesses.push_back({m->c, ExprId(), true});
      accesses.push_back({m->c, ExprId(), false});
    } else if (const auto* f = std::get_if<thread::Prefetch>(&node)) {
      collect_loads(p_.exprs, f->index, seen_, accesses);
    } else {
      warp_level(node);
    }
  }

  // Statements of blocks with several threads.
  void warp_level(const thread::StmtNode& node) {
    auto loads = [&](std::initializer_list<ExprId> list) {
      for (ExprId x : list) collect_loads(p_.exprs, x, seen_, accesses);
    };
    auto moves = [&](thread::MemoryId dst, thread::MemoryId src) {
      accesses.push_back({src, ExprId(), false});
      accesses.push_back({dst, ExprId(), true});
    };
    if (const auto* c = std::get_if<thread::AsyncCopy>(&node)) {
      loads({c->dst_index, c->src_index, c->predicate});
      moves(c->dst, c->src);
    } else if (const auto* s = std::get_if<thread::Shuffle>(&node)) {
      loads({s->dst_index, s->value, s->lane});
      accesses.push_back({s->dst, s->dst_index, true});
    } else if (const auto* v = std::get_if<thread::Vote>(&node)) {
      loads({v->dst_index, v->value});
      accesses.push_back({v->dst, v->dst_index, true});
    } else if (const auto* l = std::get_if<thread::LoadMatrix>(&node)) {
      loads({l->dst_index, l->src_index});
      moves(l->dst, l->src);
    } else if (const auto* m = std::get_if<thread::StoreMatrix>(&node)) {
      loads({m->dst_index, m->src_index});
      moves(m->dst, m->src);
    } else if (const auto* w = std::get_if<thread::WarpMma>(&node)) {
      loads({w->a_index, w->b_index, w->c_index, w->places_index});
      for (thread::MemoryId read : {w->a, w->b, w->c, w->places})
        if (read.valid()) accesses.push_back({read, ExprId(), false});
      accesses.push_back({w->c, ExprId(), true});
    } else {
      barrier = true;  // barriers, commits and waits order what stands around them
    }
  }

  std::vector<Access> accesses;
  bool barrier = false;

 private:
  const ThreadProgram& p_;
  std::set<ExprId> seen_;
};

}  // namespace

StatementAccesses accesses_of(const ThreadProgram& p, StmtId id) {
  AccessCollector collector(p);
  collector.statement(id);
  return {std::move(collector.accesses), collector.barrier};
}

bool may_alias(const ThreadProgram& p, thread::MemoryId a, thread::MemoryId b) {
  if (a == b) return true;
  const thread::Memory &x = p.memory(a), &y = p.memory(b);
  if (x.space == thread::Space::global || y.space == thread::Space::global) return x.space == y.space;
  if (x.arena_offset < 0 || y.arena_offset < 0) return false;
  return x.arena_offset < y.arena_offset + y.elements * ir::dtype_bytes(y.type) &&
         y.arena_offset < x.arena_offset + x.elements * ir::dtype_bytes(x.type);
}

}  // namespace tilegen::lower
